"""What a GGUF file says of its model and tokenizer, as the files that transformers' checkpoints have beside weights.

So a config, a tokenizer or a chat template out of a GGUF file passes the same door as any other.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from ...errors import ConfigError, ZooError
from .config import POOLINGS, config_of
from .header import Header
from .metadata import Metadata
from .names import names_of
from .parts import read_parts
from .source import read_entry
from .tokenizer import end_tokens, tokenizer_of

FACTORS = "rope_freqs.weight"


class Unpacked:
    """A folder of one's own, which goes when this object does, or the process."""

    def __init__(self, origin: Path, name: str, files: dict[str, str]):
        self.origin = origin  # the folder that the file's path, `name`, is relative to
        try:
            own = Path(tempfile.mkdtemp(prefix="zoo-gguf-"))
            self._end = weakref.finalize(self, _remove, own, os.getpid())
            self.folder = own / Path(name).name  # which a message about what lies there then says
            self.folder.mkdir()
            for name, text in files.items():
                path = self.folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
        except OSError as e:
            raise ZooError(f"cannot write what a GGUF file says to {tempfile.gettempdir()}: {e.strerror or e}") from e


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a fork has the object too, and the folder is its parent's
        shutil.rmtree(folder, ignore_errors=True)


def unpack(folder: Path, name: str) -> Unpacked:
    """ZooError, with the file's name, where it is damaged or asks for what is not implemented."""
    path = folder / name
    header = read_parts(path)
    try:
        return Unpacked(folder, name, {file: _text(value) for file, value in files_of(header).items()})
    except UnicodeEncodeError as e:
        raise ZooError(f"{path}: half of a surrogate pair in a text: {e.reason}") from None
    except ZooError as e:
        raise e if str(path) in str(e) else type(e)(f"{path}: {e}") from None


def files_of(header: Header) -> dict[str, Any]:
    """Name -> what it holds, an object or a text."""
    architecture = header.metadata.get("general.architecture")
    names_of(architecture)
    entry = header.tensors.get(FACTORS)
    factors = read_entry(header, entry) if entry is not None and entry.dtype == "F32" else None
    config = config_of(header, str(architecture), factors)
    m = Metadata(header.metadata, str(architecture))
    if not (longest := m.whole("context_length")):
        raise ConfigError(f"{architecture}.context_length is 0, expected a number of tokens")
    tokenizer, settings = tokenizer_of(m, longest)
    files: dict[str, Any] = {"config.json": config, "tokenizer.json": tokenizer, "tokenizer_config.json": settings}
    if architecture == "llama":
        generation = {"bos_token_id": config["bos_token_id"], "eos_token_id": end_tokens(m, config["vocab_size"])}
        files["generation_config.json"] = {k: v for k, v in generation.items() if v not in (None, [])}
    pooling = POOLINGS.get(m.whole("pooling_type", 0))
    if architecture == "bert" and pooling not in (None, "rank"):
        files |= _sentence_encoder(str(pooling), config["hidden_size"])
    return files


def _sentence_encoder(pooling: str, width: int) -> dict[str, Any]:
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    modes = {"cls": "cls_token", "mean": "mean_tokens", "lasttoken": "lasttoken"}
    chosen = {f"pooling_mode_{mode}": name == pooling for name, mode in modes.items()}
    return {"modules.json": modules, "1_Pooling/config.json": {"word_embedding_dimension": width, **chosen}}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
