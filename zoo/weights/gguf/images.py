"""The encoder of images beside a GGUF file of texts (llama.cpp's mmproj), and both as one checkpoint.

llama.cpp has a model of images and texts in two files.  An mmproj belongs to a file where its name says so: MODEL.gguf
and mmproj-MODEL.gguf, whose types at the end of their names may be others.  Of the kinds in `PROJECTORS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from ...errors import ConfigError, MissingWeightError, UnsupportedError, ZooError, nearest
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
_CLASS_TOKEN = "v.class_embd"  # without ".weight"
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
        names = self._names = self.kind.names_of(is_swapped)
        own = {name: self._to_transformers(names, name) for name in self._entries}
        self._origin = {own[name]: name for name in own}
        self._entries = {own[name]: entry for name, entry in self._entries.items()}

    def _to_transformers(self, names: Names, name: str) -> str:
        if name == _CLASS_TOKEN:
            return f"{self.kind.tower}.embeddings.class_embedding"
        found = names.to_transformers(name.removeprefix("v.") if name.startswith("v.blk.") else name) or name
        return found.replace("mm_input_projection.weight", "mm_input_projection_weight")

    def configs(self) -> Parts:
        """The config without its text_config, and the object of a preprocessor_config.json."""
        m = self.metadata
        try:
            parts = self.kind.configs(m)
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
        self._of: dict[str, tuple[GGUFFile, str]] = {name: (images, name) for name in images.names()}
        self._of |= {re.sub(r"^model\.", images.kind.texts, name): (texts, name) for name in texts.names()}

    def names(self) -> Collection[str]:
        return self._of.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def shape(self, name: str) -> tuple[int, ...]:
        file, own = self._find(name)
        return file.shape(own)

    def dtype(self, name: str) -> str:
        file, own = self._find(name)
        return file.dtype(own)

    def read(self, name: str) -> RawTensor | QuantRows:
        file, own = self._find(name)
        return file.read(own)

    def _find(self, name: str) -> tuple[GGUFFile, str]:
        try:
            return self._of[name]
        except KeyError:
            where = " and ".join(file.name for file in self.files)
            raise MissingWeightError(f"{where} have no {name}{nearest(name, self._of)}") from None


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
