#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "config/document.hpp"
#include "config/text_check.hpp"

namespace lockstep::config {

namespace {

/// Builds our tree from the parser's events. yaml-cpp's own tree would drop duplicate keys without a word.
class TreeBuilder final : public YAML::EventHandler {
public:
    TreeBuilder(const std::string& file, Diagnostics& diagnostics, std::size_t most_nodes)
        : file_(file), diagnostics_(diagnostics), most_nodes_(most_nodes) {}

    const std::optional<Node>& root() const { return root_; }
    Location at(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (root_)
            throw InputError(to_string(at(mark)) +
                             ": more text after the end of the document; a file holds one document");
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        admit(mark, "?", anchor);
        if (expects_key()) return take_key("", at(mark), "has no text");
        const bool is_value = !frames_.empty() && frames_.back().key;  // the parser's mark may be on a later line
        add(Node::make_null(is_value ? frames_.back().key->where : at(mark)));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        throw InputError(to_string(at(mark)) + ": aliases (*name) are not accepted; write the value out");
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        admit(mark, tag, anchor);
        if (expects_key()) return take_key(value, at(mark), nullptr);
        add(Node::make_scalar(value, at(mark), tag == "!" ? Node::Quoting::quoted : Node::Quoting::plain));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(Node::Kind::sequence, mark, tag, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(Node::Kind::mapping, mark, tag, anchor);
    }
    void OnMapEnd() override { close(); }

private:
    struct Key {
        std::string text;
        Location where;
        bool is_kept;  ///< false for a key that was reported: its value is read and dropped
    };
    struct Frame {
        Node::Kind kind;
        Location where;
        std::vector<Node> items{};
        std::vector<Node::Entry> entries{};
        std::unordered_map<std::string, int> lines{};  ///< of the keys seen
        std::optional<Key> key{};
    };

    void admit(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
        if (++nodes_ > most_nodes_)
            throw InputError(fmt::format("{}: more than {} values; split the file", to_string(at(mark)), most_nodes_));
        if (anchor != 0)
            throw InputError(to_string(at(mark)) + ": anchors (&name) are not accepted; write the value out");
        if (tag != "" && tag != "?" && tag != "!")
            throw InputError(fmt::format("{}: tags ({}) are not accepted; leave it out", to_string(at(mark)), tag));
    }

    bool expects_key() const {
        return !frames_.empty() && frames_.back().kind == Node::Kind::mapping && !frames_.back().key;
    }

    void take_key(const std::string& text, Location where, const char* fault) {
        Frame& frame = frames_.back();
        if (fault != nullptr) {
            diagnostics_.error(where, fmt::format("a key {}; a key is plain text", fault));
        } else if (const auto [first, is_new] = frame.lines.try_emplace(text, where.line); !is_new) {
            diagnostics_.error(where,
                               fmt::format("duplicate key '{}' (first on line {}); keep one", text, first->second));
            fault = "is a duplicate";
        }
        frame.key = Key{text, std::move(where), fault == nullptr};
    }

    void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
        admit(mark, tag, anchor);
        if (expects_key())  // which is also what an unclosed bracket looks like at the end of the text
            throw InputError(
                to_string(at(mark)) +
                ": a bracket opened here is never closed, or a list or a mapping stands where a key is wanted");
        if (frames_.size() >= max_document_depth)
            throw InputError(fmt::format("{}: nested deeper than {} levels", to_string(at(mark)), max_document_depth));
        frames_.push_back({kind, at(mark)});
    }

    void close() {
        Frame frame = std::move(frames_.back());
        frames_.pop_back();
        add(frame.kind == Node::Kind::sequence ? Node::make_sequence(std::move(frame.items), std::move(frame.where))
                                               : Node::make_mapping(std::move(frame.entries), std::move(frame.where)));
    }

    void add(Node node) {
        if (frames_.empty()) {
            root_ = std::move(node);
        } else if (Frame& frame = frames_.back(); frame.kind == Node::Kind::sequence) {
            frame.items.push_back(std::move(node));
        } else {
            Key& key = *frame.key;
            if (key.is_kept) frame.entries.push_back({std::move(key.text), std::move(key.where), std::move(node)});
            frame.key.reset();
        }
    }

    std::string file_;
    Diagnostics& diagnostics_;
    std::vector<Frame> frames_;
    std::optional<Node> root_;
    std::size_t most_nodes_;
    std::size_t nodes_ = 0;
};

[[noreturn]] void refuse_size(const std::string& file, std::size_t most_bytes) {
    throw InputError(
        fmt::format("{}: larger than {} MiB; lockstep reads descriptions, not data", file, most_bytes >> 20));
}

}  // namespace

Node parse_text(std::string_view text, const std::string& file_name, const ParseLimits& limits) {
    if (text.size() > limits.bytes) refuse_size(file_name, limits.bytes);
    if (const auto fault = find_text_fault(text))
        throw InputError(to_string(Location{file_name, fault->line, fault->column}) + ": " + fault->reason +
                         "; save the file as UTF-8 text");
    Diagnostics diagnostics;
    TreeBuilder builder(file_name, diagnostics, limits.nodes);
    std::istringstream stream{std::string(text)};
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {}
    } catch (const YAML::Exception& failure) { diagnostics.error(builder.at(failure.mark), failure.msg); }
    diagnostics.throw_if_any();
    if (!builder.root() || builder.root()->is_null())
        throw InputError(file_name + ": holds no value (an empty document)");
    return *builder.root();
}

Node parse_file(const std::filesystem::path& path) {
    std::error_code failure;
    if (std::filesystem::is_directory(path, failure)) throw InputError(path.string() + ": is a folder; name a file");
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw InputError(fmt::format("{}: can't be read ({})", path.string(), std::strerror(errno)));
    // Piece by piece: most files are small, and what has no end (a device) is read to the limit only.
    std::string text;
    std::array<char, 1 << 14> piece;
    while (text.size() <= max_document_bytes) {
        stream.read(piece.data(), piece.size());
        text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
        if (!stream) break;
    }
    if (stream.bad()) throw InputError(path.string() + ": can't be read to its end");
    return parse_text(text, path.string());
}

}  // namespace lockstep::config
