"""Holds the folders of src/ against the floors that CMake was given, and outside libraries against their one folder.

usage: check_structure.py SRC FLOORS     FLOORS: one line per folder, "name: folder it may include ..."
"""

import pathlib
import re
import sys

# Outside headers by prefix and the one folder that may include them.
LIBRARIES = {
    "mpi.h": "world",
    "cuda": "gpu", "cublas": "gpu", "cudnn": "gpu", "nccl": "gpu", "nvml": "gpu", "nvtx": "gpu",
    "dnnl": "cpu", "oneapi/": "cpu", "omp.h": "cpu",
    "hdf5": "record", "H5": "record", "openssl/": "record",
    "yaml-cpp/": "config", "nlohmann/": "config",
    "pugixml": "machine", "hwloc": "machine",
    "Eigen/": "fit",
    "boost/math/": "fit", "boost/": "cli",   # the first that matches
    "gtest": "tests", "gmock": "tests", "benchmark/": "tests",
}
# Of these folders others see these headers only: the rest belongs to a module that may not be there.
SEEN_FROM_OUTSIDE = {"gpu": {"gpu/backend.hpp", "gpu/links.hpp", "gpu/measurement.hpp"}}
FORBIDDEN_NAMES = ("util", "common", "helper", "manager", "impl")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def read_floors(path):
    floors = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.strip():
            name, below = line.split(":", 1)
            floors[name.strip()] = below.split()
    return floors


def reachable(floors, name, seen=None):
    """The folder itself and every folder below it."""
    seen = {name} if seen is None else seen
    for below in floors.get(name, []):
        if below not in seen:
            seen.add(below)
            reachable(floors, below, seen)
    return seen


def library_folder(header):
    for prefix, folder in LIBRARIES.items():
        if header.startswith(prefix):
            return folder
    return None


def check_file(path, folder, floors, allowed):
    problems = []
    text = path.read_text()
    for bracket, header in INCLUDE.findall(text):
        if bracket == '"':
            other = header.split("/")[0]
            if other not in floors:
                problems.append(f"{path}: includes \"{header}\", which is in no folder of src/")
            elif other not in allowed:
                problems.append(f"{path}: {folder} may not include {other} (allowed: {', '.join(sorted(allowed))})")
            elif other != folder and header not in SEEN_FROM_OUTSIDE.get(other, {header}):
                problems.append(f"{path}: \"{header}\" is not seen outside {other}/")
        else:
            owner = library_folder(header)
            if owner is not None and owner != folder:
                problems.append(f"{path}: <{header}> belongs to {owner}/ only")
    is_header = path.suffix in (".hpp", ".cuh")
    if is_header and "#pragma once" not in text:
        problems.append(f"{path}: a header without #pragma once")
    if is_header and not text.startswith("// "):
        problems.append(f"{path}: a header opens with a sentence that says what it is")
    if any(path.stem == name or path.stem.endswith("_" + name) for name in FORBIDDEN_NAMES):
        problems.append(f"{path}: the name says nothing; name what it does")
    return problems


def check(src, floors):
    src = pathlib.Path(src)
    problems = []
    for name, below in floors.items():
        if name in reachable(floors, name, seen=set()) and any(name in reachable(floors, b) for b in below):
            problems.append(f"floors: {name} depends on itself")
    folders = sorted(p for p in src.iterdir() if p.is_dir())
    files = 0
    for folder in folders:
        if folder.name not in floors:
            problems.append(f"{folder}: a folder that CMake does not know as a floor")
            continue
        allowed = reachable(floors, folder.name)
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".cu", ".cuh"):
                files += 1
                problems += check_file(path, folder.name, floors, allowed)
    if files == 0:
        problems.append(f"{src}: no source files found")
    return problems, files


def main():
    floors = read_floors(sys.argv[2])
    problems, files = check(sys.argv[1], floors)
    for problem in problems:
        print(problem)
    print(f"{files} files in {len(floors)} floors, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
