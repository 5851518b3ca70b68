"""plan search: what it prints, what it refuses, and what it keeps when it is stopped."""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import tempfile
import time
import unittest

import jsonschema

from program import PROGRAM, SOURCE, clean_environment, lockstep

SMALL = """
model: {base: gpt-small, layers: 12, hidden: 1024, heads: 16, vocab: 51200}
machine: {node: dgx-a100-80gb, count: 2, network: ib-hdr-8}
ranks: [16]
precision: bf16
framework: megatron-lm-2021
global_batch: 64
"""


class PlanSearch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, more="", text=SMALL):
        path = pathlib.Path(self.folder.name) / "mine.yaml"
        path.write_text(text + more)
        return path

    def search(self, *arguments, more=""):
        return lockstep("plan", "search", self.file(more), *arguments)

    def test_it_ranks_plans_and_ends_with_one_to_paste(self):
        done = self.search("--top", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("best plans", "Pareto front", "best plan with each value", "combinations", "why slower", "MFU"):
            self.assertIn(word, done.stdout)
        plan = re.search(r"^plan: \{.*\}$", done.stdout, re.MULTILINE).group()
        pasted = lockstep("simulate", self.file(plan + "\n"), "--json")
        self.assertEqual(pasted.returncode, 0, pasted.stderr)
        best = json.loads(lockstep("plan", "search", self.file(), "--json", "--top", "1").stdout)["results"][0]["ranking"][0]
        self.assertEqual("plan: " + best["plan"], plan)
        simulated = json.loads(pasted.stdout)["results"][0]["step_time_s"]["median"]
        self.assertAlmostEqual(best["result"]["step_time_s"]["median"] / simulated, 1, delta=1e-3)

    def test_json_follows_its_schema_and_holds_predictions_like_simulate(self):
        done = self.search("--json", more="search: {tp: [2, 4, 16], pp: [1, 4], zero: [0, 1], microbatch: [1, 2]}\n")
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, json.loads((SOURCE / "src/report/search.schema.json").read_text()))
        results = [plan["result"] for plan in answer["results"][0]["ranking"]]
        jsonschema.validate({"schema_version": 1, "warnings": [], "results": results},
                            json.loads((SOURCE / "src/report/results.schema.json").read_text()))
        times = [result["step_time_s"]["median"] for result in results]
        self.assertEqual(times, sorted(times))

    def test_the_space_is_narrowed_by_the_file_and_by_set(self):
        done = self.search("--json", "--set", "search.zero=[1]", more="search: {tp: [2, 4], pp: 2, recompute: none}\n")
        answer = json.loads(done.stdout)["results"][0]
        self.assertIn("tp: [2, 4]", answer["search"]["space"])
        self.assertIn("pp: [2]", answer["search"]["space"])
        self.assertIn("zero: [1]", answer["search"]["space"])

    def test_a_limit_is_kept(self):
        answer = json.loads(self.search("--json", "--memory", "6 GiB").stdout)["results"][0]
        self.assertEqual(answer["search"]["limit_source"], "--memory")
        for plan in answer["ranking"] + answer["front"]:
            self.assertLessEqual(plan["result"]["memory_bytes_per_rank"]["total"], 6 * 2**30)

    def test_exhaustive_finds_the_same_best_plan(self):
        space = "search: {tp: [1, 2, 4], pp: [1, 2], vpp: 1, zero: [0, 1], microbatch: [1, 2], recompute: none}\n"
        quick = json.loads(self.search("--json", more=space).stdout)["results"][0]
        slow = json.loads(self.search("--json", "--exhaustive", more=space).stdout)["results"][0]
        self.assertTrue(slow["search"]["exhaustive"])
        self.assertEqual(slow["search"]["simulated"], slow["search"]["plans"])
        self.assertEqual(quick["ranking"][0]["plan"], slow["ranking"][0]["plan"])

    def test_bad_input_is_refused_with_what_to_do(self):
        for arguments, more, code, words in (
            (["--memory", "10 MiB"], "", 3, ["fits 10 MiB", "the smallest"]),
            ([], "search: {tp: 3}\n", 3, ["empty search space"]),
            ([], "search: {tpp: 3}\n", 3, ["did you mean 'tp'"]),
            ([], "search: {zero: [0, 7]}\n", 3, ["from 0 to 3"]),
            ([], "search: {tp: []}\n", 3, ["empty list"]),
            (["--set", "search.recompute=ful"], "", 3, ["did you mean 'full'"]),
            (["--ranks", "17"], "", 3, ["16"]),
            (["--ranks", "0"], "", 2, ["at least 1"]),
            (["--memory", "80"], "", 2, ["--memory"]),
            (["--memory", "0"], "", 2, ["--memory"]),
            (["--top", "0"], "", 2, ["at least 1"]),
            (["--tops", "3"], "", 2, ["did you mean"]),
        ):
            done = self.search(*arguments, more=more)
            self.assertEqual(done.returncode, code, (arguments, more, done.stderr))
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_progress_is_on_stderr_and_can_be_silenced(self):
        space = "search: {tp: [2, 4], pp: 2, recompute: none}\n"
        loud = self.search(more=space)
        self.assertIn("a second", loud.stderr)
        self.assertNotIn("\r", loud.stderr)
        self.assertEqual(self.search("--quiet", more=space).stderr, "")

    def test_progress_is_redrawn_on_a_terminal_only(self):
        ours, theirs = pty.openpty()
        path = self.file("search: {tp: [2, 4], pp: 2, recompute: none}\n")
        with subprocess.Popen([PROGRAM, "plan", "search", str(path)], stdout=subprocess.DEVNULL, stderr=theirs, env=clean_environment()) as child:
            os.close(theirs)
            drawn = b""
            try:
                while part := os.read(ours, 4096):
                    drawn += part
            except OSError:
                pass   # the terminal is closed
            self.assertEqual(child.wait(), 0)
        os.close(ours)
        self.assertIn(b"\rplan search", drawn)

    def test_an_interrupted_search_prints_what_it_has_and_says_so(self):
        path = SOURCE / "experiments/search-gpt3-64.yaml"
        with subprocess.Popen([PROGRAM, "plan", "search", str(path), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=clean_environment()) as child:
            for line in child.stderr:
                if re.search(r"simulations [1-9]\d*/.*best", line):
                    break
            child.send_signal(signal.SIGINT)
            begin = time.monotonic()
            answer = json.loads(child.stdout.read())
            child.stderr.read()
            self.assertEqual(child.wait(), 5)
            self.assertLess(time.monotonic() - begin, 60)
        result = answer["results"][0]
        self.assertEqual(result["search"]["status"], "stopped")
        self.assertGreaterEqual(len(result["ranking"]), 1)
        self.assertTrue(answer["warnings"])


if __name__ == "__main__":
    unittest.main()
