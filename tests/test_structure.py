"""The plan of the house, kept: who may import whom, what an import costs, and that every public name is documented."""

import ast
import inspect
import re
import sys
from pathlib import Path

import processes
import pytest

import pegasos
from pegasos import experiments, io, losses, solvers

pytestmark = pytest.mark.unsanitized

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pegasos"
MODULES = sorted(SOURCE.rglob("*.py"))

# Imports point down only: a module may import its own floor and those below.
FLOORS = [
    {"_core", "_devices", "_atomic", "_control_groups", "_cores", "_memory", "_threads"},
    {"_data", "losses"},
    {
        "_problem",
        "_dataset",
        "_targets",
        "_kernels",
        "_kernel_layout",
        "_frames",
        "_units",
        "_averages",
        "_kernel_means",
        "_pairs",
    },
    {
        "_certificate",
        "_trace",
        "_kernel_rows",
        "_kernel_rounding",
        "_definite",
        "_distinct",
        "_slant",
        "_span",
        "_stacked_span",
        "_preimage",
        "_reduced",
    },
    {
        "_engine",
        "_kernel_engine",
        "_kernel_problem",
        "_kernel_certificate",
        "_pair_problem",
        "_pair_visits",
        "_pair_stacks",
        "_pair_certificate",
        "_move",
    },
    {
        "solvers",
        "_lanes",
        "_normal",
        "_stochastic",
        "_bias_search",
        "_cutting_plane",
        "_interior_point",
        "_rehearsal",
        "_smoothed_newton",
        "_newton",
        "_auto",
        "_smo",
        "_whole_smo",
        "_lasvm",
        "_sbp",
        "_water_level",
        "_nystroem",
        "_working_set",
        "_kernel_blocks",
        "_kernel_pegasos",
        "_kernel_sdca",
    },
    {"_fingerprint", "_interrupt"},
    {"_fit", "_stop", "_checkpoint", "_stream", "_kernel_stream"},
    {"_estimator"},
    {"_linear", "_kernel_model", "_absent_classes"},
    {"linear", "kernel", "sequence", "path", "_basis", "_greedy"},
    {"_reference"},
    {"_pair_compression"},
    {"_sparse_path"},
    {"sparse"},
    {"plots", "io", "_report", "dask", "cli", "experiments", "__init__", "__main__"},
]
FLOOR = {name: k for k, floor in enumerate(FLOORS) for name in floor}
STANDALONE = {
    "_available",
    "_lazy",
    "_numbers",
    "_record",
    "_suggest",
    "datasets",
    "theory",
}  # need nothing of the house and may be used anywhere


def floor(module):
    return FLOOR.get(module, len(FLOORS) - 2 if module not in STANDALONE else 0)


def name_of(path):
    """The house's name for a file: its first part below the package."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path):
    """Every imported dotted name of a file, imports inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(path):
    """The modules of the house that a file imports."""
    for dotted in imports(path):
        top, _, rest = dotted.partition(".")
        if top == "pegasos" and rest:
            yield rest.split(".")[0]


