// A YAML or JSON document whose every node knows where it stands, read through objects that refuse what they don't
// know.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "config/json.hpp"

namespace lockstep::config {

/// Where a value was written; line and column count from 1, 0 means unknown.
struct Location {
    std::string file;
    int line = 0;
    int column = 0;
};

/// "file:line:column", without what is unknown.
std::string to_string(const Location& location);

/// Collects every error of one input, so that a user sees all of them at once.
class Diagnostics {
public:
    void error(const Location& where, const std::string& message);
    bool has_errors() const { return !errors_.empty(); }
    std::size_t count() const { return errors_.size(); }
    const std::vector<std::string>& errors() const { return errors_; }  ///< "file:line:column: message"
    /// Throws InputError with all errors, one per line, when there is one; past `max_shown_errors` only their count.
    void throw_if_any() const;
    static constexpr std::size_t max_shown_errors = 100;

private:
    std::vector<std::string> errors_;
};

/// One node of a parsed document: null, scalar, sequence or mapping. Copies are cheap (shared, immutable).
class Node {
public:
    enum class Kind { null, scalar, sequence, mapping };
    struct Entry;  ///< a key with its location and its value

    Node();  ///< a null node without location
    enum class Quoting { plain, quoted };
    static Node make_null(Location where);
    static Node make_scalar(std::string text, Location where, Quoting quoting = Quoting::plain);
    static Node make_sequence(std::vector<Node> items, Location where);
    static Node make_mapping(std::vector<Entry> entries, Location where);

    Kind kind() const;
    bool is_null() const { return kind() == Kind::null; }
    bool is_scalar() const { return kind() == Kind::scalar; }
    bool is_sequence() const { return kind() == Kind::sequence; }
    bool is_mapping() const { return kind() == Kind::mapping; }
    const Location& where() const;
    const std::string& text() const;               ///< of a scalar; "" otherwise
    bool is_quoted() const;                        ///< a scalar that was written in quotes
    const std::vector<Node>& items() const;        ///< of a sequence; empty otherwise
    const std::vector<Entry>& entries() const;     ///< of a mapping, in file order; empty otherwise
    const Node* find(std::string_view key) const;  ///< of a mapping; nullptr when absent

    /// The same document with `path` ("plan.bucket") set to `value`; missing mappings on the way are made.
    Node with(std::string_view path, const Node& value) const;
    /// Canonical one-line JSON with keys sorted: documents that differ in layout, comments and order of keys only give
    /// equal bytes.
    std::string canonical() const;
    /// The same as a JSON value, keys in file order; plain numbers, true and false keep their type.
    Json json() const;

private:
    struct Data;
    explicit Node(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
    std::shared_ptr<const Data> data_;
};

struct Node::Entry {
    std::string key;
    Location where;
    Node value;
};

/// What a document may hold: more is refused before it can cost memory or stack.
inline constexpr std::size_t max_document_bytes = 16u << 20;
inline constexpr std::size_t max_document_depth = 64;
inline constexpr std::size_t max_document_nodes = 1'000'000;

/// Sizes that a caller who made the text itself may raise (recorded graphs); descriptions written by people keep these.
struct ParseLimits {
    std::size_t bytes = max_document_bytes;
    std::size_t nodes = max_document_nodes;
};

/// Parses YAML or JSON (UTF-8, one document). Anchors, aliases and tags are refused, duplicate keys are errors. Throws
/// InputError (file:line:column) on malformed or empty text and beyond the limits.
Node parse_text(std::string_view text, const std::string& file_name, const ParseLimits& limits = {});
/// Reads and parses a file; throws InputError when it can't be read, naming the path.
Node parse_file(const std::filesystem::path& path);

/// Reads the keys of one mapping; `finish` reports the keys nobody asked for, with the nearest known key.
/// Values of the wrong type are reported to the diagnostics and replaced by a default, so that reading goes on.
class Object {
public:
    /// `what` names the mapping in messages ("experiment", "layer conv1").
    Object(const Node& node, std::string what, Diagnostics& diagnostics);

    bool has(std::string_view key);
    std::string text(std::string_view key);  ///< required
    std::string text_or(std::string_view key, std::string fallback);
    std::int64_t integer(std::string_view key, std::int64_t min = INT64_MIN, std::int64_t max = INT64_MAX);
    std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min = INT64_MIN,
                            std::int64_t max = INT64_MAX);
    double number(std::string_view key, double min = -1e300, double max = 1e300);  ///< without a unit
    double number_or(std::string_view key, double fallback, double min = -1e300, double max = 1e300);
    bool flag_or(std::string_view key, bool fallback);
    Bytes bytes(std::string_view key);
    Bytes bytes_or(std::string_view key, Bytes fallback);
    Seconds seconds(std::string_view key);
    Seconds seconds_or(std::string_view key, Seconds fallback);
    Bandwidth bandwidth(std::string_view key);
    Bandwidth bandwidth_or(std::string_view key, Bandwidth fallback);
    FlopRate flop_rate(std::string_view key);
    FlopRate flop_rate_or(std::string_view key, FlopRate fallback);
    Watts watts_or(std::string_view key, Watts fallback);
    std::vector<std::int64_t> integers(std::string_view key);  ///< a scalar counts as a list of one
    std::vector<std::string> texts(std::string_view key);      ///< a scalar counts as a list of one
    std::optional<Node> node(std::string_view key);            ///< optional sub-tree, marked as known
    std::vector<Node> nodes(std::string_view key);             ///< required; a single value counts as a list of one
    /// One of `allowed`; reports the allowed values and the nearest one otherwise, then returns `fallback`.
    std::string choice_or(std::string_view key, const std::vector<std::string>& allowed, std::string fallback);

    const Node& self() const { return node_; }
    const std::string& what() const { return what_; }
    Diagnostics& diagnostics() { return diagnostics_; }
    void error(std::string_view key, const std::string& message);  ///< at the key's place, or the mapping's
    /// Reports unknown keys. Call once, at the end.
    void finish();

private:
    const Node* take(std::string_view key);
    const Node* require(std::string_view key);
    Node node_;
    std::string what_;
    Diagnostics& diagnostics_;
    std::vector<std::string> known_;
};

/// The candidate nearest to `word` by edit distance, when near enough to be what was meant.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);
/// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace lockstep::config
