"""Parakeet checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..vocabularies import WORDS, write_json
from .common import Spec

ENCODER: dict[str, Any] = {"model_type": "parakeet_encoder", "hidden_size": 1024, "num_hidden_layers": 24}
ENCODER |= {"num_attention_heads": 8, "intermediate_size": 4096, "hidden_act": "silu", "attention_bias": True}
ENCODER |= {"convolution_bias": True, "conv_kernel_size": 9, "num_mel_bins": 80, "scale_input": True}
ENCODER |= {"subsampling_factor": 8, "subsampling_conv_channels": 256, "subsampling_conv_kernel_size": 3}
ENCODER |= {"subsampling_conv_stride": 2, "max_position_embeddings": 5000, "layerdrop": 0.1, "dropout": 0.1}
CONFIG: dict[str, Any] = {"vocab_size": 1025, "pad_token_id": 1024, "ctc_loss_reduction": "mean"}
CONFIG |= {"ctc_zero_infinity": True, "encoder_config": ENCODER}
TINY_ENCODER = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 72}
TINY_ENCODER |= {"conv_kernel_size": 5, "num_mel_bins": 16, "subsampling_conv_channels": 12}
TINY: dict[str, Any] = {"vocab_size": 101, "pad_token_id": 100, "encoder_config": {**ENCODER, **TINY_ENCODER}}
NO_BIASES = {"attention_bias": False, "convolution_bias": False, "scale_input": False, "subsampling_factor": 4}


@dataclass(frozen=True, kw_only=True)
class ParakeetSpec(Spec):
    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        bins = config["encoder_config"]["num_mel_bins"]
        features = {"feature_extractor_type": "ParakeetFeatureExtractor", "feature_size": bins, "hop_length": 160}
        features |= {"n_fft": 512, "win_length": 400, "preemphasis": 0.97, "sampling_rate": 16000}
        features |= {"padding_value": 0.0, "padding_side": "right", "return_attention_mask": True}
        write_json(folder / "preprocessor_config.json", {**features, "processor_class": "ParakeetProcessor"})
        write_pieces(folder, config["vocab_size"])


def write_pieces(folder: Path, size: int) -> None:
    """tokenizer.json of `size` pieces in Parakeet's order: <unk>, pieces, and <pad>, the blank, last."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    body = ["▁", *letters, "'", ".", ",", *("▁" + word for word in dict.fromkeys(WORDS) if len(word) > 1)]
    body = [*body, *(f"▁made{i}" for i in range(size))][: size - 2]
    vocabulary = {piece: i for i, piece in enumerate(["<unk>", *body])}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    added = [{"id": i, "content": text, **flags} for i, text in ((0, "<unk>"), (size - 1, "<pad>"))]
    spaces = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary}
    parts = {"pre_tokenizer": spaces, "decoder": spaces, "model": {**model, "merges": []}}
    write_json(folder / "tokenizer.json", {"version": "1.0", "added_tokens": added, **parts})
    config = {"tokenizer_class": "ParakeetTokenizerFast", "unk_token": "<unk>", "pad_token": "<pad>"}
    write_json(folder / "tokenizer_config.json", {**config, "clean_up_tokenization_spaces": False})


_parakeet = partial(
    ParakeetSpec,
    model_type="parakeet_ctc",
    architecture="ParakeetForCTC",
    inert=(*Spec.inert, r"\.num_batches_tracked$"),
)

SPECS = {
    "parakeet-ctc-0.6b": _parakeet(like="nvidia/parakeet-ctc-0.6b", config=CONFIG, tiny=TINY),
    "parakeet-ctc-without-biases": _parakeet(
        like="save_pretrained", config=CONFIG, tiny={**TINY, "encoder_config": {**ENCODER, **TINY_ENCODER, **NO_BIASES}}
    ),
}
