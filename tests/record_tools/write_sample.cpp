// Writes the run that read_with_tools.py reads. usage: write_sample FOLDER
#include "record/run_file.hpp"
#include "record/sample_run.hpp"

int main(int argc, char** argv) {
    using namespace lockstep::record;
    if (argc != 2) return 2;
    const std::filesystem::path folder = argv[1];
    test::write_run(folder / "live", test::every_op_kind(), {5, 5});
    test::write_run(folder / "merged", test::every_op_kind(), {5, 5});
    merge_run(folder / "merged");
}
