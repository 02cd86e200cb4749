"""Rules for the code as a whole."""

from __future__ import annotations

import ast
import functools
import graphlib
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "triton", "transformers", "scipy", "huggingface_hub", "tokenizers", "safetensors", "PIL")
HEAVY += ("openpyxl", "pandas")
FAMILIES = sorted(path for path in (ROOT / "zoo" / "models").rglob("*.py") if path.name != "__init__.py")
# What is worked out of config.json, on the host: Llama's frequencies are part of it.
MODELS = [path for path in FAMILIES if path.name not in ("config.py", "windows_config.py", "rope.py")]

# Methods that exist in both, and differ, or exist in one only.
ARRAY_METHODS = {
    *(
        "repeat",
        "transpose",
        "max",
        "min",
        "mean",
        "sum",
        "std",
        "var",
        "permute",
        "view",
        "size",
        "astype",
        "to",
        "copy",
    ),
    *(
        "clone",
        "flatten",
        "squeeze",
        "unsqueeze",
        "swapaxes",
        "argmax",
        "cumsum",
        "clip",
        "clamp",
        "expand",
        "take",
        "dot",
    ),
}


def loaded_after(code: str, *names: str) -> set[str]:
    """The modules among `modules` that a new interpreter has loaded after `code`."""
    script = f"{code}\nimport sys\nprint(*[n for n in {names!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_importing_zoo_loads_nothing_heavy():
    assert loaded_after("import zoo", *HEAVY) == set()


def test_running_a_model_on_numpy_never_loads_torch():
    code = (
        "import numpy as np\nfrom zoo.models.bert import BertConfig, BertModel\n"
        "config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,"
        " intermediate_size=8)\n"
        "BertModel.from_config(config)(np.ones((1, 3), int))"
    )
    assert loaded_after(code, *HEAVY) == set()


def test_loading_a_real_checkpoint_never_loads_torch(minilm):
    code = f"import zoo\nassert zoo.load({str(minilm)!r})('A text.').shape == (384,)"
    # The last three take a sixth of a load on Linux, and are for processes alone.
    needless = ("subprocess", "tempfile", "multiprocessing") if sys.platform == "linux" else ()
    assert loaded_after(code, "torch", "triton", "transformers", "scipy", *needless) == set()


def module(path: Path) -> str:
    return ".".join(part for part in path.relative_to(ROOT).with_suffix("").parts if part != "__init__")


NAMES = {module(path): path for path in (ROOT / "zoo").rglob("*.py")}


