"""StaticFolder: a table of vectors of tokens, as model2vec and sentence-transformers' StaticEmbedding save it.

Both libraries read the table and tokenizer.json alone, and add no special tokens.  What other checkpoints say beside
these is shown here as their files would: sizes in config.json, the steps in modules.json, the longest text in
tokenizer_config.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import ConfigError, TokenizerError, UnsupportedError, ZooError
from ..files.folder import CheckpointFolder
from ..files.json_file import MAX_BYTES, MAX_VALUES
from ..weights.static_table import StaticTable
from .modules import LIBRARIES, MODULES, SETTINGS

STATIC_FOLDER = "0_StaticEmbedding"  # the table's and the tokenizer's, in the older layout of sentence-transformers
MODEL_TYPE = "model2vec"
KIND = ".StaticEmbedding"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
MAX_TOKENIZER, MAX_TOKENIZER_VALUES = 64 << 20, 4_000_000
_TEXT, _SECOND = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
TEXTS_ALONE = {"type": "TemplateProcessing", "single": [_TEXT], "pair": [_TEXT, _SECOND], "special_tokens": {}}


def static_folder(folder: CheckpointFolder) -> str | None:
    """The folder of the table in a checkpoint's, "" for the same, or None if the checkpoint is of another kind."""
    if not folder.has(MODULES):
        is_own = folder.has("config.json") and MODEL_TYPE.encode() in folder.read("config.json")
        return "" if is_own and folder.json("config.json").get("model_type") == MODEL_TYPE else None
    first = next(iter(folder.json_list(MODULES)), None)
    if not isinstance(first, dict):
        return None
    kind = str(first.get("type", ""))
    if not kind.startswith(LIBRARIES) or not kind.endswith(KIND):
        return None
    path = first.get("path", "")
    if path in ("", "."):
        return ""
    if path != STATIC_FOLDER:
        known = f"the checkpoint's own or {STATIC_FOLDER!r}"
        raise UnsupportedError(f"{folder.where(MODULES)}: a StaticEmbedding in {path!r}, expected {known}")
    return STATIC_FOLDER


class StaticFolder(CheckpointFolder):
    """The files of such a checkpoint under the names that they have in others."""

    def __init__(self, path: Path, inside: str, table: StaticTable):
        super().__init__(path)
        self._inside = inside
        tokens, size = table.shape(table.table)
        stored = CheckpointFolder(path)
        raw = stored.json("config.json") if stored.has("config.json") else {}
        config = {**raw, "model_type": MODEL_TYPE, "architectures": ["StaticModel"]}
        modules = stored.json_list(MODULES) if stored.has(MODULES) else _modules(raw, stored.where("config.json"))
        modules[0]["path"] = ""
        self._files: dict[str, Any] = {
            "config.json": {**config, "vocab_size": tokens, "hidden_size": size},
            MODULES: modules,
        }
        self._tokenizer: dict[str, Any] | None = None  # tokenizer.json, between a look at it and its use

    def at(self, name: str) -> Path:
        return super().at(f"{self._inside}/{name}" if self._inside and name == TOKENIZER else name)

    def where(self, name: str) -> str:
        return super().where(f"{self._inside}/{name}" if self._inside and name == TOKENIZER else name)

    def has(self, name: str) -> bool:
        if name in self._files or name == TOKENIZER_CONFIG:
            return True
        # Neither library reads vocabularies, special tokens or templates beside tokenizer.json.
        return self.at(name).is_file() and ("/" in name or name in (TOKENIZER, SETTINGS))

    def read(self, name: str, limit: int = MAX_BYTES, error: type[ZooError] = ConfigError) -> bytes:
        if name == TOKENIZER_CONFIG:
            return json.dumps(self._tokenizer_config()).encode()
        if name in self._files:
            return json.dumps(self._files[name], indent=2).encode()
        return super().read(name, limit, error)

    def json(
        self,
        name: str,
        limit: int = MAX_BYTES,
        error: type[ZooError] = ConfigError,
        max_values: int | None = MAX_VALUES,
        exact: bool = True,
    ) -> dict[str, Any]:
        if name != TOKENIZER:
            return super().json(name, limit, error, max_values, exact)
        found, self._tokenizer = self._tokenizer, None
        found = super().json(name, limit, error, max_values, exact) if found is None else found
        return {**found, "post_processor": TEXTS_ALONE}

    def _tokenizer_config(self) -> dict[str, Any]:
        if self._tokenizer is None:
            self._tokenizer = self.json(TOKENIZER, MAX_TOKENIZER, TokenizerError, MAX_TOKENIZER_VALUES, exact=False)
        truncation = self._tokenizer.get("truncation")
        longest = truncation.get("max_length") if isinstance(truncation, dict) else None
        return {} if longest is None else {"model_max_length": longest}

    def copy(self, name: str, target: Path) -> None:
        if name in self._files or name == TOKENIZER_CONFIG:
            target.write_bytes(self.read(name))
        else:
            super().copy(name, target)


def _modules(config: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """The content of modules.json for a checkpoint of model2vec without one, which has it in its config."""
    unit = config.get("normalize", False)
    if not isinstance(unit, bool):
        raise ConfigError(f"{where}: normalize = {unit!r}, expected true or false")
    kinds = ("StaticEmbedding", "Normalize") if unit else ("StaticEmbedding",)
    return [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
