"""Checkpoint: the files of a checkpoint on this machine, in a folder or a GGUF file, each read once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, HubError, InputError, NotFoundError, UnsupportedError, ZooError, nearest
from ..files.folder import CheckpointFolder
from ..files.inside import checkpoint_file
from ..files.json_file import MAX_BYTES, parse_json_list
from ..warning import warn
from ..weights.adapter import FILES as ADAPTER_FILES
from ..weights.files import open_weights, weight_files
from ..weights.static_table import StaticTable
from .config_file import read_config
from .installed import PACKAGED_FILES, converted_folder
from .modules import MODULES, encoder_task, read_modules
from .names import GGUF, CheckpointRef
from .static_folder import STATIC_FOLDER, TOKENIZER, StaticFolder, static_folder

if TYPE_CHECKING:
    from ..config import Config
    from ..weights import Source
    from ..weights.files import Index

_SMALL_FILES = {
    *("config.json", "generation_config.json", "preprocessor_config.json", "processor_config.json", "scripts.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("chat_template.jinja", "chat_template.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spm.model", "spiece.model"),
    *("tokenizer.model", "source.spm", "target.spm"),
    *("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"),
    *("sentence_roberta_config.json", "sentence_xlm-roberta_config.json", "sentence_distilbert_config.json"),
    *("sentence_camembert_config.json", "sentence_albert_config.json", "sentence_xlnet_config.json"),
}
# 1_Pooling, 2_Dense: the steps of a sentence encoder; 2_Router/query_0_Dense: a step of queries alone.
TEMPLATES = "additional_chat_templates"
_MODULE_FOLDER = re.compile(r"[0-9]+_[A-Za-z]+(?:/[A-Za-z0-9_]*_[A-Za-z]+)?")

NESTED_FOLDER = "0_Transformer"
EMBEDDED_IN = Path(__file__).parent.parent / "data"  # the folders of the checkpoints that come with zoo


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose files are on this machine."""

    name: str
    """The name or path that the user gave."""
    folder: Path
    """The folder of the files: a snapshot in the hub's cache, or the user's own."""
    revision: str | None
    """The commit hash of a hub name; None for a folder."""
    files: tuple[str, ...]
    """The files that belong to the checkpoint and are present, relative to `folder`, with forward slashes."""
    weights: tuple[Path, ...]
    """One weight file, or an index and its shards, in the index's order."""
    contents: CheckpointFolder
    """Reads config, tokenizer and whatever else is beside the weights by its name: files of `folder`, or a GGUF file's
    metadata."""
    fingerprint: str | None = None
    """The digest of the files, if they were compared with a lock: see `zoo.lock`."""
    opened: Source | None = None
    """The weights of a GGUF file, which is opened to read its metadata."""
    index: Index | None = None
    """The content of the weights' index, if there is one."""

    def open_weights(self) -> Source:
        """The tensors of the weight files."""
        if self.opened is not None:
            return self.opened
        source = open_weights(self.weights, self.index)
        return StaticTable(source) if isinstance(self.contents, StaticFolder) else source

    @cached_property
    def config(self) -> Config:
        """The config in config.json, of its family's class."""
        return read_config(self.contents)

    @cached_property
    def modules(self) -> list[tuple[str, str]]:
        """The (kind, folder) of each of sentence-transformers' modules, in order; none without a modules.json."""
        return read_modules(self.contents) if self.contents.has(MODULES) else []

    @cached_property
    def encoder_task(self) -> str | None:
        """The task that the files of an encoder of texts are for; None: they are no encoder's."""
        return encoder_task(self.contents, self.modules, self.config.architectures)


def beside_weights(folder: Path) -> list[str]:
    """The files of a checkpoint in a folder, without its weights, relative to the folder."""
    names = set(os.listdir(folder))
    for _ in range(2):  # a router has folders in its own
        modules = [n for n in names if _MODULE_FOLDER.fullmatch(n) and (folder / n).is_dir()]
        names |= {f"{n}/{file}" for n in modules for file in os.listdir(folder / n)}
    if TEMPLATES in names and (folder / TEMPLATES).is_dir():
        names |= {f"{TEMPLATES}/{file}" for file in os.listdir(folder / TEMPLATES)}
    return sorted(n for n in beside_weights_among(names) if (folder / n).is_file())