def test_there_is_something_to_check():
    assert {"linear", "_fit", "solvers", "losses"} <= {name_of(path) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_imports_point_down(path):
    me = name_of(path)
    wrong = [other for other in own(path) if floor(other) > floor(me)]
    assert not wrong, f"{me} must not import {wrong}"


@pytest.mark.parametrize(
    ("package", "homes"),
    [
        ("matplotlib", {"plots"}),
        ("dask", {"dask"}),
        ("distributed", {"dask"}),
        ("onnx", {"io"}),
        ("safetensors", {"io", "_checkpoint"}),  # model files, and the state of a fit
    ],
)
def test_a_heavy_package_stays_at_home(package, homes):
    users = {name_of(path) for path in MODULES if any(d.split(".")[0] == package for d in imports(path))}
    assert users <= homes


def test_what_every_command_imports_first_is_light():
    """Arguments are checked before anything beyond the standard library is imported; so is the report."""
    heavy = ("numpy", "scipy", "sklearn")
    files = [
        SOURCE / "cli" / f"{name}.py" for name in ("__init__", "_parser", "_arguments", "_train_arguments", "report")
    ]
    for path in [*files, *(SOURCE / "_report").glob("*.py"), SOURCE / "_record.py", SOURCE / "_numbers.py"]:
        assert not [name for name in imports(path) if name.split(".")[0] in heavy], path.name


def test_nanobind_stays_in_bind():
    users = [
        p for p in (ROOT / "cpp").rglob("*.?pp") if re.search(r"nanobind|Python\.h", p.read_text(encoding="utf-8"))
    ]
    assert users
    assert all(path.parent.name == "bind" for path in users)


def test_the_core_neither_prints_nor_reads_the_clock():
    banned = re.compile(r"<iostream>|<cstdio>|<chrono>|<ctime>|std::cout|std::cerr|printf\s*\(")
    users = [p.name for p in (ROOT / "cpp" / "pegasos").rglob("*.?pp") if banned.search(p.read_text(encoding="utf-8"))]
    assert not users


def test_nothing_turns_on_fast_math():
    assert "-ffast-math" not in re.sub(r"#.*", "", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))


def test_importing_and_fitting_is_light():
    """Optional packages are imported when used, not before: without them everything else works."""
    code = """if True:
        import sys

        class Absent:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name in ("matplotlib", "pandas", "polars", "dask", "pyarrow", "onnx", "safetensors"):
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Absent)
        from pegasos import LinearSVC
        print(LinearSVC().fit([[0.0], [1.0]], [0, 1]).predict([[1.0]]))
    """
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[1]"
    assert done.stderr == ""


def test_tests_start_processes_in_one_place():
    """Elsewhere they would inherit ignored signals, outlive a test that is killed, or be waited for without end."""
    own = {"processes.py", "browser.py", Path(__file__).name}
    calls = re.compile(r"subprocess\.(run|Popen|call|check_call|check_output)\(|preexec_fn|os\.system\(")
    for path in Path(__file__).parent.glob("*.py"):
        found = None if path.name in own else calls.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.name}: use tests/processes.py instead of {found[0]}"


def public():
    for module in (pegasos, experiments, io, losses, solvers):
        for name in module.__all__:
            if not inspect.ismodule(thing := getattr(module, name)) and callable(thing):
                yield pytest.param(thing, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(public()))
def test_public_names_are_documented(thing):
    doc = inspect.getdoc(thing) or ""
    assert doc.splitlines()[0].strip()
    if thing not in (losses.Loss, solvers.Solver, solvers.KernelSolver):  # bases, which no user makes
        assert "Examples\n--------\n" in doc


def methods():
    for cls in (
        pegasos.LinearSVC,
        pegasos.LinearSVR,
        pegasos.SVC,
        pegasos.SVR,
        pegasos.SparsePath,
        pegasos.SparseSVC,
        pegasos.Trace,
    ):
        for name, method in vars(cls).items():
            if not name.startswith("_") and (callable(method) or hasattr(method, "__get__")):
                yield pytest.param(getattr(method, "fn", method), id=f"{cls.__name__}.{name}")


@pytest.mark.parametrize("method", list(methods()))
def test_public_methods_are_documented(method):
    assert (method.__doc__ or "").strip()


@pytest.mark.parametrize("module", [pegasos, experiments, io, losses, solvers], ids=lambda m: m.__name__)
def test_all_is_sorted_complete_and_true(module):
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_parameter_is_documented():
    for cls in (pegasos.LinearSVC, pegasos.LinearSVR, pegasos.SVC, pegasos.SVR, pegasos.SparseSVC, pegasos.sparsify):
        doc = inspect.getdoc(cls)
        missing = [p for p in inspect.signature(cls).parameters if not re.search(rf"\b{p}\b", doc)]
        assert not missing
