"""Bad input gets the documented exit code and a message that says where, what, why and what to do; all errors of a file at once."""

import pathlib
import tempfile
import unittest

from program import SOURCE, TINY, lockstep

GOOD = {"model": "resnet50", "machine": "dgx-a100-40gb", "ranks": "[1, 4]", "precision": "fp32", "batch_per_rank": "32"}


class BadInput(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text, name="experiment.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def experiment(self, **changes):
        keys = {**GOOD, **changes}
        return self.write("".join(f"{k}: {v}\n" for k, v in keys.items() if v is not None))

    def refused(self, code, *words, arguments):
        done = lockstep(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("terminate called", done.stderr)
        return done.stderr

    def check(self, path, *words, code=3):
        return self.refused(code, *words, arguments=["check", path])

    # -- the experiment file

    def test_a_good_file_passes(self):
        done = lockstep("check", self.experiment())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_unknown_key_is_placed_and_the_near_one_named(self):
        path = self.experiment(precison="fp32")
        self.check(path, f"{path}:6:1", "precison", "did you mean 'precision'")

    def test_a_duplicate_key_is_refused(self):
        path = self.write("model: resnet50\nbatch_per_rank: 8\nmodel: vgg16\n")
        self.check(path, f"{path}:3:1", "model")

    def test_a_size_without_unit_names_the_units(self):
        path = self.experiment(plan="{bucket: 25}")
        self.check(path, f"{path}:6", "25", "MiB")

    def test_a_time_where_a_size_belongs_is_refused(self):
        self.check(self.experiment(plan="{bucket: 25 ms}"), "25 ms", "MiB")

    def test_a_batch_of_zero_is_refused(self):
        path = self.experiment(batch_per_rank="0")
        self.check(path, f"{path}:5", "batch_per_rank")

    def test_negative_and_zero_ranks_are_refused(self):
        self.check(self.experiment(ranks="[1, -4]"), "ranks", "-4")
        self.check(self.experiment(ranks="0"), "ranks", "0")

    def test_all_errors_of_a_file_come_at_once(self):
        path = self.write("model: resnet51\nmachine: dgx-a100-40gb\nranks: [0]\nprecision: fp33\nbatch_per_rank: -1\nbogus: 1\n")
        message = self.check(path)
        for line in (1, 3, 4, 5, 6):
            self.assertIn(f"{path}:{line}:", message)

    def test_an_unknown_model_lists_near_names(self):
        self.check(self.experiment(model="resnet5"), "resnet5", "resnet50")

    def test_an_unknown_machine_lists_near_names(self):
        self.check(self.experiment(machine="dgx-a100-40g"), "dgx-a100-40gb")

    def test_more_ranks_than_the_machine_has_are_refused(self):
        self.check(self.experiment(ranks="[1, 16]"), "16", "8")

    def test_both_batches_or_none_are_refused(self):
        self.check(self.experiment(global_batch="64"), "batch_per_rank", "global_batch")
        self.check(self.experiment(batch_per_rank=None), "batch_per_rank", "global_batch")

    def test_a_global_batch_that_does_not_divide_is_refused(self):
        self.check(self.experiment(batch_per_rank=None, global_batch="30"), "30", "4")

    def test_plans_of_later_versions_are_refused_by_name(self):
        self.check(self.experiment(plan="{tp: 2}"), "tp", "1")

    def test_a_missing_file_is_named(self):
        self.refused(3, "nowhere.yaml", arguments=["check", self.folder / "nowhere.yaml"])

    def test_an_empty_file_and_broken_yaml_are_refused(self):
        self.check(self.write(""), "empty")
        path = self.write("model: [resnet50\nranks: 1\n")
        self.check(path, str(path))

    def test_set_is_checked_like_the_file(self):
        self.refused(3, "--set", "batch_per_rank", arguments=["check", self.experiment(), "--set", "batch_per_rank=0"])
        self.refused(2, "PATH=VALUE", arguments=["check", self.experiment(), "--set", "batch_per_rank"])

    # -- models

    def test_a_model_with_a_cycle_is_refused(self):
        model = self.write("name: loop\ninput: [3, 8, 8]\nlayers:\n"
                           "  - {name: a, op: relu, in: b}\n  - {name: b, op: relu, in: a}\n"
                           "  - {name: flat, op: flatten, in: b}\n  - {name: loss, op: softmax_loss, in: flat}\n", "loop.yaml")
        self.check(self.experiment(model=model), "cycle", "a", "b")

    def test_shapes_that_do_not_fit_are_refused(self):
        model = self.write("name: odd\ninput: [3, 8, 8]\nlayers:\n"
                           "  - {name: a, op: convolution, out: 4, kernel: 3, padding: 1}\n"
                           "  - {name: b, op: convolution, out: 8, kernel: 3, padding: 1}\n"
                           "  - {name: sum, op: add, in: [a, b]}\n"
                           "  - {name: flat, op: flatten}\n  - {name: loss, op: softmax_loss}\n", "odd.yaml")
        self.check(self.experiment(model=model), "sum", "[4, 8, 8]", "[8, 8, 8]")

    # -- what a CPU can't do

    def test_a_precision_the_cpu_cannot_run_names_one_it_can(self):
        self.refused(3, "fp16-amp", "precision=fp32", arguments=["run", TINY, "--set", "precision=fp16-amp", "--out", self.folder / "run"])
        self.assertFalse((self.folder / "run").exists())

    def test_a_step_that_does_not_fit_the_host_is_refused(self):
        self.refused(3, "needs", "GiB", arguments=["run", TINY, "--set", "model=llama-3.1-405b", "--out", self.folder / "run"])

    def test_a_prediction_that_does_not_fit_is_marked(self):
        done = lockstep("simulate", self.experiment(model="gpt3-175b", ranks="1", batch_per_rank="1"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("does not fit", done.stdout + done.stderr)

    # -- output folders

    def test_an_output_folder_that_exists_is_refused_and_kept(self):
        out = self.folder / "run"
        out.mkdir()
        (out / "precious.txt").write_text("kept")
        self.refused(3, str(out), arguments=["run", TINY, "--out", out])
        self.assertEqual((out / "precious.txt").read_text(), "kept")

    def test_an_output_folder_that_cannot_be_made_is_refused(self):
        blocker = self.write("a file", "blocker")
        self.refused(3, str(blocker), arguments=["run", TINY, "--out", blocker / "run"])

    # -- the command line

    def test_unknown_commands_and_options_are_usage_errors(self):
        self.refused(2, "simulat", "did you mean", arguments=["simulat", TINY])
        self.refused(2, "--stepz", "--steps", arguments=["run", TINY, "--stepz", "3"])
        self.refused(2, "--ste", arguments=["run", TINY, "--ste", "3"])
        self.refused(2, "--ranks", arguments=["simulate", TINY, "--ranks", "1,x"])
        self.refused(2, "usage", arguments=["run"])
        self.refused(2, "--backend", arguments=["run", TINY, "--backend", "tpu"])

    def test_the_gpu_backend_says_what_is_missing(self):
        # Either the build has no GPU executor or the host no driver: both name the way out.
        self.refused(1, "install", "--backend cpu", arguments=["run", TINY, "--backend", "gpu"])

    def test_a_run_that_is_not_there_is_named(self):
        for command in ("analyze", "status", "repair"):
            self.refused(3, str(self.folder / "none"), arguments=[command, self.folder / "none"])

    def test_a_usage_error_under_mpirun_is_printed_once(self):
        done = lockstep("run", TINY, "--stepz", "3", ranks=2)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("unknown option"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