def beside_weights_among(names: Collection[str]) -> list[str]:
    """The files that a checkpoint needs beside its weights; among them the one weight file of a module."""
    found, names = [], frozenset(names)
    for name in sorted(names):
        folder, _, last = name.rpartition("/")
        if _MODULE_FOLDER.fullmatch(folder):
            wanted = {"config.json", "router_config.json"}
            if folder.endswith(("_Dense", "_LayerNorm")):
                is_new = f"{folder}/model.safetensors" in names
                wanted.add("model.safetensors" if is_new else "pytorch_model.bin")
            elif folder == STATIC_FOLDER:
                wanted.add(TOKENIZER)
            elif folder == nested_transformer(names):
                wanted = _SMALL_FILES
            if last in wanted:
                found.append(name)
        elif name in _SMALL_FILES or (folder == TEMPLATES and last.endswith(".jinja")):
            found.append(name)
    return found


def first_file(names: Collection[str]) -> str:
    """The file that says what a checkpoint is, among its files: config.json, or modules.json for a table of vectors."""
    if (nested := nested_transformer(names)) is not None:
        return f"{nested}/config.json"
    return MODULES if MODULES in names and "config.json" not in names else "config.json"


def model_folder(names: Collection[str]) -> str:
    """The folder of the weights among a repository's files, "" for its own."""
    static = STATIC_FOLDER if f"{STATIC_FOLDER}/{TOKENIZER}" in names else ""
    return nested_transformer(names) or static


def nested_transformer(names: Collection[str]) -> str | None:
    """The folder of the model in the first layout of sentence-transformers, "0_Transformer", or None."""
    is_nested = {"modules.json", f"{NESTED_FOLDER}/config.json"}.issubset(names)
    return NESTED_FOLDER if is_nested else None


class NestedFolder(CheckpointFolder):
    """A folder of that layout, shown as today's: the transformer's files and modules.json are in one folder."""

    def at(self, name: str) -> Path:
        inside = super().at(f"{NESTED_FOLDER}/{name}")
        return inside if name in _SMALL_FILES and inside.is_file() else super().at(name)

    def has(self, name: str) -> bool:
        return self.at(name).is_file()

    def read(self, name: str, limit: int = MAX_BYTES, error: type[ZooError] = ConfigError) -> bytes:
        data = super().read(name, limit, error)
        if name != MODULES:
            return data
        modules = parse_json_list(data, self.where(name))
        for module in modules:
            if isinstance(module, dict) and module.get("path") == NESTED_FOLDER:
                module["path"] = ""
        return json.dumps(modules, indent=2).encode()

    def copy(self, name: str, target: Path) -> None:
        if name == MODULES:
            target.write_bytes(self.read(name))
        else:
            super().copy(name, target)


def local_checkpoint(name: CheckpointRef, weights: bool = True, adapters: bool = False) -> Checkpoint:
    """The checkpoint at a path, or one that comes with zoo or a package; NotFoundError or HubError if there is none.

    adapters: a folder with a LoRA adapter alone is one too, without weights.
    """
    given = name.text
    if not name.is_path and given in PACKAGED_FILES:
        return in_folder(given, converted_folder(given), None, weights)
    path = os.path.abspath(os.path.expanduser(given)) if name.is_path else str(EMBEDDED_IN / given)
    if not os.path.exists(path):
        parent, last = os.path.split(path)
        try:
            near = nearest(last, os.listdir(parent))
        except (OSError, ValueError):
            near = f": nor is there a folder {parent!r} that can be read"
        raise NotFoundError(f"there is no folder {given!r}{near}")
    if path.endswith(GGUF) and os.path.isfile(path):
        return in_gguf(given, Path(os.path.dirname(path)), os.path.basename(path), None)
    if not os.path.isdir(path):
        raise HubError(
            f"{given!r} is a file: pass the folder that holds it and its config.json, {os.path.dirname(path)!r}"
        )
    folder = Path(path)
    if not adapters or not (folder / ADAPTER_FILES[0]).exists() or (folder / "config.json").exists():
        return in_folder(given, folder, None, weights)
    contents = CheckpointFolder(folder)
    return Checkpoint(given, folder, None, tuple(filter(contents.has, ADAPTER_FILES)), (), contents)


