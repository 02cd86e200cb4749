"""The encoder of images beside a GGUF file of texts (llama.cpp's mmproj), and both as one checkpoint.

llama.cpp has a model of images and texts in two files.  An mmproj belongs to a file where its name says so: MODEL.gguf
and mmproj-MODEL.gguf, whose types at the end of their names may be others.  Of the kinds in `PROJECTORS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

import numpy as np

from ...errors import ConfigError, MissingWeightError, UnsupportedError, WeightShapeError, ZooError, nearest
from ...quant import QuantRows
from ...typing import RawTensor
from .folder import GGUFFolder
from .header import Header
from .metadata import Metadata
from .names import Names
from .projectors import PROJECTORS, Parts, Projector
from .source import GGUFFile

PREFIX = "mmproj-"
_TYPE = re.compile(r"[-._](?:bf16|f16|f32|fp16|fp32|i?q[2-8](?:_\w+)?)$", re.IGNORECASE)
CONFIG, IMAGES, TOKENIZER_CONFIG = "config.json", "preprocessor_config.json", "tokenizer_config.json"
_OWN_NAMES = Names({}, {}, "")
_PART_NAME = re.compile(r"(.+):([qkv01])(\..+)")
_PLACES = "qkv01"
# What changes nothing in what the encoder computes, or follows from tensors.
_UNUSED_KEYS = ("has_text_encoder", "has_vision_encoder", "has_audio_encoder", "has_llava_projector")
_UNUSED_KEYS += ("vision.projection_dim",)


def mmproj_of(folder: Path, file: str) -> str | None:
    """The name of the mmproj that belongs to a GGUF file of a folder; None where there is none."""
    if file.startswith(PREFIX) or not (folder / file).is_file():
        return None
    found = [path.name for path in folder.glob(f"{PREFIX}*.gguf")]
    fitting = sorted(one for one in found if _model(one.removeprefix(PREFIX)) == _model(file))
    return f"{PREFIX}{file}" if f"{PREFIX}{file}" in fitting else next(iter(fitting), None)


def _model(file: str) -> str:
    return _TYPE.sub("", file.removesuffix(".gguf"))


class MmprojFile(GGUFFile):
    """The tensors of an mmproj under transformers' names.  UnsupportedError: it is of another model."""

    def __init__(self, path: Path):
        super().__init__(path, _OWN_NAMES)
        m = self.metadata = Metadata(self.header.metadata, "clip")
        if (found := self.header.metadata.get("general.architecture")) != "clip":
            raise UnsupportedError(f"{path} is no mmproj: general.architecture is {str(found)[:100]!r}, not 'clip'")
        kind = m.text("projector_type", m.text("vision.projector_type", ""))
        if kind not in PROJECTORS:
            known = ", ".join(map(repr, PROJECTORS))
            raise UnsupportedError(f"{path}: clip.projector_type = {kind!r} is not implemented, only {known} are")
        self.kind: Projector = PROJECTORS[kind]
        first = self.header.tensors.get("v.blk.0.ffn_down.weight")
        # As llama.cpp has it: older converters took what is down for what is up.
        is_swapped = first is not None and first.shape[-1:] == (m.integer("vision.embedding_length"),)
        self._names = self.kind.names_of(is_swapped)
        own = {name: self._to_transformers(name) for name in self._entries}
        self._origin = {own[name]: name for name in own}
        self._entries = {own[name]: entry for name, entry in self._entries.items()}

    def _to_transformers(self, name: str) -> str:
        """transformers' name; of a part of a tensor that name with the part's, as "blocks.0.attn.qkv:q.weight"."""
        inner = name.removeprefix("v.") if name.startswith("v.blk.") else name
        return self.kind.exact.get(name) or self._names.to_transformers(inner) or name

    def configs(self) -> Parts:
        """The config without its text_config, and the object of a preprocessor_config.json."""
        m = self.metadata
        try:
            parts = self.kind.configs(m, self.header.tensors)
        except ZooError as e:
            raise type(e)(f"{self.path}: {e}") from None
        unknown = [key for key in m.unread_keys() if key.removeprefix("clip.") not in _UNUSED_KEYS]
        if unknown:
            raise UnsupportedError(f"{self.path}: {unknown[0]} is not implemented for {self.kind.model_type}")
        return parts


