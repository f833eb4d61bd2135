"""The plan of the house, kept: who may import whom, what an import costs, and that every public name is documented."""

import ast
import inspect
import re
import sys
from pathlib import Path

import processes
import pytest

import pegasos
from pegasos import experiments, io, losses, metrics, solvers

pytestmark = pytest.mark.unsanitized

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pegasos"
MODULES = sorted(SOURCE.rglob("*.py"))

#: The rooms from the ground up. A module imports from its own room and from those below, never from beside or above.
ROOMS = [
    {"util"},
    {"rows", "losses"},
    {"kernels"},
    {"problems"},
    {"fit"},
    {"plots", "solvers"},
    {"estimators"},
    {"sparse"},
    {"io", "report"},
    {"experiments"},
    {"cli"},
]
LEVEL = {room: k for k, rooms in enumerate(ROOMS) for room in rooms}
#: What needs nothing of the house, and what wires it.
ALONE, WIRING = {"datasets", "metrics", "theory", "_core"}, {"", "__main__"}

#: The same for the core; dispatch.cpp, which chooses an instruction set for all of it, is above.
CORE = [{"simd"}, {"core"}, {"linear", "kernel", "structured", "text"}, {"dispatch.cpp"}]
CORE_LEVEL = {room: k for k, rooms in enumerate(CORE) for room in rooms}


def dotted(path):
    """The name of a module below the package; the package itself is ''."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted(path): path for path in MODULES}


def room_of(name):
    return name.split(".")[0]


def imports(path):
    """Every imported dotted name of a file, imports inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(path):
    """The modules of the house that a file imports: the longest names that are modules."""
    for full in imports(path):
        top, _, rest = full.partition(".")
        if top == "pegasos" and rest:
            while rest and rest not in NAMES and rest != "_core":
                rest = rest.rpartition(".")[0]
            yield rest


def test_every_file_has_a_room():
    assert {room_of(name) for name in NAMES} == set(LEVEL) | ALONE - {"_core"} | WIRING


@pytest.mark.parametrize("name", sorted(set(NAMES) - WIRING))
def test_imports_point_down(name):
    me = room_of(name)
    for other in map(room_of, own(NAMES[name])):
        if me in ALONE:
            assert other in ("", "util", me), f"{name} must import nothing of the house, and imports {other}"
        elif other not in ALONE | {"", me}:
            assert LEVEL[other] < LEVEL[me], f"{name} must not import {other}"


def test_imports_inside_functions_dodge_nothing():
    """Modules of the house are imported at the top; commands alone import them late, for their arguments come first."""
    for name, path in NAMES.items():
        if room_of(name) == "cli":
            continue
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        for function in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, functions)):
            for node in ast.walk(function):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module] if isinstance(node, ast.ImportFrom) else []
                assert not [n for n in names if n.split(".")[0] == "pegasos"], f"{name} imports inside a function"


def test_no_import_goes_round():
    """Packages whose names are lazy count as what is imported from them."""
    graph = {name: {other for other in own(path) if other not in ("", "_core", name)} for name, path in NAMES.items()}
    done, open_ = set(), []

    def visit(name):
        assert name not in open_, f"imports go round: {' -> '.join([*open_[open_.index(name) :], name])}"
        if name not in done:
            open_.append(name)
            for other in sorted(graph[name]):
                visit(other)
            open_.pop()
            done.add(name)

    for name in sorted(graph):
        visit(name)


def test_tests_mirror_the_packages():
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == {room for room in [*LEVEL, *ALONE] if (ROOT / "tests" / room).is_dir()}


CORE_FILES = sorted((ROOT / "cpp" / "pegasos").rglob("*.?pp"))


def core_room(path):
    return path.relative_to(ROOT / "cpp" / "pegasos").parts[0]


def test_every_file_of_the_core_has_a_room():
    assert {core_room(path) for path in CORE_FILES} == set(CORE_LEVEL)


@pytest.mark.parametrize("path", CORE_FILES, ids=lambda p: p.relative_to(ROOT / "cpp").as_posix())
def test_includes_point_down(path):
    included = re.findall(r'#include "pegasos/([^"]+)"', path.read_text(encoding="utf-8"))
    me = core_room(path)
    for other in (name.split("/")[0] for name in included):
        assert other == me or CORE_LEVEL[other] < CORE_LEVEL[me], f"{path.name} must not include {other}"


@pytest.mark.parametrize(
    ("package", "homes"),
    [
        ("matplotlib", {"plots"}),
        ("dask", {"dask"}),
        ("distributed", {"dask"}),
        ("onnx", {"io"}),
        ("safetensors", {"io", "fit"}),  # model files, and the state of a fit
    ],
)
def test_a_heavy_package_stays_at_home(package, homes):
    users = {room_of(name) for name, path in NAMES.items() if any(d.split(".")[0] == package for d in imports(path))}
    assert users <= homes


def test_what_every_command_imports_first_is_light():
    """Arguments are checked before anything beyond the standard library is imported; so is the report."""
    heavy = ("numpy", "scipy", "sklearn")
    files = [
        SOURCE / "cli" / f"{name}.py" for name in ("__init__", "_parser", "_arguments", "_train_arguments", "report")
    ]
    report = sorted((SOURCE / "report").glob("*.py"))
    assert report
    for path in [*files, *report, SOURCE / "util/numbers.py"]:
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
    for path in Path(__file__).parent.rglob("*.py"):
        found = None if path.name in own else calls.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.name}: use tests/support/processes.py instead of {found[0]}"


def test_the_walks_of_the_architecture_lead_somewhere():
    """Every file is there, and has what the walk says it has."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = re.search(r"^## Five walks\n(.*?)^## ", text, re.S | re.M)[1]
    steps = re.findall(r"`([a-z_/]+\.(?:py|[ch]pp))`((?:,? `[\w.]+`)*)", walks)
    assert len(steps) > 30
    for name, members in steps:
        path = ROOT / name if name.startswith("cpp/") else SOURCE / name
        source = path.read_text(encoding="utf-8")
        for member in re.findall(r"`(?:\w+\.)?(\w+)`", members):
            assert re.search(rf"(def|class) {member}\b", source), f"{name} has no {member}"


def public():
    for module in (pegasos, experiments, io, losses, metrics, solvers):
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
        pegasos.SequenceSVC,
        pegasos.StructuredSVC,
        pegasos.Trace,
    ):
        for name, method in vars(cls).items():
            if not name.startswith("_") and (callable(method) or hasattr(method, "__get__")):
                yield pytest.param(getattr(method, "fn", method), id=f"{cls.__name__}.{name}")


@pytest.mark.parametrize("method", list(methods()))
def test_public_methods_are_documented(method):
    assert (method.__doc__ or "").strip()


@pytest.mark.parametrize("module", [pegasos, experiments, io, losses, metrics, solvers], ids=lambda m: m.__name__)
def test_all_is_sorted_complete_and_true(module):
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_parameter_is_documented():
    for cls in (
        pegasos.LinearSVC,
        pegasos.LinearSVR,
        pegasos.SVC,
        pegasos.SVR,
        pegasos.SparseSVC,
        pegasos.SequenceSVC,
        pegasos.StructuredSVC,
        pegasos.PystructOracle,
        pegasos.sparsify,
    ):
        doc = inspect.getdoc(cls)
        missing = [p for p in inspect.signature(cls).parameters if not re.search(rf"\b{p}\b", doc)]
        assert not missing
