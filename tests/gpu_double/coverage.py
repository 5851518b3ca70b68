"""How much of the GPU executor the tests exercised on the test double: every library function that the module imports, every kernel that it registers.

usage: coverage.py MODULE CALLS      CALLS: what LOCKSTEP_DOUBLE_CALLS=CALLS collected over the test programs
Exits with 1 when a function was never called, or fewer kernels were launched than the limit."""

import re
import subprocess
import sys

LIBRARY = re.compile(r"^(cuda|cublasLt|cudnn|nccl)[A-Z]\w+$")
# Texts of errors and versions: what they give is tested where the errors are.
LEAST_KERNELS = 0.9


def imported(module):
    lines = subprocess.run(["nm", "-D", "--undefined-only", module], capture_output=True, text=True, check=True).stdout.split()
    return {name.split("@")[0] for name in lines if LIBRARY.match(name.split("@")[0])}


def main():
    functions = imported(sys.argv[1])
    notes = {"call": set(), "kernel": set(), "launch": set()}
    with open(sys.argv[2], encoding="utf-8") as lines:
        for line in lines:
            what, name = line.split(maxsplit=1)
            notes[what].add(name.strip())
    missed = sorted(functions - notes["call"])
    kernels, launched = notes["kernel"], notes["launch"]
    print(f"{len(functions) - len(missed)} of {len(functions)} library functions of the GPU executor were called on the test double")
    for name in missed:
        print(f"  never called: {name}")
    share = len(launched) / max(1, len(kernels))
    print(f"{len(launched)} of {len(kernels)} kernels were launched ({100 * share:.1f} %)")
    for name in sorted(kernels - launched):
        print(f"  never launched: {name}")
    return 1 if missed or share < LEAST_KERNELS else 0


if __name__ == "__main__":
    sys.exit(main())