class BothFiles:
    """A Source: the tensors of a file of texts, and of its mmproj."""

    def __init__(self, texts: GGUFFile, images: MmprojFile):
        self.texts, self.files = texts, [*texts.files, *images.files]
        self._of: dict[str, tuple[GGUFFile, list[str]]] = {}
        for name in sorted(images.names(), key=lambda name: _split(name)[:2]):
            whole, _, end = _split(name)
            self._of.setdefault(whole + end, (images, []))[1].append(name)
        for own in (own for _, own in self._of.values() if len(own) > 1):
            _check_parts(images, own)
        self._of |= {re.sub(r"^model\.", images.kind.texts, name): (texts, [name]) for name in texts.names()}

    def names(self) -> Collection[str]:
        return self._of.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def shape(self, name: str) -> tuple[int, ...]:
        file, own = self._find(name)
        first, *more = (file.shape(one) for one in own)
        if not more:
            return first
        if _is_frame(own[0]):
            return (*first[:2], len(own), *first[2:])
        return (sum(shape[0] for shape in (first, *more)), *first[1:])

    def dtype(self, name: str) -> str:
        file, own = self._find(name)
        kinds = {file.dtype(one) for one in own}
        return kinds.pop() if len(kinds) == 1 else "F32"

    def read(self, name: str) -> RawTensor | QuantRows:
        file, own = self._find(name)
        return file.read(own[0]) if len(own) == 1 else _join([file.read(one) for one in own], _is_frame(own[0]))

    def _find(self, name: str) -> tuple[GGUFFile, list[str]]:
        try:
            return self._of[name]
        except KeyError:
            where = " and ".join(file.name for file in self.files)
            raise MissingWeightError(f"{where} have no {name}{nearest(name, self._of)}") from None


def _split(name: str) -> tuple[str, int, str]:
    """A tensor's name, the place of a part in it, which is q, k, v or the number of a frame, and the name's end."""
    found = _PART_NAME.fullmatch(name)
    return (name, -1, "") if found is None else (found[1], _PLACES.index(found[2]), found[3])


def _is_frame(name: str) -> bool:
    found = _PART_NAME.fullmatch(name)
    return found is not None and found[2].isdigit()


def _check_parts(file: GGUFFile, own: list[str]) -> None:
    """WeightShapeError for parts that make no tensor."""
    shapes = [file.shape(name) for name in own]
    same = {shape if _is_frame(name) else shape[1:] for name, shape in zip(own, shapes, strict=True)}
    if (
        len(same) > 1
        or min(map(len, shapes)) < (2 if _is_frame(own[0]) else 1)
        or not all(map(_PART_NAME.fullmatch, own))
    ):
        said = ", ".join(f"{name} {shape}" for name, shape in zip(own, shapes, strict=True))
        raise WeightShapeError(f"{file.path}: these parts do not make one tensor: {said}")


def _join(parts: list[RawTensor | QuantRows], frames: bool) -> RawTensor | QuantRows:
    """Matrices or vectors one below the other, or frames (E, C, Y, X) as (E, C, frames, Y, X)."""
    rows = [one.in_order() for one in parts if isinstance(one, QuantRows)]
    if len(rows) == len(parts) and len({one.kind for one in rows}) == 1:
        fields = zip(*(one.arrays for one in rows), strict=True)
        return QuantRows(rows[0].kind, rows[0].columns, tuple(np.concatenate(some) for some in fields))
    plain = [one for one in parts if isinstance(one, RawTensor)]
    if len(plain) < len(parts) or len({one.dtype for one in plain}) > 1:
        plain = [RawTensor(_to_float32(one), "F32") for one in parts]
    arrays = [one.array for one in plain]
    return RawTensor(np.stack(arrays, 2) if frames else np.concatenate(arrays), plain[0].dtype)


def _to_float32(stored: RawTensor | QuantRows) -> np.ndarray:
    if isinstance(stored, QuantRows):
        return stored.dequantise()
    if stored.dtype == "BF16":
        return (stored.array.astype(np.uint32) << 16).view(np.float32)
    return stored.array.astype(np.float32)


class BothFolder(GGUFFolder):
    """The files of a checkpoint of images and texts, made of the metadata of both files."""

    def __init__(self, path: Path, header: Header, images: MmprojFile):
        super().__init__(path, header)
        text, kind = json.loads(self._files[CONFIG]), images.kind
        with self._naming():
            if text["model_type"] != kind.text_type:
                raise UnsupportedError(
                    f"{images.path.name} of {kind.model_type} beside a {text['model_type']} is not implemented, only "
                    f"beside a {kind.text_type}"
                )
            place = self._place(kind)
        of, processor = images.configs()
        with self._naming():
            text |= kind.of_text(Metadata(header.metadata, str(header.metadata.get("general.architecture"))))
        shared = {name: text[name] for name in ("tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id")}
        whole = {"model_type": kind.model_type, "architectures": [kind.architecture], **shared, **of}
        self._files[CONFIG] = json.dumps({**whole, "text_config": text, "image_token_id": place}).encode()
        self._files[IMAGES] = json.dumps(processor).encode()

    def _place(self, kind: Projector) -> int:
        """The token that stands for an image's vector, or else a spare one, which the tokenizer then calls so."""
        texts = self._tokenizer.tokens.texts
        if kind.token in texts:
            return texts.index(kind.token)
        spare = [i for i, text in enumerate(texts) if kind.spare is not None and text.startswith(kind.spare)]
        if not spare or self._tokenizer.tokenizer_json() is not None:
            raise ConfigError(f"tokenizer.ggml.tokens have no {kind.token}, which stands for an image")
        old = texts[spare[-1]]
        self._tokenizer.rename(spare[-1], kind.token)
        stated = json.loads(self._files[TOKENIZER_CONFIG])
        stated = {name: kind.token if value == old else value for name, value in stated.items()}
        self._files[TOKENIZER_CONFIG] = json.dumps(stated).encode()
        return spare[-1]
