#include "record/seal.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace lockstep::record {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view hdf5_signature = "\x89HDF\r\n\x1a\n";

/// The page of a file whose other bytes are these.
std::string page(std::uint64_t length, const std::string& digest) {
    std::string text = fmt::format(
        "lockstep run: HDF5 begins at byte {}.\nbytes {}\nsha256 {}\n"
        "Length and sum are of what follows this page; changed files are refused.\n",
        seal_bytes, length, digest);
    text.resize(seal_bytes - 1, ' ');
    return text + '\n';
}

/// The page that the rest of an open file asks for.
std::string page_of(std::istream& file) {
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr);
    std::vector<char> piece(std::size_t{1} << 20U);
    std::uint64_t length = 0;
    file.clear();
    file.seekg(seal_bytes);
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
        EVP_DigestUpdate(digest.get(), piece.data(), static_cast<std::size_t>(file.gcount()));
        length += static_cast<std::uint64_t>(file.gcount());
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_DigestFinal_ex(digest.get(), bytes.data(), &size);
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
    return page(length, text);
}

}  // namespace

void write_seal(const fs::path& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::string text = file ? page_of(file) : "";
    const bool is_read = file.is_open() && file.eof();
    file.clear();
    file.seekp(0);
    file.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
    if (!is_read || !file)
        throw RuntimeError(
            fmt::format("{}: can't be sealed ({}); check the disk", path.string(), std::strerror(errno)));
}

Seal read_seal(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw InputError(fmt::format("{}: can't be opened ({})", path.string(), std::strerror(errno)));
    std::string first(seal_bytes, '\0');
    file.read(first.data(), static_cast<std::streamsize>(first.size()));
    first.resize(static_cast<std::size_t>(file.gcount()));
    if (first.substr(0, hdf5_signature.size()) == hdf5_signature) return Seal::none;
    return first == page_of(file) ? Seal::whole : Seal::broken;
}

}  // namespace lockstep::record
