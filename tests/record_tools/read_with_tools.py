"""A run is readable with what people have: pandas in one line, h5py, h5dump. usage: read_with_tools.py WRITE_SAMPLE

Exit status 77 when h5py, pandas or h5dump is not installed.
"""

import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import pandas
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed (apt install python3-h5py python3-pandas)")
    sys.exit(77)
if shutil.which("h5dump") is None:
    print("skipped: h5dump is not installed (apt install hdf5-tools)")
    sys.exit(77)

EVENT_COLUMNS = ["step", "rank", "op", "micro_batch", "stream", "kind", "phase", "ready_ns", "start_ns", "end_ns", "bytes"]
STEP_COLUMNS = ["step", "rank", "begin_ns", "end_ns", "loss", "first_event", "events", "checksum"]


DEVICE_COLUMNS = ["step", "rank", "temperature_c", "time_ns", "sm_clock_hz", "memory_clock_hz", "power_w", "power_limit_w",
                  "throttle_reasons", "checksum"]


def check_devices(file, ranks):
    """make_step samples the devices of all ranks but 1: every fourth step not, and the clock of step 1 is not told."""
    assert ("device_samples" in file) == (ranks != [1])
    if ranks == [1]:
        return
    devices = pandas.DataFrame(file["device_samples"][:])
    assert list(devices.columns) == DEVICE_COLUMNS, devices.columns
    steps = pandas.DataFrame(file["steps"][:])
    assert (devices["step"] == steps["step"]).all() and (devices["rank"] == steps["rank"]).all()
    of_rank_0 = devices[devices["rank"] == 0]
    assert list(of_rank_0["sm_clock_hz"].isna()) == [False, True, False, True, False]
    assert (of_rank_0["power_w"][of_rank_0["step"] != 3] == 412.5).all()
    assert list(of_rank_0["throttle_reasons"]) == [-1, 0x424, 0x424, -1, 0x424], of_rank_0
    assert devices[devices["rank"] == 1]["sm_clock_hz"].isna().all()
    attributes = file["device_samples"].attrs
    assert dict(zip(attributes["field_names"], attributes["field_units"]))["power_w"] == "W"
    assert "0x4 power cap, 0x8 hardware slowdown" in attributes["throttle_reasons"], attributes["throttle_reasons"]


def check_tables(file, ranks):
    events = pandas.DataFrame(file["events"][:])
    steps = pandas.DataFrame(file["steps"][:])
    assert list(events.columns) == EVENT_COLUMNS, events.columns
    assert list(steps.columns) == STEP_COLUMNS, steps.columns
    assert len(steps) == 5 * len(ranks) and len(events) == 30 * len(steps)
    assert sorted(set(steps["rank"])) == ranks
    # make_step of tests/record: every span lasts 400 ns and begins 7 ns after it was ready; the loss of every third
    # step is NaN, of step 0 of rank 0 it is 1/3.
    assert ((events["end_ns"] - events["start_ns"]) == 400).all() and ((events["start_ns"] - events["ready_ns"]) == 7).all()
    assert steps["loss"].isna().sum() == len(ranks), steps
    if 0 in ranks:
        assert steps["loss"][0] == 1 / 3
    assert (events["bytes"] == 1000 * events["op"]).all()
    one = steps.iloc[-1]
    its = events.iloc[int(one["first_event"]): int(one["first_event"] + one["events"])]
    assert (its["step"] == one["step"]).all() and (its["rank"] == one["rank"]).all()


def check_enums(file):
    kinds = h5py.check_enum_dtype(file["events"].dtype["kind"])
    assert len(kinds) == 28 and {"gemm", "attention", "all_to_all", "device_to_host"} <= set(kinds), kinds
    phases = h5py.check_enum_dtype(file["events"].dtype["phase"])
    assert phases == {"input": 0, "forward": 1, "backward": 2, "gradient_sync": 3, "optimizer": 4}, phases
    name = {value: word for word, value in kinds.items()}
    ops = pandas.DataFrame(file["graph/ops"][:])
    for event in file["events"][:21]:
        assert name[event["kind"]] == ops["kind"][event["op"]].decode(), event
    statuses = h5py.check_enum_dtype(file["status"].dtype)
    assert {value: word for word, value in statuses.items()}[file["status"][()]] == "complete"


def check_attributes(file):
    for table in ("events", "steps", "graph/ops", "graph/tensors"):
        names, units = (list(file[table].attrs[key]) for key in ("field_names", "field_units"))
        assert names == list(file[table].dtype.names) and len(units) == len(names), table
        for name, unit in zip(names, units):
            assert not name.endswith("_ns") or unit == "ns", (name, unit)
            assert name != "bytes" or unit == "byte"
    assert file.attrs["schema_version"] == 1 and file.attrs["written_by"] == "lockstep"
    assert isinstance(file.attrs["experiment"], str)
    assert file["provenance"].attrs["env.SLURM_JOB_ID"] == "17"
    assert file.attrs["series_sha256"] == hashlib.sha256(b'{"model": "mlp"}').hexdigest()
    assert len(file["texts"]) == 3
    for name, text in file["texts"].items():
        assert hashlib.sha256(text[()]).hexdigest() == text.attrs["sha256"], name
    assert file["texts/model.yaml"][()].decode() == "name: mlp # \u00e9\n"
    assert file["steps_complete"][()] == 5


def check_h5dump(path):
    header = subprocess.run(["h5dump", "-H", path], capture_output=True, text=True, check=True).stdout
    assert '"kind"' in header and '"gemm"' in header, header[:2000]
    steps = subprocess.run(["h5dump", "-d", "/steps", path], capture_output=True, text=True, check=True).stdout
    assert "field_units" in steps and steps.count("nan") >= 1, steps[:2000]
    events = subprocess.run(["h5dump", "-d", "/events", "-c", "1", path], capture_output=True, text=True, check=True).stdout
    assert "gemm" in events and "input" in events, events


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        live, merged = (pathlib.Path(folder) / name for name in ("live", "merged"))
        for path, ranks in ((live / "rank-00000.h5", [0]), (live / "rank-00001.h5", [1]), (merged / "run.h5", [0, 1])):
            with h5py.File(path, "r") as file:
                check_tables(file, ranks)
                check_devices(file, ranks)
                check_enums(file)
                check_attributes(file)
            check_h5dump(str(path))
            print(f"{path.name}: read with pandas {pandas.__version__}, h5py {h5py.__version__} and h5dump")


main()
