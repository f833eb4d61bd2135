"""CPU-seconds that each source of the core takes to compile, and what they add up to: ``make build-times``.

Builds the core anew in build/times, with this file before every call of the compiler, and prints a table. A template
that is compiled for every row layout and loss shows here first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "times"


def launch(log: Path, command: list[str]) -> int:
    """Run the compiler and note what it took."""
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    if "-c" in command:
        name = command[command.index("-o") + 1]
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{usage.ru_utime + usage.ru_stime:.2f}\t{name}\n")
    return os.waitstatus_to_exitcode(status)


def main() -> int:
    """Build, and print the table."""
    shutil.rmtree(BUILD, ignore_errors=True)
    log = BUILD / "times.tsv"
    launcher = f"{sys.executable};{__file__};--log;{log}"
    configure = ["cmake", "-S", str(ROOT), "-B", str(BUILD), f"-DPython_EXECUTABLE={sys.executable}"]
    if shutil.which("ninja"):
        configure.append("-GNinja")
    subprocess.run([*configure, f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"], check=True, stdout=subprocess.DEVNULL)
    begin = time.perf_counter()
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", str(BUILD), "--parallel", jobs], check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    times = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()]
    rows = sorted(((float(seconds), name) for seconds, name in times), reverse=True)
    for seconds, name in rows:
        print(f"{seconds:8.2f}  {name.replace('CMakeFiles/', '').replace('.dir/cpp/', '  ').removesuffix('.o')}")
    size = sum(path.stat().st_size for path in BUILD.glob("_core*.so"))
    print(f"{sum(seconds for seconds, _ in rows):8.2f}  CPU-seconds, {wall:.0f} s on {jobs} cores, {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(launch(Path(sys.argv[2]), sys.argv[3:]) if sys.argv[1:2] == ["--log"] else main())
