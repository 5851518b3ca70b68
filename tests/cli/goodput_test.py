"""simulate says what failures and checkpoints leave of the throughput."""

import json
import pathlib
import tempfile
import unittest

import jsonschema

from program import SOURCE, lockstep

SCHEMA = json.loads((SOURCE / "src/report/results.schema.json").read_text())
EXPERIMENT = """model: gpt-small
machine: dgx-h100
ranks: [1, 8]
precision: bf16
batch_per_rank: 8
failures: {mtbf_per_gpu: 1000 h, checkpoint: {rate: 1 GB/s}, restart: 5 min, detect: 1 min}
"""


class Goodput(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "mine.yaml"
        self.path.write_text(EXPERIMENT)

    def simulate(self, *arguments):
        return lockstep("simulate", self.path, *arguments)

    def results(self, *arguments):
        done = self.simulate("--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, SCHEMA)
        return answer["results"]

    def test_goodput_is_found_for_each_rank_count(self):
        for result in self.results():
            found = result["goodput"]
            self.assertAlmostEqual(found["failures_per_day"], 24 * result["ranks"] / 1000)
            memory = result["memory_bytes_per_rank"]
            self.assertAlmostEqual(found["checkpoint_s"], (memory["parameters"] + memory["optimizer"]) / 1e9)
            self.assertAlmostEqual(sum(found["shares"].values()), 1)
            self.assertAlmostEqual(sum(found["expected_shares"].values()), 1)
            low, high = found["goodput"]["interval95"]
            self.assertLess(low - (high - low), found["goodput"]["expected"])
            self.assertGreater(high + (high - low), found["goodput"]["expected"])
            self.assertAlmostEqual(found["effective_throughput"]["value"], result["throughput"]["value"] * found["goodput"]["simulated"])
            self.assertAlmostEqual(found["interval_s"]["used"], found["steps_between_checkpoints"] * result["step_time_s"]["median"])

    def test_a_given_interval_is_used_and_a_list_makes_points(self):
        results = self.results("--set", "failures.interval=[10 min, 2 h]", "--ranks", "8")
        used = [result["goodput"]["interval_s"]["used"] for result in results]
        self.assertAlmostEqual(used[0], 600, delta=1)
        self.assertAlmostEqual(used[1], 7200, delta=1)

    def test_the_table_fits_eighty_columns(self):
        done = self.simulate()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("goodput under failures", done.stdout)
        self.assertIn("Young", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_equal_experiments_give_equal_bytes(self):
        self.assertEqual(self.simulate("--json").stdout, self.simulate("--json").stdout)

    def test_failures_that_make_progress_impossible_are_bad_input(self):
        done = self.simulate("--set", "failures.mtbf_per_gpu=2 min", "--set", "failures.restart=1 h")
        self.assertEqual(done.returncode, 3)
        self.assertIn("makes progress impossible", done.stderr)
        for bad in ("mtbf_per_gpu=0", "mtbf_per_gpu=-1 h", "checkpoint={rate: 0}", "interval=0"):
            self.assertEqual(self.simulate("--set", f"failures.{bad}").returncode, 3, bad)
        done = self.simulate("--set", "failures.interval=1 ms")
        self.assertEqual(done.returncode, 3)
        self.assertIn("shorter than a checkpoint", done.stderr)


if __name__ == "__main__":
    unittest.main()
