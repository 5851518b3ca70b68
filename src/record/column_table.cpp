#include "record/column_table.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace lockstep::record {

namespace {

std::size_t rows_of(const TableColumn& column) {
    return std::visit([](const auto& values) { return values.size(); }, column.values);
}

/// The HDF5 type of a column; its size is what a value takes in a row.
Handle type_of(const TableColumn& column) {
    if (std::holds_alternative<std::vector<std::int64_t>>(column.values)) return {H5Tcopy(H5T_NATIVE_INT64), H5Tclose};
    if (std::holds_alternative<std::vector<double>>(column.values)) return {H5Tcopy(H5T_NATIVE_DOUBLE), H5Tclose};
    std::size_t longest = 1;
    for (const auto& text : std::get<std::vector<std::string>>(column.values)) longest = std::max(longest, text.size());
    Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), longest);
    H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    return type;
}

void put(char* place, const TableColumn& column, std::size_t row) {
    std::visit(
        [&](const auto& values) {
            if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::vector<std::string>>)
                std::memcpy(place, values[row].data(), values[row].size());
            else
                std::memcpy(place, &values[row], sizeof values[row]);
        },
        column.values);
}

void write_names(hid_t dataset, const std::string& attribute, const std::vector<std::string>& names,
                 const std::string& file_name) {
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), H5T_VARIABLE);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    const hsize_t count = names.size();
    const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Handle object(check(H5Acreate2(dataset, attribute.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                              "make " + attribute, file_name),
                        H5Aclose);
    std::vector<const char*> pointers;
    for (const auto& name : names) pointers.push_back(name.c_str());
    check(H5Awrite(object.get(), type.get(), pointers.data()), "write " + attribute, file_name);
}

}  // namespace

void write_units(hid_t dataset, const std::vector<std::pair<std::string, std::string>>& units,
                 const std::string& file_name) {
    std::vector<std::string> names;
    std::vector<std::string> values;
    for (const auto& [name, unit] : units) {
        names.push_back(name);
        values.push_back(unit);
    }
    write_names(dataset, "field_names", names, file_name);
    write_names(dataset, "field_units", values, file_name);
}

void write_columns(hid_t file, const std::string& name, const std::vector<TableColumn>& columns,
                   const std::string& file_name) {
    const std::size_t rows = columns.empty() ? 0 : rows_of(columns.front());
    std::vector<Handle> types;
    std::size_t row_size = 0;
    for (const auto& column : columns) {
        if (rows_of(column) != rows) throw LogicError("columns of different length in " + name);
        types.push_back(type_of(column));
        row_size += H5Tget_size(types.back().get());
    }
    const Handle row_type(H5Tcreate(H5T_COMPOUND, row_size), H5Tclose);
    std::vector<char> bytes(rows * row_size, '\0');
    std::vector<std::pair<std::string, std::string>> units;
    std::size_t offset = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        H5Tinsert(row_type.get(), columns[c].name.c_str(), offset, types[c].get());
        for (std::size_t row = 0; row < rows; ++row) put(bytes.data() + row * row_size + offset, columns[c], row);
        units.emplace_back(columns[c].name, columns[c].unit);
        offset += H5Tget_size(types[c].get());
    }
    const hsize_t count = rows;
    const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Handle dataset(check(H5Dcreate2(file, name.c_str(), row_type.get(), space.get(), H5P_DEFAULT,
                                          untimed(H5P_DATASET_CREATE).get(), H5P_DEFAULT),
                               "make " + name, file_name),
                         H5Dclose);
    if (rows > 0)
        check(H5Dwrite(dataset.get(), row_type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), "write " + name,
              file_name);
    write_units(dataset.get(), units, file_name);
}

}  // namespace lockstep::record
