#include "record/run_description.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

extern char** environ;

namespace lockstep::record {

std::string_view to_string(Origin origin) {
    switch (origin) {
        case Origin::measured: return "measured";
        case Origin::predicted: return "predicted";
        case Origin::rehearsed: return "rehearsed";
    }
    return "?";
}

std::string_view to_string(Status status) {
    switch (status) {
        case Status::running: return "running";
        case Status::complete: return "complete";
        case Status::interrupted: return "interrupted";
        case Status::failed: return "failed";
    }
    return "?";
}

std::map<std::string, std::string> recorded_environment() {
    std::map<std::string, std::string> recorded;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos) continue;
        // A credential; runs are sent to others.
        if (text.substr(0, equals) == "SLURM_JWT") continue;
        for (const std::string_view prefix : {"NCCL_", "SLURM_", "OMPI_"})
            if (text.substr(0, prefix.size()) == prefix)
                recorded["env." + std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
    return recorded;
}

std::string sha256(const std::string& text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
        throw RuntimeError("OpenSSL can't compute SHA-256");
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
    return hex;
}

}  // namespace lockstep::record
