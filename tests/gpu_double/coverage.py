"""How much of the GPU executor the tests exercised on the test double: every library function that the module imports, every kernel body that it has.

usage: coverage.py MODULE CALLS      CALLS: what LOCKSTEP_DOUBLE_CALLS=CALLS collected over the test programs
Exits with 1 when a function was never called or a body never launched. Bodies are templates over element types; that each pair of types is launched is
not asked for, since no graph mixes fp16 with bf16."""

import re
import subprocess
import sys

LIBRARY = re.compile(r"^(cuda|cublasLt|cudnn|nccl)[A-Z]\w+$")
# Their answers are texts and numbers of versions, which the doubles give without counting.
TEXTS = re.compile(r"(GetErrorName|GetErrorString|GetLastError|GetLastErrorString|GetStatusName|GetStatusString|GetVersion|RuntimeGetVersion|DriverGetVersion)$")
BODY = re.compile(r"(run_\w+)<lockstep::gpu::\(anonymous namespace\)::(\w+)|(run_\w+)<lockstep::gpu::(\w+)")


def imported(module):
    lines = subprocess.run(["nm", "-D", "--undefined-only", module], capture_output=True, text=True, check=True).stdout.split()
    names = {name.split("@")[0] for name in lines}
    return {name for name in names if LIBRARY.match(name) and not TEXTS.search(name)}


def bodies(kernels):
    """Demangled: "run_rows Softmax" for each "void lockstep::gpu::run_rows<lockstep::gpu::(anonymous namespace)::Softmax<float> >(...)"."""
    text = subprocess.run(["c++filt"], input="\n".join(sorted(kernels)), capture_output=True, text=True, check=True).stdout
    found = set()
    for line in text.splitlines():
        match = BODY.search(line)
        found.add(" ".join(part for part in match.groups() if part) if match else line)
    return found


def main():
    functions = imported(sys.argv[1])
    notes = {"call": set(), "kernel": set(), "launch": set()}
    with open(sys.argv[2], encoding="utf-8") as lines:
        for line in lines:
            what, name = line.split(maxsplit=1)
            notes[what].add(name.strip())
    uncalled = sorted(functions - notes["call"])
    all_bodies, launched = bodies(notes["kernel"]), bodies(notes["launch"])
    unlaunched = sorted(all_bodies - launched)
    print(f"{len(functions) - len(uncalled)} of {len(functions)} library functions of the GPU executor were called on the test double")
    print(f"{len(all_bodies) - len(unlaunched)} of {len(all_bodies)} kernel bodies were launched, in {len(notes['launch'])} of {len(notes['kernel'])} combinations of types")
    for name in uncalled:
        print(f"  never called: {name}")
    for name in unlaunched:
        print(f"  never launched: {name}")
    return 1 if uncalled or unlaunched or not functions or not all_bodies else 0


if __name__ == "__main__":
    sys.exit(main())
