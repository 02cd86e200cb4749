"""The config and the tokenizer of a GGUF file, under the names of the files that they have in other checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import ConfigError, NotFoundError, ZooError
from ...files.atomic_write import atomic_write
from ...files.folder import CheckpointFolder
from ...files.json_file import MAX_BYTES, MAX_VALUES
from .config import POOLINGS, config_of
from .header import Header
from .metadata import Metadata
from .names import names_of
from .source import read_entry
from .tokenizer import GGUFTokenizer, end_tokens

FACTORS = "rope_freqs.weight"
TOKENIZER = "tokenizer.json"


class GGUFFolder(CheckpointFolder):
    """The files that transformers would have for a GGUF file's metadata, in memory: config.json, tokenizer.json, ...

    They pass the same checks as any checkpoint's files, but for tokenizer.json, which is not a text here: it is made
    from the metadata when it is read.  ZooError, with the file's path, if the metadata are damaged or not implemented.
    """

    def __init__(self, path: Path, header: Header):
        super().__init__(path)
        architecture = header.metadata.get("general.architecture")
        with self._naming():
            names_of(architecture)
        entry = header.tensors.get(FACTORS)
        factors = read_entry(header, entry) if entry is not None and entry.dtype == "F32" else None
        with self._naming():
            config = config_of(header, str(architecture), factors)
            m = Metadata(header.metadata, str(architecture))
            if not (longest := m.integer("context_length")):
                raise ConfigError(f"{architecture}.context_length is 0, expected a number of tokens")
            self._tokenizer = GGUFTokenizer(m)
            objects: dict[str, Any] = {"config.json": config, "tokenizer_config.json": self._tokenizer.config(longest)}
            if architecture != "bert":
                generation = {
                    "bos_token_id": config["bos_token_id"],
                    "eos_token_id": end_tokens(m, config["vocab_size"]),
                }
                objects["generation_config.json"] = {k: v for k, v in generation.items() if v not in (None, [])}
            pooling = POOLINGS.get(m.integer("pooling_type", 0))
            if architecture == "bert" and pooling not in (None, "rank"):
                objects |= _sentence_encoder(str(pooling), config["hidden_size"])
        self._files = {name: _text(value) for name, value in objects.items()}

    def where(self, name: str) -> str:
        return f"{self.path} (as {name})"

    def has(self, name: str) -> bool:
        return name == TOKENIZER or name in self._files

    def names(self, inside: str = "") -> list[str]:
        start = f"{inside}/" if inside else ""
        return sorted({n[len(start) :].split("/")[0] for n in (*self._files, TOKENIZER) if n.startswith(start)})

    def read(self, name: str, limit: int = MAX_BYTES, error: type[ZooError] = ConfigError) -> bytes:
        if not self.has(name):
            raise NotFoundError(f"{self.path} has no {name}")
        if name != TOKENIZER:
            data = self._files[name]
        else:
            with self._naming():
                data = self._tokenizer.tokenizer_json() or _text(self._tokenizer.json(), indent=None)
        if len(data) > limit:
            raise error(f"{self.where(name)}: more than {limit} bytes, expected at most {limit}")
        return data

    def json(
        self,
        name: str,
        limit: int = MAX_BYTES,
        error: type[ZooError] = ConfigError,
        max_values: int | None = MAX_VALUES,
        exact: bool = True,
    ) -> dict[str, Any]:
        if name == TOKENIZER and self._tokenizer.tokenizer_json() is None:
            with self._naming():
                return self._tokenizer.json()
        return super().json(name, limit, error, max_values, exact)

    def copy(self, name: str, target: Path) -> None:
        with atomic_write(target) as path:
            path.write_bytes(self.read(name, 1 << 40))

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Put the file's path in front of messages about its metadata."""
        try:
            yield
        except ZooError as e:
            raise type(e)(f"{self.path}: {e}") from None


def _sentence_encoder(pooling: str, width: int) -> dict[str, Any]:
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    modes = {"cls": "cls_token", "mean": "mean_tokens", "lasttoken": "lasttoken"}
    chosen = {f"pooling_mode_{mode}": name == pooling for name, mode in modes.items()}
    return {"modules.json": modules, "1_Pooling/config.json": {"word_embedding_dimension": width, **chosen}}


def _text(value: Any, indent: int | None = 1) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=indent).encode()
