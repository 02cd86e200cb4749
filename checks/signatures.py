"""Write what editors and type checkers read: zoo/keywords.py and zoo/__init__.pyi.

    python -m checks.signatures

The options of loading are said in `zoo.options.Options`, those of writing in `zoo.generate.GenerationConfig`, tasks and
their classes in `zoo/task_kinds.py`.  A type checker cannot follow a dataclass into keyword arguments, nor a table into
overloads, so these two files say it in its words; tests/test_types.py compares them with what this writes.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

from zoo.generate import GenerationConfig
from zoo.options import FIND, HUB, MODEL, NAMES, Options
from zoo.task_kinds import TASKS, TaskKind, find_tasks
from zoo.tasks import task_class
from zoo.tasks.image_embed import ImageEmbed
from zoo.tasks.zero_shot_image import DualEmbed

PACKAGE = Path(__file__).parents[1] / "zoo"
NOTE = "python -m checks.signatures"
KEYWORDS, STUB = PACKAGE / "keywords.py", PACKAGE / "__init__.pyi"
NOT_OF_A_CALL = ("num_return_sequences", "extra")  # fields of GenerationConfig


def keywords() -> str:
    """The text of zoo/keywords.py: the options as types of keyword arguments."""
    groups = [
        ("HubOptions", "TypedDict", HUB, "The options of finding files."),
        ("FindOptions", "HubOptions", FIND, "The options of finding files that a lock may name."),
        ("ModelOptions", "FindOptions", MODEL, "The options of a model without a task."),
        ("LoadOptions", "ModelOptions", NAMES, "All of `zoo.options.Options`."),
    ]
    types = {field.name: str(field.type) for field in dataclasses.fields(Options)}
    parts = [
        f'"""Keyword arguments for type checkers, written from dataclasses by `{NOTE}`."""',
        "from __future__ import annotations\n\nimport os\nfrom collections.abc import Mapping, Sequence\n"
        "from typing import Any, Literal, TypedDict",
    ]
    said: set[str] = set()
    for name, base, names, about in groups:
        parts.append(_typed_dict(name, base, about, {one: types[one] for one in names if one not in said}))
        said |= set(names)
    fields = {
        one.name: _call_type(str(one.type))
        for one in dataclasses.fields(GenerationConfig)
        if one.name not in NOT_OF_A_CALL
    }
    about = "The fields of `zoo.generate.GenerationConfig` that a call may set."
    parts.append(_typed_dict("GenerationOptions", "TypedDict", about, fields))
    return _format_code("\n\n\n".join(parts), KEYWORDS)


def stub() -> str:
    """The text of zoo/__init__.pyi: its functions as they are, `load` once for each name of a task."""
    source = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    functions = {one.name: one for one in source.body if isinstance(one, ast.FunctionDef)}
    overloads, modules = [], {}
    for name in dict.fromkeys(name for kind in TASKS for name in (kind.name, *kind.pipelines, *_translations(kind))):
        classes = {one.__name__: one.__module__ for kind in find_tasks(name) for one in _classes(kind)}
        modules |= classes
        overloads.append(
            f'@overload\ndef load(name_or_folder: Name, *, task: Literal["{name}"], **options: Unpack[LoadOptions])'
            f" -> {' | '.join(classes)}: ..."
        )
    overloads.append(f"@overload\n{_signature(functions.pop('load'))}")
    imports = [
        "import os\nfrom pathlib import Path\nfrom typing import Any, Literal, overload\n"
        "from typing_extensions import Unpack",
        "from .apps.markup import read_document as read_document",
        "from .apps.tables import TableExtractor as TableExtractor, extract_tables as extract_tables",
        "from .errors import ZooError as ZooError\nfrom .keywords import FindOptions, LoadOptions, ModelOptions",
        "from .pretrained import Pretrained\nfrom .tasks.base import Task",
        *(f"from .{module.removeprefix('zoo.')} import {name}" for name, module in modules.items()),
        "Name = str | os.PathLike[str]\n__version__: str",
    ]
    rest = [_signature(one) for name, one in functions.items() if not name.startswith("__")]
    return _format_code(f"# Written by `{NOTE}`.\n" + "\n".join(imports + overloads + rest), STUB)


def _typed_dict(name: str, base: str, about: str, fields: dict[str, str]) -> str:
    lines = "".join(f"    {field}: {type_}\n" for field, type_ in fields.items())
    return f'class {name}({base}, total=False):\n    """{about}"""\n\n{lines.rstrip()}'


def _call_type(type_: str) -> str:
    """What a call may give for a field: a tuple's one value, or any sequence of them."""
    inner = re.fullmatch(r"tuple\[(.*), \.\.\.\]", type_)
    if inner is None:
        return type_
    one = inner[1]
    return f"Sequence[{_call_type(one).split(' | ')[-1]}]" if one.startswith("tuple") else f"{one} | Sequence[{one}]"


def _classes(kind: TaskKind) -> list[type]:
    """The classes that a task's result may have, without those whose base class is among them."""
    found = [task_class(kind), *(task_class(kind, head) for head in kind.classes)]
    if found == [ImageEmbed]:
        found.append(DualEmbed)  # of CLIP and its like
    return [one for one in found if not any(issubclass(one, base) for base in found if base is not one)]


def _translations(kind: TaskKind) -> list[str]:
    """The pipelines' names that T5's config.json has; of other pairs of languages no type can be said."""
    return [f"translation_en_to_{code}" for code in ("de", "fr", "ro")] if kind.name == "translation" else []


def _signature(function: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"def {function.name}({ast.unparse(function.args)}){returns}: ...".replace(
        "Name,", "str | os.PathLike[str],"
    )


def _format_code(text: str, path: Path) -> str:
    """The text as ruff writes it."""
    for command in (["check", "--select=I", "--fix-only", "--quiet"], ["format"]):
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"],
            input=text, capture_output=True, text=True, encoding="utf-8", check=True,
        ).stdout  # fmt: skip
    return text


if __name__ == "__main__":
    KEYWORDS.write_text(keywords(), encoding="utf-8")
    STUB.write_text(stub(), encoding="utf-8")
