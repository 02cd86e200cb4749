"""What a command line names: files, folders of documents, patterns, stdin."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from .files import find, is_uri

SUFFIXES = (".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".webp", ".bmp", ".ppm", ".pgm", ".pbm")


class Input(NamedTuple):
    """A document that is to be read."""

    path: str
    name: str  # of what is written of it, without a suffix: its place below the folder that was named


def find_inputs(given: Sequence[str], suffixes: Sequence[str] = SUFFIXES) -> tuple[list[Input], int]:
    """The documents that paths, folders (and all below them) and patterns such as "scans/*.pdf" name, each once.

    A name may be a URI that pyarrow knows, as "s3://bucket/*.pdf".  -> them, and how many files of folders are passed
    over since their suffix is none of `suffixes`.  InputError: a name that stands for nothing.
    """
    found: dict[str, str] = {}  # path -> place
    passed_over = 0
    for name in given:
        if is_uri(name) or os.path.isdir(name):
            files = find(name) if is_uri(name) else [(path, os.path.relpath(path, name)) for path in _files_below(name)]
            fitting = [file for file in files if Path(file[1]).suffix.lower() in suffixes or len(files) == 1]
            for path, place in fitting:
                found.setdefault(path, place)
            passed_over += len(files) - len(fitting)
            if not fitting:
                raise InputError(f"{name}: a folder without documents ({', '.join(suffixes)})")
        elif not os.path.exists(name) and glob.has_magic(name):
            matches = sorted(path for path in glob.iglob(name, recursive=True) if os.path.isfile(path))
            if not matches:
                raise InputError(f"{name}: no file is named so")
            for path in matches:
                found.setdefault(path, os.path.basename(path))
        else:  # that it is not there is an error of this document alone
            found.setdefault(name, os.path.basename(name))
    return _named(found), passed_over


def _files_below(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders.sort()
        yield from (os.path.join(parent, file) for file in sorted(files) if not file.startswith("."))


def _named(found: dict[str, str]) -> list[Input]:
    """Names without suffixes, but for those that would then be one; of files that are called alike, with folders."""
    names = {path: str(Path(place).with_suffix("")) for path, place in found.items()}
    for longer in (found, _below_one_folder(found)):
        count = Counter(name.casefold() for name in names.values())
        names = {path: name if count[name.casefold()] == 1 else longer[path] for path, name in names.items()}
    count = Counter(name.casefold() for name in names.values())
    of_name: Counter[str] = Counter()
    inputs = []
    for path, name in names.items():
        of_name[name.casefold()] += 1
        number = f"-{of_name[name.casefold()]}" if count[name.casefold()] > 1 else ""
        inputs.append(Input(path, name + number))
    return inputs


def _below_one_folder(found: dict[str, str]) -> dict[str, str]:
    """Each path below the innermost folder that holds all files, without its suffix."""
    try:
        folder = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in found])
    except ValueError:  # on several drives
        return found
    return {path: str(Path(os.path.relpath(path, folder)).with_suffix("")) for path in found}