def in_gguf(name: str, folder: Path, file: str, revision: str | None) -> Checkpoint:
    """The checkpoint in a GGUF file."""
    from ..weights.gguf.folder import GGUFFolder
    from ..weights.gguf.images import BothFiles, BothFolder, MmprojFile, mmproj_of
    from ..weights.gguf.parts import check_all, parts_of
    from ..weights.gguf.source import GGUFFile

    try:
        parts = parts_of(file)
        check_all(file, [part for part in parts if (folder / part).exists()] if len(parts) > 1 else parts)
        if revision is not None:
            for part in parts:
                checkpoint_file(folder, part)  # a user's own file may be a link to another disk
        source = GGUFFile(folder / file)
        if (encoder := mmproj_of(folder, file)) is not None:
            if revision is not None:
                checkpoint_file(folder, encoder)
            try:
                both = BothFiles(source, images := MmprojFile(folder / encoder))
                whole, files = BothFolder(source.path, source.header, images), (*parts, encoder)
                return Checkpoint(name, folder, revision, files, tuple(both.files), whole, opened=both)
            except UnsupportedError as e:
                warn(f"{e}; {file} is read without it, as a model of texts")
        paths, contents = tuple(folder / part for part in parts), GGUFFolder(source.path, source.header)
        return Checkpoint(name, folder, revision, tuple(parts), paths, contents, opened=source)
    except OSError as error:
        raise HubError(f"cannot read {folder / file}: {error}") from error


def with_mmproj(found: Checkpoint, mmproj: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a GGUF file, with a file of images that the user names; ZooError where this does not fit."""
    from ..weights.gguf.images import BothFiles, BothFolder, MmprojFile
    from ..weights.gguf.source import GGUFFile

    if not (isinstance(mmproj, str | os.PathLike) and os.fspath(mmproj)):
        raise InputError(f"mmproj is {mmproj!r}, expected the path of a file")
    path, opened = Path(mmproj).expanduser(), found.opened
    texts = opened.texts if isinstance(opened, BothFiles) else opened
    if not isinstance(texts, GGUFFile):
        raise InputError(f"mmproj is for a GGUF file, and {found.name} is none: its own files have what reads images")
    if not path.is_file():
        raise NotFoundError(f"mmproj: there is no file {str(mmproj)!r}")
    try:
        both = BothFiles(texts, images := MmprojFile(path))
        whole = BothFolder(texts.path, texts.header, images)
    except OSError as error:
        raise HubError(f"cannot read {path}: {error}") from error
    return replace(found, weights=tuple(both.files), contents=whole, opened=both)


def in_folder(name: str, folder: Path, revision: str | None, weights: bool, index: Index | None = None) -> Checkpoint:
    """The checkpoint in a folder; NotFoundError if a file that it needs is missing.

    index: the content of the weights' index, if it was read.
    """
    try:
        small = beside_weights(folder)
        static = static_folder(CheckpointFolder(folder))
        nested = nested_transformer(small) if static is None else static or None
        if "config.json" not in small and nested is None and static is None:
            names = os.listdir(folder)
            if MODULES in small:
                kinds = ", ".join(kind for kind, _ in read_modules(folder))
                wanted = "zoo has those that begin with a Transformer or a StaticEmbedding"
                raise NotFoundError(f"{folder} has no config.json: its modules are {kinds}, and {wanted}")
            found = [name for name in sorted(names) if name.endswith(GGUF)]
            instead = f": did you mean the file, {str(folder / found[0])!r}?" if found else ""
            raise NotFoundError(f"{folder} has no config.json{instead or nearest('config.json', names)}")
        for file in small:
            checkpoint_file(folder, file)
        weights = weights or static is not None  # a table's file says its sizes
        paths, index = weight_files(folder / nested if nested else folder, index) if weights else ([], None)
    except OSError as error:
        raise HubError(f"cannot read the folder {folder}: {error}") from error
    files = [*small, *(path.relative_to(folder).as_posix() for path in paths)]
    if static is not None:
        contents: CheckpointFolder = StaticFolder(folder, static, StaticTable(open_weights(paths, index)))
    else:
        contents = NestedFolder(folder) if nested else CheckpointFolder(folder)
    return Checkpoint(name, folder, revision, tuple(files), tuple(paths), contents, index=index)
