"""device detect, machine detect and calibrate --measure on the test double of GPUs and without a driver, as a user types them."""

import json
import pathlib
import re
import tempfile
import time
import unittest

from gpu_run_test import gpus
from program import TINY, lockstep

SECONDS = 120   # that a command may take on a busy host; alone it takes a few


class Detect(unittest.TestCase):
    def ok(self, *arguments, **options):
        begin = time.monotonic()
        done = lockstep(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(time.monotonic() - begin, SECONDS)
        return done

    def test_the_gpus_are_listed_with_links_and_rates_that_are_no_measurement(self):
        shown = self.ok("device", "detect", environment=gpus(2, numa="0,1")).stdout
        for words in ("test double", "no measurement", "GPU-", "NVLinks of GPU 0: 4 to GPU 1", "bf16", "layer1 3x3", "host to device"):
            self.assertIn(words, shown)
        self.assertNotIn("Measured", shown)
        self.assertLessEqual(max(map(len, shown.splitlines())), 130)

    def test_the_json_has_every_gpu_and_the_rates_of_the_first(self):
        answer = json.loads(self.ok("device", "detect", "--json", environment=gpus(2)).stdout)
        self.assertEqual([gpu["ordinal"] for gpu in answer["gpus"]], [0, 1])
        self.assertTrue(answer["measured"]["is_test_double"])
        self.assertEqual({p["math"] for p in answer["measured"]["products"]}, {"fp32", "tf32", "fp16", "bf16"})
        self.assertGreater(answer["measured"]["memory_copy"], 0)

    def test_without_a_driver_devices_are_an_error_that_names_it(self):
        done = lockstep("device", "detect", environment=gpus(1, driver="none"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"driver")
        self.assertEqual(done.stdout, "")

    def test_a_machine_of_the_gpus_follows_the_cpu_host(self):
        with tempfile.TemporaryDirectory() as cache:
            shown = self.ok("machine", "detect", environment={**gpus(2), "XDG_CACHE_HOME": cache}).stdout
            self.assertRegex(shown, r"(?s)host: .*gpus: .*2 x test double")
            self.assertRegex(shown, r"GPU0\s+X\s+NV4")
            answer = json.loads(self.ok("machine", "detect", "--json", environment={**gpus(3), "XDG_CACHE_HOME": cache}).stdout)
            self.assertEqual(answer["name"], "host")
            self.assertEqual(answer["gpus"]["devices_per_node"], 3)

    def test_without_a_driver_a_machine_is_the_cpu_host_and_a_line_says_why(self):
        with tempfile.TemporaryDirectory() as cache:
            done = self.ok("machine", "detect", environment={**gpus(1, driver="none"), "XDG_CACHE_HOME": cache})
            self.assertIn("host: ", done.stdout)
            self.assertRegex(done.stderr, r"CPU host alone: .*driver")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "here.yaml"

    def calibrate(self, ranks, count, *more):
        done = lockstep("calibrate", "--measure", "--out", self.file, *more, ranks=ranks, environment=gpus(count))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_two_gpus_give_a_machine_file_that_simulate_and_show_read_back(self):
        done = self.calibrate(2, 2)
        self.assertIn("test double", done.stderr)
        for words in ("residual", "all-reduce", "all-gather", "8 B", "bf16 product", "Median residual"):
            self.assertIn(words, done.stdout)
        text = self.file.read_text()
        self.assertIn("test double", text.splitlines()[0])
        for constant in ("gemm", "gemm_half_work_gflop", "convolution", "memory", "kernel_overhead", "link", "collective_base", "per_hop"):
            self.assertRegex(text, rf'\n  {constant}:\n    value: .*\n    source: "no measurement of a GPU: .*test double')
        self.assertRegex(text, r'\n  attention:\n    value: .*\n    source: "not measured here')
        shown = lockstep("machine", "show", self.file)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("NV4", shown.stdout)
        simulated = lockstep("simulate", TINY, "--machine", self.file, "--ranks", "1,2", "--json")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        self.assertEqual([r["ranks"] for r in json.loads(simulated.stdout)["results"]], [1, 2])

    def test_a_file_that_is_there_is_kept_without_force(self):
        self.file.write_text("mine\n")
        done = lockstep("calibrate", "--measure", "--out", self.file, environment=gpus(1))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.file.read_text(), "mine\n")
        done = self.calibrate(None, 1, "--force")
        self.assertIn("one rank measures no collectives", done.stderr)
        self.assertRegex(self.file.read_text(), r'\n  link:\n    value: .*\n    source: "not measured here')

    def test_without_out_the_file_goes_to_stdout_alone(self):
        done = lockstep("calibrate", "--measure", environment=gpus(1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\Atitle: ")
        self.assertIn("residual", done.stderr)

    def test_a_cpu_host_is_calibrated_by_its_rates(self):
        environment = {"XDG_CACHE_HOME": str(self.folder)}
        done = lockstep("calibrate", "--measure", "--backend", "cpu", "--threads", "1", "--out", self.file, ranks=2, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        simulated = lockstep("simulate", TINY, "--machine", self.file, "--ranks", "2")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)

    def test_what_is_asked_wrongly_is_a_usage_error(self):
        self.assertEqual(lockstep("calibrate").returncode, 2)
        self.assertEqual(lockstep("calibrate", "--measure", "--backend", "tpu").returncode, 2)
        done = lockstep("calibrate", "--measure", "--backend", "gpu", environment=gpus(1, driver="none"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "driver")


if __name__ == "__main__":
    unittest.main()
