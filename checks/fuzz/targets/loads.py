"""Whole loads and a call.  An input names a checkpoint, one of its files, and what that holds: b"kind/file\\n..."."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import numpy as np

import zoo
from zoo.errors import ZooError

from .. import mutate
from .settings import preprocessors
from .target import STORIES, TARGETS, Target, write
from .texts import tokenizers


def _checkpoints(at: Path) -> None:
    """A checkpoint of each of four kinds, as small as can be, written by zoo."""
    from zoo.models import bert, vit
    from zoo.saving import save_model

    tokenizer = tokenizers()[-3]
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    text = {**sizes, "model_type": "bert", "vocab_size": 8, "max_position_embeddings": 16, "type_vocab_size": 2}
    image = {**sizes, "model_type": "vit", "image_size": 8, "patch_size": 4, "num_channels": 3, "num_labels": 2}
    made = {
        "bert": bert.BertForMaskedLM.from_config(bert.BertConfig.from_dict(text)),
        "classify": bert.BertForSequenceClassification.from_config(
            bert.BertConfig.from_dict({**text, "num_labels": 3})
        ),
        "vit": vit.ViTForImageClassification.from_config(vit.ViTConfig.from_dict(image)),
    }
    for kind, model in made.items():
        save_model(model, at / kind)
        if kind == "vit":
            write(at / kind, "preprocessor_config.json", preprocessors()[-2])
        else:
            write(at / kind, "tokenizer.json", tokenizer)
            write(at / kind, "tokenizer_config.json", b'{"tokenizer_class": "BertTokenizer", "model_max_length": 16}')
    shutil.copytree(STORIES, at / "llama")
    for path in (at / "llama").glob("*.md"):
        path.unlink()
    shutil.copytree(at, at.with_name("kept"))


def _load_seeds() -> list[bytes]:
    at = Path("made").absolute()
    _checkpoints(at)
    found = []
    for path in sorted(at.rglob("*")):
        if path.is_file() and path.suffix in (".json", ".safetensors", ".jinja"):
            found.append(f"{path.parent.name}/{path.name}\n".encode() + path.read_bytes())
    shutil.rmtree(at)
    shutil.rmtree(at.with_name("kept"))
    return found


_INPUT = re.compile(rb"(bert|classify|vit|llama)/([\w.]+)\n")


def _change_load(rng: random.Random, data: bytes) -> bytes:
    if (match := _INPUT.match(data)) is None:
        return data
    head, body = match[0], data[match.end() :]
    if match[2].endswith(b".safetensors"):
        return head + mutate.of_safetensors(rng, body)
    return head + mutate.of_json(["bert", "llama", "vit", "gelu", "BertModel", 8, 16])(rng, body)


def _load_and_call(data: bytes, at: Path) -> None:
    from zoo.tasks.fill_mask import FillMask
    from zoo.tasks.generate import Generate
    from zoo.tasks.image_task import ImageTask

    match = _INPUT.match(data)
    if match is None:
        raise ZooError("not an input")
    kind, name = match[1].decode(), match[2].decode()
    path = at / kind / name
    try:
        path.write_bytes(data[match.end() :])
        task = zoo.load(at / kind)
        if isinstance(task, ImageTask):
            task([np.zeros((9, 7, 3), np.uint8)])
        elif isinstance(task, Generate):
            task("a", max_new_tokens=2)
        else:
            task("the [MASK]" if isinstance(task, FillMask) else ["the a", "ab"])
        if name == "config.json":
            zoo.save(task, at / "saved")
    finally:
        shutil.rmtree(at / "saved", ignore_errors=True)
        kept = at.with_name("kept") / kind / name
        if kept.is_file():
            shutil.copyfile(kept, path)
        else:
            path.unlink(missing_ok=True)


TARGETS["load-and-call"] = Target(
    _load_seeds, _change_load, _load_and_call, prepare=_checkpoints, weight=4, seconds=15, megabytes=2500
)
