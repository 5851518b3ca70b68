"""Every command answers, its JSON parses and holds the keys scripts rely on."""

import json
import unittest

import jsonschema

from program import SOURCE, TINY, lockstep

RESULT_KEYS = {"experiment", "model", "machine", "precision", "framework", "ranks", "origin", "status", "run", "step_time_s", "throughput", "speedup",
               "efficiency", "breakdown_s", "memory_bytes_per_rank", "mfu", "hfu"}


class Commands(unittest.TestCase):
    def ok(self, *arguments, **options):
        done = lockstep(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.ok(*arguments, "--json"))

    def test_help_and_version_answer(self):
        self.assertIn("lockstep run", self.ok("help"))
        self.assertIn("--check", self.ok("help", "run"))
        self.assertIn("--check", self.ok("run", "--help"))
        version = self.ok("--version")
        for library in ("mpi", "onednn", "hdf5"):
            self.assertIn(library, version)

    def test_devices_are_listed_and_shown_with_sources(self):
        self.assertIn("h100-sxm5-80gb", self.ok("device", "list"))
        shown = self.ok("device", "show", "v100-sxm2-16gb")
        self.assertIn("125", shown)
        self.assertIn("500", shown)   # the widely copied INT8 figure, named as wrong

    def test_the_dgx1v_matrix_has_single_and_double_links(self):
        shown = self.ok("machine", "show", "dgx-1v-16gb")
        for word in ("GPU7", "NV1", "NV2", "SYS"):
            self.assertIn(word, shown)
        self.assertIn("dgx-2", self.ok("machine", "list"))

    def test_models_show_published_counts(self):
        shown = self.ok("model", "show", "resnet50", "--batch", "32")
        self.assertIn("25,557,032", shown)
        self.assertIn("llama-3.1-8b", self.ok("model", "list"))

    def test_plan_show_lists_ops_and_memory(self):
        shown = self.ok("plan", "show", TINY)
        for word in ("all_reduce", "optimizer_update", "activations"):
            self.assertIn(word, shown.lower())
        self.json("plan", "show", TINY)

    def test_simulate_prints_the_documented_json(self):
        answer = self.json("simulate", SOURCE / "experiments/a100-vs-v100.yaml")
        jsonschema.validate(answer, json.loads((SOURCE / "src/report/results.schema.json").read_text()))
        self.assertGreaterEqual(len(answer["results"]), 8)
        for result in answer["results"]:
            self.assertEqual(RESULT_KEYS - set(result), set())
            self.assertEqual(result["origin"], "predicted")
            self.assertGreater(result["throughput"]["value"], 0)
            total = sum(result["breakdown_s"].values())
            self.assertAlmostEqual(total / result["step_time_s"]["median"], 1, delta=0.02)

    def test_equal_simulations_give_equal_bytes(self):
        arguments = ("simulate", SOURCE / "experiments/a100-vs-v100.yaml", "--json")
        self.assertEqual(self.ok(*arguments), self.ok(*arguments))

    def test_an_a100_beats_a_v100_and_neither_beats_the_wire(self):
        answer = self.json("simulate", SOURCE / "experiments/a100-vs-v100.yaml")
        by_key = {(r["model"], r["machine"], r["ranks"], r["precision"]): r for r in answer["results"]}
        for (model, machine, ranks, precision), result in by_key.items():
            if "a100" in machine:
                for other, slower in by_key.items():
                    if other[0] == model and "1v" in other[1] and other[2:] == (ranks, precision):
                        self.assertGreater(result["throughput"]["value"], slower["throughput"]["value"])
            if result["efficiency"] is not None:
                self.assertLessEqual(result["efficiency"], 1.0001)

    def test_print_config_names_the_origin_of_each_value(self):
        text = self.ok("simulate", TINY, "--print-config", "--set", "batch_per_rank=4")
        self.assertIn("--set", text)
        self.assertIn("tiny.yaml", text)
        self.assertIn("default", text)

    def test_a_model_without_kernels_is_simulated_and_not_run(self):
        sizes = ("--set", "model=transformer-xl-base", "--set", "batch_per_rank=1")
        refused = lockstep("run", TINY, *sizes)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("only the simulator takes its layer 'block.0.attention'", refused.stderr)
        self.assertIn("use lockstep simulate", refused.stderr)
        self.json("simulate", TINY, *sizes, "--machine", "dgx-a100-40gb")

    def test_every_shipped_experiment_is_sound(self):
        for path in sorted((SOURCE / "experiments").glob("*.yaml")):
            self.ok("check", path)


if __name__ == "__main__":
    unittest.main()
