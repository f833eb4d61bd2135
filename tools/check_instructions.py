"""Prove that only what is dispatched has instructions that not every processor has: ``make check-simd``.

python tools/check_instructions.py BUILD_DIR looks at the object files of a build. Those compiled for an instruction set
(kernels_v3, kernels_v4) must define no function that a file for another has, too (inline functions and templates):
the linker keeps one of them for all. All others must have no AVX instruction.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

#: Every AVX instruction begins with a v; of the others only these do, which no compiler makes of C++.
AVX = re.compile(r"\t(v(?!err|erw|m)\w+)\s")


def output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def functions(path: Path) -> set[str]:
    """The functions of an object file that are visible to the linker, by their mangled names."""
    lines = (line.split() for line in output("nm", "--defined-only", str(path)).splitlines())
    return {words[2] for words in lines if len(words) == 3 and words[1] in "TW"}


def main(build: Path) -> int:
    """Print what is wrong; 0 if nothing is."""
    wrong, owner, objects = [], {}, sorted(build.rglob("*.o"))
    wide = {path: re.search(r"kernels_(v\d)", str(path.relative_to(build))) for path in objects}
    for path in sorted(objects, key=lambda path: wide[path] is not None):
        where, level = path.relative_to(build), wide[path][1] if wide[path] else "baseline"
        for name in functions(path):
            if owner.setdefault(name, level) != level:
                wrong.append(f"{where} shares {name} with files for {owner[name]}")
        if level == "baseline":
            found = sorted(set(AVX.findall(output("objdump", "-d", "--no-show-raw-insn", str(path)))))
            if found:
                wrong.append(f"{where} has {', '.join(found[:5])}")
    if not objects:
        wrong.append(f"no object files below {build}")
    print("\n".join(wrong) or f"{len(objects)} object files: only what is dispatched has AVX instructions")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