@functools.cache
def imports(path: Path) -> set[str]:
    """The modules that a file imports, in functions too; what only a type checker imports is none."""
    package, found = list(path.relative_to(ROOT).parts[:-1]), set()
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += node.orelse
            continue
        if isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parts, *(node.module or "").split(".")]).rstrip(".")
            # A name is a module of its own, or else one that is defined in `base`.
            found |= {full if (full := f"{base}.{name.name}") in NAMES else base for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        nodes += ast.iter_child_nodes(node)
    return found


CORE = (
    *(
        "errors",
        "warning",
        "typing",
        "options",
        "keywords",
        "optional",
        "peer_names",
        "plugins",
        "files",
        "guards",
        "config",
    ),
    *("task_kinds", "family", "model_types", "registry"),
    *(
        "quant",
        "ops",
        "weights",
        "nn",
        "cache",
        "rope",
        "trainable",
        "devices",
        "processes",
        "runner",
        "hub",
        "lock",
        "checkpoint",
    ),
    *("pretrained", "inputs", "models", "loading", "saving", "generate", "text", "images", "audio", "tasks"),
)
# The modules that import by a string: the core's three tables, its families, its tasks, and packages it can do without.
BY_STRING = {"zoo.plugins", "zoo.family", "zoo.tasks", "zoo.optional"}


def room(name: str) -> str:
    """The room of a module: a file or folder of the core, "engines/onnx", "apps/tables"; the face is "zoo"."""
    parts = name.split(".")[1:]
    return "/".join(parts[: 2 if parts[0] in ("engines", "apps") else 1]) if parts else "zoo"


def ring(place: str) -> str:
    """The ring of a room: "core", "engines", "apps", or "face" for `zoo` itself."""
    outer = place.partition("/")[0]
    return outer if outer in ("engines", "apps") else "core" if outer in CORE else "face"


def rooms() -> dict[str, set[str]]:
    """Each room with the rooms that it imports, in functions too; the face may import all of them."""
    graph: dict[str, set[str]] = {}
    for name, path in NAMES.items():
        own = graph.setdefault(room(name), set())
        own |= {room(other) for other in imports(path) & NAMES.keys()} - {room(name)}
    return {place: others - {"zoo"} for place, others in graph.items() if ring(place) != "face"}


def test_every_room_is_in_a_ring():
    assert {place for place in map(room, NAMES) if ring(place) == "face"} == {"zoo", "__main__"}


def test_no_import_goes_in_a_circle():
    graph = {name: imports(path) & NAMES.keys() - {name} for name, path in NAMES.items()}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names the modules


def test_no_circle_of_rooms():
    graphlib.TopologicalSorter(rooms()).prepare()


def test_rings_import_inwards():
    allowed = {"core": {"core"}, "engines": {"core", "engines"}, "apps": {"core", "engines", "apps"}}
    outwards = {
        f"{place} -> {other}"
        for place, others in rooms().items()
        for other in others
        if ring(other) not in allowed[ring(place)]
    }
    assert not outwards


def test_the_core_does_not_import_its_face():
    faced = {name for name, path in NAMES.items() if ring(room(name)) != "apps" and "zoo" in imports(path) - {name}}
    assert not faced - {"zoo.__main__"}


def test_modules_are_imported_by_name_alone_where_a_table_says_so():
    found = {
        name for name, path in NAMES.items() if re.search(r"\bimport_module\(|__import__\(", path.read_text("utf-8"))
    }
    assert found == BY_STRING


def test_importing_a_model_reaches_few_files():
    script = "import sys, zoo.models.bert\nprint(sum(n.partition('.')[0] == 'zoo' for n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(done.stdout) <= 44


def test_a_load_finds_looks_builds_and_wraps(minilm):
    """The rooms, in order, whose functions are given the name, or the checkpoint that it has become."""
    import zoo
    from zoo.checkpoint.files import Checkpoint
    from zoo.checkpoint.names import CheckpointRef
    from zoo.checkpoint.task import CheckpointTask

    given_name, rooms = str(minilm), []

    def called(frame, event, _):
        code, place = frame.f_code, frame.f_globals.get("__name__")
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [frame.f_locals.get(one) for one in arguments] if event == "call" and place in NAMES else []
        if any(one is given_name or isinstance(one, CheckpointRef | Checkpoint | CheckpointTask) for one in given):
            rooms.append(room(place))

    sys.setprofile(called)
    try:
        zoo.load(given_name)
    finally:
        sys.setprofile(None)
    assert [place for place, _ in itertools.groupby(rooms)] == [
        *("zoo", "tasks", "hub", "checkpoint"),  # finds the files, and looks at their config, modules and task
        *("tasks", "loading", "pretrained", "checkpoint"),  # builds the model
        "tasks",  # and wraps it
    ]


def test_programs_around_the_package_import_what_there_is():
    """In functions too, which nobody may call for months."""
    folders = ("zoo", "parity", "benchmarks", "checks", "training", "tests")
    own = {module(path): path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    missing = set()
    for path in (path for folder in folders[1:5] for path in (ROOT / folder).rglob("*.py")):
        package = path.relative_to(ROOT).parts[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            parts = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*parts, *filter(None, [node.module])])
            for name in (one.name for one in node.names if base.partition(".")[0] in folders):
                is_there = f"{base}.{name}" in own or (base in own and holds(own[base], name))
                missing |= set() if is_there else {f"{path.relative_to(ROOT)}:{node.lineno}: {name} of {base}"}
    assert not missing


@functools.cache
def words_of(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def holds(path: Path, name: str) -> bool:
    """True if a file has the name, or takes all names of others."""
    return name in words_of(path) or "import *" in path.read_text(encoding="utf-8")


def test_families_know_no_library_of_a_device():
    outside = {path: {name.partition(".")[0] for name in imports(path)} for path in FAMILIES}
    assert not [path for path, names in outside.items() if names & {"torch", "triton", "transformers"}]


@pytest.mark.parametrize("family", sorted({path.parent.name for path in MODELS}))
def test_models_compute_through_ops_alone(family):
    """And are read in one go, and say where they come from."""
    for path in (path for path in MODELS if path.parent.name == family):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for node in ast.walk(tree):
            line = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
                assert module.partition(".")[0] not in ("numpy", "torch", "triton", "transformers"), line
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of_ops = isinstance(node.func.value, ast.Name) and node.func.value.id in ("ops", "np")
                assert of_ops or node.func.attr not in ARRAY_METHODS, f"{line}: .{node.func.attr}() of an array"
        assert len(text.splitlines()) <= 250, path.name
        doc = ast.get_docstring(tree) or ""
        assert "https://" in doc, path.name
        assert "Shapes:" in doc, path.name
