"""The files that a command line names: paths, folders, patterns and URIs."""

from __future__ import annotations

import glob
import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from .files import find, is_uri

IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".webp", ".bmp", ".ppm", ".pgm", ".pbm")
DOCUMENTS = (".pdf", *IMAGES)


class InputFile(NamedTuple):
    path: str
    name: str  # for the files written about it: its path below the folder that was named, without a suffix


def find_inputs(given: Sequence[str], suffixes: Sequence[str] = DOCUMENTS) -> tuple[list[InputFile], int]:
    """The files that paths, folders (with all below them), patterns such as "scans/*.pdf" and URIs name, each once.

    Also returns how many files of folders were passed over because their suffix is not in `suffixes`.  A path that
    does not exist is kept: it is an error of that file alone.  InputError: a folder or a pattern without files.
    """
    found: dict[str, str] = {}  # path -> path below the folder that was named
    passed_over = 0
    for name in given:
        if is_uri(name) or os.path.isdir(name):
            files = find(name) if is_uri(name) else [(path, os.path.relpath(path, name)) for path in _files_below(name)]
            fitting = [file for file in files if Path(file[1]).suffix.lower() in suffixes or len(files) == 1]
            for path, place in fitting:
                found.setdefault(path, place)
            passed_over += len(files) - len(fitting)
            if not fitting:
                raise InputError(f"{name}: a folder without files to read ({', '.join(suffixes)})")
        elif not os.path.exists(name) and glob.has_magic(name):
            matches = sorted(path for path in glob.iglob(name, recursive=True) if os.path.isfile(path))
            if not matches:
                raise InputError(f"{name}: no file matches")
            for path in matches:
                found.setdefault(path, os.path.basename(path))
        else:
            found.setdefault(name, os.path.basename(name))
    return _name_files(found), passed_over


def _files_below(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders.sort()
        yield from (os.path.join(parent, file) for file in sorted(files) if not file.startswith("."))


def _name_files(found: dict[str, str]) -> list[InputFile]:
    """A name for each path: without its suffix, with its suffix, or with its folders, the first that is unique.

    Names that are still equal are numbered, with numbers that make no other's name.  Names are equal if a file system
    could take them for one: in another case, or in another Unicode form.
    """
    names = {path: str(Path(place).with_suffix("")) for path, place in found.items()}
    for longer in (found, _below_one_folder(found)):
        count = Counter(_fold_name(name) for name in names.values())
        names = {path: name if count[_fold_name(name)] == 1 else longer[path] for path, name in names.items()}
    count = Counter(_fold_name(name) for name in names.values())
    taken = {name for name, times in count.items() if times == 1}  # which are no number's
    inputs = []
    for path, name in names.items():
        unique, number = name, 1
        while count[_fold_name(name)] > 1 and _fold_name(unique) in taken:
            number += 1
            unique = f"{name}-{number}"
        taken.add(_fold_name(unique))
        inputs.append(InputFile(path, unique))
    return inputs


def _fold_name(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _below_one_folder(found: dict[str, str]) -> dict[str, str]:
    """Each path below the innermost folder that holds all files, without its suffix."""
    try:
        folder = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in found])
    except ValueError:  # on several drives
        return found
    return {path: str(Path(os.path.relpath(path, folder)).with_suffix("")) for path in found}
