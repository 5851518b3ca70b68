"""lockstep run on the test double of GPUs, as a user types it: values, plans, devices, injected failures, and what is kept after them."""

import json
import os
import pathlib
import re
import tempfile
import time
import unittest

from program import SOURCE, TINY, clean_environment, lockstep

DOUBLE = os.environ["LOCKSTEP_DOUBLE_DIR"]


def gpus(count, **controls):
    """Environment of a host with so many GPUs; LOCKSTEP_DOUBLE_NAME=value for each of `controls`."""
    environment = {"LD_LIBRARY_PATH": DOUBLE, "LOCKSTEP_DOUBLE_CALLS": f"{DOUBLE}/calls.txt", "LOCKSTEP_DOUBLE_DEVICES": str(count), "OMP_WAIT_POLICY": "passive"}
    environment.update({f"LOCKSTEP_DOUBLE_{name.upper()}": str(value) for name, value in controls.items()})
    return environment


class GpuRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name) / "run"

    def run_on(self, ranks, environment, *more):
        return lockstep("run", TINY, "--backend", "gpu", "--out", self.out, *more, ranks=ranks, environment=environment)

    def state(self):
        return json.loads(lockstep("status", self.out, "--json").stdout)

    def assert_finished_steps_are_readable(self, least):
        for _ in range(100):  # a killed rank may take a moment to be gone
            state = self.state()
            if not state["alive"]:
                break
            time.sleep(0.1)
        self.assertFalse(state["alive"], state)
        self.assertGreaterEqual(state["steps"], least, state)
        repaired = lockstep("repair", self.out)
        self.assertEqual(repaired.returncode, 0, repaired.stderr)
        self.assertIn(lockstep("analyze", str(self.out) + "-repaired", "--json").returncode, (0, 5))

    # --- what works
    def test_runs_of_1_2_and_4_gpus_are_rehearsed_not_measured(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                self.out = self.out.with_name(f"run{ranks}")
                done = self.run_on(ranks, gpus(ranks), "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                result = json.loads(done.stdout)["results"][0]
                self.assertEqual((result["origin"], result["status"], result["ranks"]), ("rehearsed", "complete", ranks))
                self.assertIsNone(result["mfu"])
                self.assertTrue(any("test double" in warning for warning in result["warnings"]), result["warnings"])

    def test_a_table_says_that_nothing_was_measured(self):
        done = self.run_on(1, gpus(1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no measurement", done.stdout)
        self.assertNotRegex(done.stdout, r"\bmeasured\b")

    def test_wire_and_numeric_checks_pass(self):
        for ranks in (2, 4):
            for kind in ("wire", "numeric"):
                with self.subTest(ranks=ranks, kind=kind):
                    self.out = self.out.with_name(f"{kind}{ranks}")
                    done = self.run_on(ranks, gpus(ranks), "--check", kind, "--steps", "2")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"{kind} check passed", done.stderr)

    def test_a_rank_that_sees_its_own_gpu_alone_takes_it(self):
        command = ["bash", "-c", f'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK exec "$LOCKSTEP_PROGRAM" run {TINY} --backend gpu --out {self.out} --quiet']
        import subprocess
        done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", *command], capture_output=True, text=True, timeout=300, check=False,
                              env=clean_environment({**gpus(2), "LOCKSTEP_PROGRAM": os.environ["LOCKSTEP_PROGRAM"]}))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_record_says_what_nccl_and_the_gpus_were(self):
        done = self.run_on(2, {**gpus(2), "NCCL_ALGO": "Ring"}, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        import subprocess
        text = subprocess.run(["h5dump", "-A", str(self.out / "run.h5")], capture_output=True, text=True, check=True).stdout
        for words in ("test double", "NCCL_ALGO", "2.28"):
            self.assertIn(words, text)

    # --- devices
    def test_without_a_driver_gpu_fails_and_auto_takes_the_cpu_and_both_say_why(self):
        none = gpus(1, driver="none")
        done = self.run_on(None, none)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"driver")
        done = lockstep("run", TINY, "--out", self.out, environment=none)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"runs on the CPU: .*driver")

    def test_more_ranks_than_gpus_are_refused_before_nccl(self):
        done = self.run_on(2, gpus(1))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"rank 0.*rank 1|rank 1.*rank 0|2 ranks")
        self.assertNotIn("nccl", done.stderr.lower().replace("before nccl", ""))

    def test_a_batch_that_does_not_fit_the_gpu_is_refused(self):
        done = self.run_on(1, gpus(1, memory=2_000_000))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("what is free on test double", done.stderr)

    # --- failures: every one ends within its time, and finished steps stay
    def fails(self, expected, ranks=2, least_steps=0, within=60, timeout="8", **controls):
        begin = time.monotonic()
        done = self.run_on(ranks, gpus(ranks, exit="never", **controls), "--timeout", timeout, "--steps", "2000", "--quiet")
        self.assertLess(time.monotonic() - begin, within)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, expected)
        if least_steps:
            self.assert_finished_steps_are_readable(least_steps)
        return done.stderr

    def test_a_kernel_that_fails_is_named_with_code_and_text(self):
        self.fails(r"cudaLaunchKernel failed: \d+ cuda\w+ \(.+\) at \w+\.\w+:\d+", ranks=1, least_steps=1, fail="cudaLaunchKernel:4000:719")

    def test_a_collective_that_fails_is_named_with_the_last_error_of_nccl(self):
        errors = self.fails(r"nccl\w+.* failed", ranks=2, least_steps=1, fail="ncclAllReduce:40")
        self.assertRegex(errors, r"rank \d on ")
        self.assertRegex(errors, r"finished steps are kept")

    def test_a_collective_that_hangs_ends_by_the_watchdog_and_says_where(self):
        errors = self.fails(r"no step finished for 8 s", ranks=2, least_steps=1, hang="ncclAllReduce:40@1")
        self.assertRegex(errors, r"step \d+, .*op \S+ \([\d.]+ MB, stream \S+\) on GPU \d test double")

    def test_a_kernel_that_hangs_ends_by_the_watchdog(self):
        self.fails(r"no step finished for 8 s", ranks=1, least_steps=1, hang="cudaLaunchKernel:4000")

    def test_a_communicator_whose_peer_never_comes_times_out(self):
        self.fails(r"(?s)within|timed out|waited", ranks=2, hang="ncclCommInitRankConfig:1@1")

    def test_memory_that_can_not_be_had_is_an_error_on_all_ranks(self):
        self.fails(r"cudaMalloc of [\d.]+ GB for .* failed: 2 cudaErrorMemoryAllocation", ranks=2, fail="cudaMalloc:1:2")


class GpuPlans(unittest.TestCase):
    """Plans that executors run, on 4 GPUs under mpirun, compared with the unsplit step."""

    PLANS = {
        "tp 2, sequence": ["plan.tp=2", "plan.sequence_parallel=true"],
        "pp 2": ["plan.pp=2", "accumulation=2", "plan.microbatch=1"],
        "zero 3": ["plan.zero=3"],
        "cp 2": ["plan.cp=2"],
        "tp 2, pp 2": ["plan.tp=2", "plan.pp=2"],
    }

    def test_plans_give_the_unsplit_step(self):
        for name, settings in self.PLANS.items():
            with self.subTest(plan=name), tempfile.TemporaryDirectory() as folder:
                options = [word for setting in ["ranks=[4]", *settings] for word in ("--set", setting)]
                done = lockstep("run", TINY, "--backend", "gpu", "--out", f"{folder}/run", "--check", "numeric", "--steps", "2", *options, ranks=4,
                                environment=gpus(4))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, r"numeric check passed")


if __name__ == "__main__":
    unittest.main()
