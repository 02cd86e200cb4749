"""The table of hostile files, and what makes and opens them."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import zoo

SOURCE = Path(zoo.__file__).parent / "data" / "stories260k"
SECRET, MARK = "secret.txt", "mark"  # beside a case's folder: what it must not read, and what its code would make
WORDS = "the quick secret 7391"


class Case(NamedTuple):
    """A folder or file of a stranger's.

    tries: what it would do.  published: where the kind is public.  peers: what others say or did.  write: makes it in
    an empty folder.  open: zoo's entry point.  says: a part of zoo's error; "": it is loaded, and the attack ignored.
    """

    tries: str
    published: str
    peers: str
    write: Callable[[Path], Any]
    open: Callable[[Path], Any]
    says: str


CASES: dict[str, Case] = {}


def add(
    name: str,
    tries: str,
    write: Callable[[Path], Any],
    says: str = "",
    published: str = "",
    peers: str = "",
    open: Callable[[Path], Any] | None = None,
) -> None:
    assert name not in CASES
    CASES[name] = Case(tries, published, peers, write, open or generate, says)


def generate(at: Path) -> Any:
    return zoo.load(at)("Once upon a time", max_new_tokens=2)


def chat(at: Path) -> Any:
    return zoo.load(at).chat([{"role": "user", "content": "hi"}], max_new_tokens=2)


def copy(at: Path) -> Path:
    """A language model that works, with code beside it that makes the mark."""
    shutil.copytree(SOURCE, at, dirs_exist_ok=True)
    code = f"from pathlib import Path\nPath({str(at.parent / MARK)!r}).touch()\nclass Evil: pass\n"
    for name in ("evil.py", "modeling_evil.py", "custom_generate/generate.py", "__init__.py"):
        (at / name).parent.mkdir(exist_ok=True)
        (at / name).write_text(code, encoding="utf-8")
    return at


def set_fields(at: Path, file: str = "config.json", **fields: Any) -> None:
    """A copy of the model, with fields of a JSON file replaced or added."""
    path = copy(at) / file
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**found, **fields}), encoding="utf-8")


def with_file(at: Path, name: str, data: bytes | str) -> Path:
    """A copy of the model, with a file replaced or added."""
    path = copy(at) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def link(at: Path, name: str, target: str = f"../{SECRET}") -> None:
    """A copy of the model with a link in place of a file."""
    path = copy(at) / name
    path.unlink(missing_ok=True)
    os.symlink(target, path)


class Touch:
    """A pickle that makes the mark."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def touch(at: Path, protocol: int = 2) -> bytes:
    return pickle.dumps(Touch(at.parent / MARK), protocol)
