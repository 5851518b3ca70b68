"""The structure check finds each kind of violation in a small tree made for it."""

import pathlib
import tempfile
import unittest

import check_structure

FLOORS = {"base": [], "world": ["base"], "step": ["base"], "gpu": ["step"], "cli": ["world", "step", "gpu"]}


class StructureTest(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_structure.check(folder, FLOORS)[0]

    def test_a_clean_tree_has_no_problems(self):
        self.assertEqual(self.problems({
            "base/a.hpp": "// A.\n#pragma once\n#include <vector>\n",
            "cli/b.cpp": '#include <boost/program_options.hpp>\n#include "base/a.hpp"\n#include "step/c.hpp"\n',
        }), [])

    def test_an_include_of_a_higher_floor_is_found(self):
        self.assertIn("may not include cli", self.problems({"base/a.cpp": '#include "cli/b.hpp"\n'})[0])

    def test_a_sibling_floor_that_is_not_below_is_found(self):
        self.assertIn("may not include world", self.problems({"step/a.cpp": '#include "world/b.hpp"\n'})[0])

    def test_a_library_in_the_wrong_folder_is_found(self):
        self.assertIn("belongs to world/ only", self.problems({"step/a.cpp": "#include <mpi.h>\n"})[0])

    def test_a_part_of_a_library_may_have_a_folder_of_its_own(self):
        header = "#include <boost/math/distributions/gamma.hpp>\n"
        self.assertIn("belongs to fit/ only", self.problems({"cli/a.cpp": header})[0])
        self.assertIn("belongs to cli/ only", self.problems({"base/a.cpp": "#include <boost/program_options.hpp>\n"})[0])

    def test_what_a_module_hides_is_not_seen_outside(self):
        self.assertEqual(self.problems({"cli/a.cpp": '#include "gpu/backend.hpp"\n#include "gpu/measurement.hpp"\n'}), [])
        self.assertIn("not seen outside gpu/", self.problems({"cli/a.cpp": '#include "gpu/kernels.hpp"\n'})[0])

    def test_an_unknown_folder_is_found(self):
        self.assertIn("does not know", self.problems({"stray/a.cpp": "int a;\n", "base/b.cpp": "int b;\n"})[0])

    def test_a_header_without_guard_or_sentence_and_an_empty_name_are_found(self):
        found = "\n".join(self.problems({"base/string_util.hpp": "#include <string>\n"}))
        for words in ("#pragma once", "opens with a sentence", "name says nothing"):
            self.assertIn(words, found)

    def test_an_empty_tree_is_a_problem(self):
        self.assertIn("no source files", self.problems({"base/readme.txt": "nothing"})[0])


if __name__ == "__main__":
    unittest.main()
