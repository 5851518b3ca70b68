// One owner for each HDF5 identifier, and calls that throw with HDF5's own words.
#pragma once

#include <hdf5.h>

#include <source_location>
#include <string>
#include <utility>

namespace lockstep::record {

/// An identifier that is closed by the function it was made with. Move only.
class Handle {
public:
    using Close = herr_t (*)(hid_t);

    Handle() = default;
    Handle(hid_t id, Close close) : id_(id), close_(close) {}
    ~Handle() { reset(); }
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    Handle& operator=(Handle&& other) noexcept {
        if (this != &other) {
            reset();
            id_ = std::exchange(other.id_, H5I_INVALID_HID);
            close_ = other.close_;
        }
        return *this;
    }

    hid_t get() const { return id_; }
    explicit operator bool() const { return id_ >= 0; }
    void reset() {
        if (id_ >= 0) close_(id_);
        id_ = H5I_INVALID_HID;
    }

private:
    hid_t id_ = H5I_INVALID_HID;
    Close close_ = nullptr;
};

/// HDF5 prints its error stack by default; from here on it is read by `check` instead. Call before the first HDF5 call
/// of a thread.
void silence_hdf5();

/// Throws RuntimeError "FILE: can't WHAT (HDF5's reason); remedy" when `result` is negative; returns it otherwise.
hid_t check(hid_t result, const std::string& what, const std::string& file,
            std::source_location where = std::source_location::current());

/// Properties for making a group, dataset or file that doesn't note when it was made: equal runs give equal bytes.
Handle untimed(hid_t property_class);

/// The most specific reason on HDF5's error stack, with errno when a system call failed.
std::string hdf5_reason();

}  // namespace lockstep::record
