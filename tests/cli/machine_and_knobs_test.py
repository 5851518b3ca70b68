"""Machines of several kinds of nodes, faults and knobs: what predictions make of them, and what is refused."""

import json
import pathlib
import tempfile
import unittest

from program import TINY, lockstep

MACHINE = "{node: dgx-a100-80gb, count: 2, network: ib-hdr-8%s}"
MIXED = "{nodes: [{node: dgx-a100-80gb}, {node: dgx-h100}], network: ib-hdr-8}"


class MachineAndKnobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def experiment(self, machine=MACHINE % "", ranks=16):
        path = self.folder / "experiment.yaml"
        path.write_text(f"model: gpt-small\nmachine: {machine}\nranks: [{ranks}]\nprecision: bf16\nbatch_per_rank: 8\n")
        return path

    def simulate(self, path, *settings):
        arguments = [word for setting in settings for word in ("--set", setting)]
        done = lockstep("simulate", path, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["results"]

    def step(self, path, *settings):
        return self.simulate(path, *settings)[0]["step_time_s"]["median"]

    def refused(self, path, *words, settings=()):
        done = lockstep("check", path, *(word for setting in settings for word in ("--set", setting)))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a_slow_nic_of_one_node_slows_the_step(self):
        good = self.step(self.experiment())
        slow = self.step(self.experiment(MACHINE % ", faults: [{node: 1, nic: 3, rate: 0.1}]"))
        self.assertGreater(slow, good)

    def test_mixed_nodes_train_at_the_pace_of_the_slower_and_say_what_their_peak_is(self):
        mixed = self.simulate(self.experiment(MIXED))[0]
        alike = self.simulate(self.experiment())[0]
        self.assertAlmostEqual(mixed["step_time_s"]["median"] / alike["step_time_s"]["median"], 1, delta=0.05)
        self.assertIn("mean of mixed devices", mixed["peak_source"])
        self.assertLess(mixed["mfu"], alike["mfu"])

    def test_knobs_change_predictions(self):
        path = self.experiment()
        free = self.step(path)
        for knob in ("power_cap=200 W", "peer_to_peer=false", "nics_per_node=1", "link_rates.network=10 Gb/s"):
            self.assertGreater(self.step(path, f"knobs.{knob}"), free, knob)
        self.assertGreaterEqual(self.step(path, "knobs.nccl_algo=tree", "knobs.nccl_proto=ll"), free)

    def test_a_list_of_a_knob_makes_points_with_labels(self):
        results = self.simulate(self.experiment(), "knobs.power_cap=[400 W, 200 W]")
        self.assertEqual([result["label"] for result in results], ["knobs.power_cap=400 W", "knobs.power_cap=200 W"])
        done = lockstep("simulate", self.experiment(), "--set", "knobs.power_cap=[400 W, 200 W]", "--quiet")
        self.assertIn("knobs.power_cap=200 W", done.stdout)

    def test_machine_show_prints_kinds_and_faults(self):
        path = self.folder / "cluster.yaml"
        path.write_text("nodes: [{node: dgx-a100-80gb, count: 3}, {node: dgx-h100}]\nnetwork: ib-hdr-8\n"
                        "faults: [{node: 1, link: [gpu0, nvswitch0], missing: true}]\n")
        done = lockstep("machine", "show", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("Nodes 0, 2 of a100-sxm4-80gb", "Node 3 of h100-sxm5-80gb", "node 1: gpu0-nvswitch0 nvlink missing"):
            self.assertIn(word, done.stdout)
        shown = json.loads(lockstep("machine", "show", path, "--json").stdout)
        self.assertEqual([kind["nodes"] for kind in shown["kinds"]], [[[0, 0], [2, 2]], [[1, 1]], [[3, 3]]])

    def test_a_run_says_that_it_turns_no_knobs(self):
        done = lockstep("run", TINY, "--set", "knobs.nccl_algo=ring", "--out", self.folder / "run", "--steps", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("predictions alone turn knobs", done.stdout)

    def test_faults_that_make_no_sense_are_refused(self):
        self.refused(self.experiment(MACHINE % ", faults: [{node: 2, nic: 0, rate: 0.5}]"), ":2:", "no node 2")
        self.refused(self.experiment(MACHINE % ", faults: [{link: [gpu0, gpu1], rate: 0.5}]"), "no link joins gpu0 and gpu1")
        self.refused(self.experiment(MACHINE % ", faults: [{nic: 0, rate: 0}]"), "between 0 and 1")
        self.refused(self.experiment(MACHINE % ", faults: [{nic: 0, rate: -1 GB/s}]"), "negative")
        every = ", ".join(f"{{nic: {i}, missing: true}}" for i in range(8))
        self.refused(self.experiment(MACHINE % f", faults: [{every}]"), "without any NIC")
        self.refused(self.experiment("{nodes: [{node: dgx-2}, {node: dgx-h100}], network: ib-hdr-8}"), "same number")

    def test_knobs_that_make_no_sense_are_refused(self):
        path = self.experiment()
        self.refused(path, "above the 400 W", settings=["knobs.power_cap=500 W"])
        self.refused(path, "above 0", settings=["knobs.power_cap=0 W"])
        self.refused(path, "use 1 to 8", settings=["knobs.nics_per_node=9"])
        self.refused(path, "compute capability 9.0", settings=["knobs.nccl_algo=nvls"])
        self.refused(path, "NVLink", settings=["knobs.nccl_proto=ll128", "knobs.peer_to_peer=false"])
        self.refused(path, "above 0", settings=["knobs.link_rates.nvlink=0 GB/s"])
        self.refused(path, "did you mean 'power_cap'", settings=["knobs.power_cup=300 W"])


if __name__ == "__main__":
    unittest.main()
