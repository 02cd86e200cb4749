"""OPT checkpoints."""

from __future__ import annotations

from functools import partial

from .common import Spec, labels

CONFIG = {"vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072, "dropout": 0.1}
CONFIG |= {"max_position_embeddings": 2048, "do_layer_norm_before": True, "_remove_final_layer_norm": False}
CONFIG |= {"word_embed_proj_dim": 768, "attention_dropout": 0.0, "num_attention_heads": 12, "layerdrop": 0.0}
CONFIG |= {"activation_function": "relu", "init_std": 0.02, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 2}
TINY = {"vocab_size": 500, "hidden_size": 48, "num_hidden_layers": 3, "ffn_dim": 72, "num_attention_heads": 4}
TINY |= {"max_position_embeddings": 64, "word_embed_proj_dim": 48}
_350M = {**CONFIG, "hidden_size": 1024, "num_hidden_layers": 24, "ffn_dim": 4096, "word_embed_proj_dim": 512}
_350M |= {"do_layer_norm_before": False, "num_attention_heads": 16}
TINY_350M = {**TINY, "word_embed_proj_dim": 32}

_opt = partial(Spec, model_type="opt", config=CONFIG, tiny=TINY, tokenizer="bpe, named")

SPECS: dict[str, Spec] = {
    "opt-125m": _opt(like="facebook/opt-125m", architecture="OPTForCausalLM", full=True, format="bin", dtype="F16"),
    "opt-350m": _opt(like="facebook/opt-350m", architecture="OPTForCausalLM", config=_350M, tiny=TINY_350M),
    "opt-bare": _opt(like="save_pretrained", architecture="OPTModel", format="sharded"),
    "opt-classifier": _opt(
        like="save_pretrained", architecture="OPTForSequenceClassification", config={**CONFIG, **labels(count=3)}
    ),
    "opt-squad": _opt(
        like="save_pretrained",
        architecture="OPTForQuestionAnswering",
        config={**CONFIG, "enable_bias": False},
        dtype="BF16",
    ),
}
