"""An experiment that is one collective is predicted, executed and analysed in nccl-tests' figures."""

import json
import pathlib
import tempfile
import unittest

import jsonschema

from program import SOURCE, lockstep

SCHEMA = json.loads((SOURCE / "src/report/results.schema.json").read_text())


class Collective(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text):
        path = self.folder / "mine.yaml"
        path.write_text(text)
        return path

    def ok(self, *arguments, **options):
        done = lockstep(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def results(self, *arguments, **options):
        answer = json.loads(self.ok(*arguments, "--json", **options))
        jsonschema.validate(answer, SCHEMA)
        return answer["results"]

    def test_an_all_reduce_on_4096_gpus_is_near_the_ring_over_the_network(self):
        # 2 (512 - 1) / 512 x 1 GiB over 8 x 50 GB/s of a node is 5.36 ms; nothing is faster.
        found = self.results("simulate", SOURCE / "experiments/all-reduce-4096.yaml")[0]
        self.assertEqual(found["ranks"], 4096)
        self.assertGreater(found["collective"]["time_s"], 5.358e-3)
        self.assertLess(found["collective"]["time_s"], 2 * 5.358e-3)
        algorithm, bus = found["collective"]["algbw_bytes_per_s"], found["collective"]["busbw_bytes_per_s"]
        self.assertAlmostEqual(bus / algorithm, 2 * 4095 / 4096)
        self.assertAlmostEqual(found["throughput"]["value"], bus / 1e9)
        self.assertEqual(found["throughput"]["unit"], "GB/s busbw")

    def test_sizes_are_rows_of_one_table(self):
        shown = self.ok("simulate", SOURCE / "experiments/all-reduce-4096.yaml", "--set", "collective.bytes=[1 MiB, 1 GiB]",
                        "--ranks", "8,4096")
        self.assertEqual(shown.count("busbw GB/s"), 1)
        self.assertEqual(shown.count("1,048,576"), 2)

    def test_every_kind_runs_on_two_ranks_and_its_record_is_analysed(self):
        path = self.write("collective: {kind: all_reduce, bytes: 1 MiB}\nranks: [2]\nsteps: 5\nwarmup: 1\n")
        for kind in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"):
            out = self.folder / kind
            measured = self.results("run", path, "--set", f"collective.kind={kind}", "--backend", "cpu", "--out", out, ranks=2)[0]
            self.assertEqual(measured["collective"]["kind"], kind)
            self.assertEqual(measured["collective"]["buffer_bytes"], 1 << 20)
            self.assertGreater(measured["collective"]["algbw_bytes_per_s"], 0)
            again = self.results("analyze", out)[0]
            self.assertEqual(again["collective"], measured["collective"])
            self.assertEqual(again["model"], f"{kind} of 1 MiB")

    def test_the_wire_is_checked_and_the_numbers_of_a_model_are_not(self):
        path = self.write("collective: {kind: all_reduce, bytes: 64 KiB}\nranks: [2]\nsteps: 2\nwarmup: 0\n")
        done = lockstep("run", path, "--backend", "cpu", "--check", "wire", "--out", self.folder / "wire", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = lockstep("run", path, "--backend", "cpu", "--check", "numeric", "--out", self.folder / "numeric", ranks=2)
        self.assertEqual(done.returncode, 3)
        self.assertIn("a collective has none", done.stderr)

    def test_one_rank_and_keys_of_a_model_are_refused(self):
        path = self.write("collective: {kind: all_reduce, bytes: 1 MiB}\nranks: [2]\n")
        done = lockstep("run", path, "--backend", "cpu", "--out", self.folder / "one")
        self.assertEqual(done.returncode, 3)
        self.assertIn("2 ranks or more", done.stderr)
        done = lockstep("simulate", path, "--set", "batch_per_rank=4")
        self.assertEqual(done.returncode, 3)
        self.assertIn("doesn't apply to a collective", done.stderr)

    def test_check_plan_show_and_print_config_take_it(self):
        path = SOURCE / "experiments/all-reduce-4096.yaml"
        self.ok("check", path)
        self.assertIn("all_reduce", self.ok("plan", "show", path))
        self.assertIn("collective.bytes = 1 GiB", self.ok("simulate", path, "--print-config"))


if __name__ == "__main__":
    unittest.main()
