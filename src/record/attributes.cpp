#include "record/attributes.hpp"

namespace lockstep::record {

namespace {

Handle text_type() {
    Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), H5T_VARIABLE);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    return type;
}

Handle make(hid_t object, const std::string& name, hid_t type, const std::string& file_name) {
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    return {check(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                  "make attribute " + name, file_name),
            H5Aclose};
}

/// The attribute when it is a single value.
Handle open_scalar(hid_t object, const std::string& name) {
    if (H5Aexists(object, name.c_str()) <= 0) return {};
    Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    const Handle space(H5Aget_space(attribute.get()), H5Sclose);
    if (!attribute || H5Sget_simple_extent_npoints(space.get()) != 1) return {};
    return attribute;
}

}  // namespace

void write_attribute(hid_t object, const std::string& name, const std::string& text, const std::string& file_name) {
    const Handle type = text_type();
    const Handle attribute = make(object, name, type.get(), file_name);
    const char* pointer = text.c_str();
    check(H5Awrite(attribute.get(), type.get(), &pointer), "write attribute " + name, file_name);
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value, const std::string& file_name) {
    const Handle attribute = make(object, name, H5T_NATIVE_INT64, file_name);
    check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value), "write attribute " + name, file_name);
}

std::optional<std::int64_t> read_integer(hid_t object, const std::string& name) {
    const Handle attribute = open_scalar(object, name);
    std::int64_t value = 0;
    if (!attribute || H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0) return std::nullopt;
    return value;
}

std::optional<std::string> read_text_attribute(hid_t object, const std::string& name) {
    const Handle attribute = open_scalar(object, name);
    if (!attribute) return std::nullopt;
    const Handle stored(H5Aget_type(attribute.get()), H5Tclose);
    if (H5Tget_class(stored.get()) != H5T_STRING || H5Tis_variable_str(stored.get()) <= 0) return std::nullopt;
    const Handle type = text_type();
    char* text = nullptr;
    if (H5Aread(attribute.get(), type.get(), &text) < 0 || text == nullptr) return std::nullopt;
    std::string value(text);
    H5free_memory(text);
    return value;
}

}  // namespace lockstep::record
