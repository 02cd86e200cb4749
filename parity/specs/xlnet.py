"""XLNet checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..vocabularies import write_xlnet
from .common import Loaded, Spec, labels

CONFIG = {"vocab_size": 32000, "d_model": 768, "n_layer": 12, "n_head": 12, "d_head": 64, "d_inner": 3072}
CONFIG |= {"ff_activation": "gelu", "attn_type": "bi", "bi_data": False, "clamp_len": -1, "layer_norm_eps": 1e-12}
CONFIG |= {"mem_len": None, "reuse_len": None, "same_length": False, "untie_r": True, "dropout": 0.1}
CONFIG |= {"summary_type": "last", "summary_use_proj": True, "summary_activation": "tanh", "start_n_top": 5}
CONFIG |= {"pad_token_id": 5, "bos_token_id": 1, "eos_token_id": 2, "summary_last_dropout": 0.1, "end_n_top": 5}
TINY = {"vocab_size": 900, "d_model": 48, "n_layer": 3, "n_head": 4, "d_head": 12, "d_inner": 72}
MAX_LENGTH = 160


@dataclass(frozen=True, kw_only=True)
class XLNetSpec(Spec):
    not_compared: ClassVar[tuple[str, ...]] = ("mems",)  # memories of a text before, which zoo leaves out

    def unread_tensors(self, config: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, np.ndarray]]:
        """The input of pretraining's second stream."""
        yield f"{self.prefix}mask_emb", np.full((1, 1, config["d_model"]), 0.1, np.float32)

    def write_files(self, folder: Path, config: Mapping[str, Any]) -> None:
        """A vocabulary; no field says how long a text may be."""
        write_xlnet(folder, config["vocab_size"], MAX_LENGTH)

    def array_in_file(self, name: str, array: np.ndarray, config: Mapping[str, Any]) -> np.ndarray:
        """Matrices by heads."""
        if name[-2:] in (".q", ".k", ".v", ".o", ".r"):
            return array.reshape(len(array), config["n_head"], -1)
        return array

    @staticmethod
    def load_reference(model_class: Any, folder: Path, config: Mapping[str, Any], dtype: Any) -> Loaded:
        """transformers' model in one dtype: 5.23 leaves the matrices of attention in float32."""
        model, info = Spec.load_reference(model_class, folder, config, dtype)
        return model.to(dtype), info

    @staticmethod
    def from_stages(
        found: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray], config: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The stages with rows before tokens; transformers' layers have tokens first."""
        return {
            name: array.swapaxes(0, 1) if name.startswith(("embeddings", "layer.")) else array
            for name, array in found.items()
        }


_xlnet = partial(XLNetSpec, model_type="xlnet", like="save_pretrained", config=CONFIG, tiny=TINY)

SPECS: dict[str, Spec] = {
    "xlnet-base-cased": _xlnet(like="xlnet/xlnet-base-cased", architecture="XLNetLMHeadModel", format="bin", full=True),
    "xlnet-bare": _xlnet(architecture="XLNetModel", format="sharded"),
    "xlnet-classifier": _xlnet(architecture="XLNetForSequenceClassification", config={**CONFIG, **labels(count=3)}),
    "xlnet-plain-classifier": _xlnet(
        architecture="XLNetForSequenceClassification",
        config={**CONFIG, **labels(count=2), "summary_use_proj": False},
    ),
    "xlnet-ner": _xlnet(architecture="XLNetForTokenClassification", config={**CONFIG, **labels(count=9)}),
    "xlnet-squad": _xlnet(architecture="XLNetForQuestionAnsweringSimple", dtype="F16"),
    "xlnet-swag": _xlnet(architecture="XLNetForMultipleChoice"),
}
