"""Real runs of a tiny model under mpirun: recorded, analysed, checked, resumed by the reader after a stop."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from program import PROGRAM, TINY, clean_environment, lockstep


class RunAndAnalyze(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tiny(self, name, ranks, *more):
        done = lockstep("run", TINY, "--out", self.folder / name, "--json", *more, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_series_of_1_2_and_4_ranks_is_analysed(self):
        for ranks in (1, 2, 4):
            result = self.run_tiny(str(ranks), ranks)["results"][0]
            self.assertEqual((result["ranks"], result["origin"], result["status"]), (ranks, "measured", "complete"))
        done = lockstep("analyze", *(self.folder / str(n) for n in (4, 1, 2)), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)["results"]
        self.assertEqual([r["ranks"] for r in results], [1, 2, 4])
        base = results[0]["throughput"]["value"]
        for result in results:
            value = result["throughput"]["value"]
            self.assertAlmostEqual(result["speedup"], value / base, places=9)
            self.assertAlmostEqual(result["efficiency"], value / base / result["ranks"], places=9)
        self.assertEqual(lockstep("analyze", *(self.folder / str(n) for n in (1, 2)), "--fail-below", "efficiency=100").returncode, 4)

    def test_the_numeric_check_passes_on_2_and_4_ranks(self):
        for ranks in (2, 4):
            done = lockstep("run", TINY, "--out", self.folder / f"n{ranks}", "--check", "numeric", ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("numeric check passed", done.stderr)

    def test_branches_and_cross_attention_run_for_real(self):
        for model in ("branches", "cross"):
            sizes = ("--set", f"model={pathlib.Path(TINY).parent / model}-model.yaml", "--set", "batch_per_rank=4")
            done = lockstep("run", TINY, *sizes, "--out", self.folder / model, "--check", "numeric", ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("numeric check passed", done.stderr)

    def test_the_wire_check_passes_on_2_ranks(self):
        done = lockstep("run", TINY, "--out", self.folder / "w", "--check", "wire", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wire check passed", done.stderr)

    def test_a_run_without_a_launcher_is_a_world_of_one(self):
        done = lockstep("run", TINY, "--out", self.folder / "alone", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["results"][0]["ranks"], 1)

    def test_runs_of_different_experiments_make_no_series(self):
        self.run_tiny("a", 1)
        self.run_tiny("b", 2, "--set", "batch_per_rank=4")
        done = lockstep("analyze", self.folder / "a", self.folder / "b")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("batch_per_rank", done.stderr)

    def start(self, name):
        return subprocess.Popen([PROGRAM, "run", TINY, "--out", str(self.folder / name), "--steps", "100000", "--quiet"],
                                env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_steps(self, name):
        for _ in range(200):
            time.sleep(0.1)
            state = lockstep("status", self.folder / name, "--json")
            if state.returncode == 0 and json.loads(state.stdout)["steps"] > 20:
                return
        self.fail("the run made no 20 steps in 20 s")

    def test_usr1_stops_gracefully_with_0(self):
        process = self.start("usr1")
        self.wait_for_steps("usr1")
        process.send_signal(signal.SIGUSR1)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        state = json.loads(lockstep("status", self.folder / "usr1", "--json").stdout)
        self.assertEqual(state["status"], "interrupted")
        self.assertEqual(lockstep("analyze", self.folder / "usr1").returncode, 5)

    def test_term_ends_with_1_and_keeps_the_steps(self):
        process = self.start("term")
        self.wait_for_steps("term")
        process.terminate()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        state = json.loads(lockstep("status", self.folder / "term", "--json").stdout)
        self.assertEqual(state["status"], "interrupted")
        self.assertGreater(state["steps"], 20)

    def test_kill_loses_no_finished_step_and_repair_copies_them(self):
        process = self.start("kill")
        self.wait_for_steps("kill")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        state = json.loads(lockstep("status", self.folder / "kill", "--json").stdout)
        done = lockstep("repair", self.folder / "kill")
        self.assertEqual(done.returncode, 0, done.stderr)
        repaired = json.loads(lockstep("status", self.folder / "kill-repaired", "--json").stdout)
        self.assertGreaterEqual(repaired["steps"], state["steps"])
        self.assertEqual(lockstep("analyze", self.folder / "kill-repaired").returncode, 5)


if __name__ == "__main__":
    unittest.main()
