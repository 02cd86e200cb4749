"""Other values of a config's fields, by the field's name and by the type of the value that it has."""

from __future__ import annotations

import dataclasses
import random
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from zoo.registry import FAMILIES

MAX_SIZE = 300  # the largest size, so that a pair takes a tenth of a second
PARTS = ("text_config", "vision_config", "encoder", "decoder", "backbone_config")
FULL_ATTENTION, SLIDING_ATTENTION = "full_attention", "sliding_attention"


ABSENT_VALUE: Any = "(absent)"  # the value of a field that a config does not have
NO_OTHER_VALUE: Any = object()  # no other value is known


class Change(NamedTuple):
    """A field of config.json, in the object that `path` names, and its other value."""

    path: tuple[str, ...]
    value: Any

    @property
    def name(self) -> str:
        return self.path[-1]


def apply_changes(raw: Mapping[str, Any], changes: tuple[Change, ...]) -> dict[str, Any]:
    """A config with these changes."""
    found = dict(raw)
    for path, value in changes:
        if len(path) == 1 and value is ABSENT_VALUE:
            found.pop(path[0], None)
        elif len(path) == 1:
            found[path[0]] = value
        else:
            found[path[0]] = apply_changes(found.get(path[0]) or {}, (Change(path[1:], value),))
    return found


def draw_changes(raw: Mapping[str, Any], rng: random.Random) -> tuple[Change, ...]:
    """One to three changes of a config, as json.load gives it."""
    found: dict[tuple[str, ...], Change] = {}
    count = rng.choice((1, 1, 2, 2, 3))
    for _ in range(50):
        if len(found) >= count:
            break
        part = rng.choice([(), *((name,) for name in PARTS if isinstance(raw.get(name), dict))])
        config = raw[part[0]] if part else raw
        for found_change in rng.choices(SOURCES, WEIGHTS)[0](config, rng):
            path = (*part, *found_change.path)
            found[path] = found_change._replace(path=path)
    return tuple(found.values())


def _config_class(raw: Mapping[str, Any]) -> Any:
    from transformers import CONFIG_MAPPING
    from transformers.utils import logging

    logging.set_verbosity_error()
    return CONFIG_MAPPING[raw["model_type"]] if raw.get("model_type") in CONFIG_MAPPING else None


def _complete(raw: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of transformers' config, with their defaults; raw's own where it has no class for them."""
    cls = _config_class(raw)
    return dict(raw) if cls is None else {**raw, **cls.from_dict(dict(raw)).to_dict()}


def _own_field(raw: Mapping[str, Any], rng: random.Random) -> list[Change]:
    """A field of the family's config class."""
    config, cls = _complete(raw), _config_class(raw)
    if cls is None:
        return []
    hints = {field.name: str(field.type) for field in dataclasses.fields(cls)}
    names = [name for name in hints if name not in (*FIXED_KEYS, *PARTS) and not name.startswith("rope_")]
    return _as_changes(rng.choice(names), config, hints, rng)


def _as_changes(name: str, config: Mapping[str, Any], hints: Mapping[str, str], rng: random.Random) -> list[Change]:
    value = other_value(name, config, hints.get(name, ""), rng)
    return [] if value is NO_OTHER_VALUE else [Change((name,), value)]


def _of_all(raw: Mapping[str, Any], rng: random.Random) -> list[Change]:
    """A field that every config has, of version 4 or 5, on generation too."""
    name, config = rng.choice([*COMMON]), _complete(raw)
    if name == "add_cross_attention":  # which needs a decoder
        return [Change((name,), True), Change(("is_decoder",), True)]
    return [Change((name,), COMMON[name](rng, config))]


def _alias(raw: Mapping[str, Any], rng: random.Random) -> list[Change]:
    """A field by the name that other families have for it."""
    cls, config = _config_class(raw), _complete(raw)
    if cls is None or not cls.attribute_map:
        return []
    alias, name = rng.choice([*cls.attribute_map.items()])
    return [one._replace(path=(alias,)) for one in _as_changes(name, config, {}, rng)]


def _foreign_field(raw: Mapping[str, Any], rng: random.Random) -> list[Change]:
    """A field of another family, which transformers ignores, or not."""
    other = _config_class({"model_type": rng.choice([*FAMILIES])})
    if other is None:
        return []
    config = other().to_dict()
    own = _complete(raw)
    names = [name for name in config if name not in (*own, *FIXED_KEYS, *PARTS)]
    return _as_changes(rng.choice(names), config, {}, rng) if names else []


def _absent_field(raw: Mapping[str, Any], rng: random.Random) -> list[Change]:
    """A field that is left out: its default counts."""
    names = [name for name in raw if name not in ("model_type", "architectures", *PARTS)]
    return [Change((rng.choice(names),), ABSENT_VALUE)] if names else []


def _unknown_field(raw: Mapping[str, Any], rng: random.Random) -> list[Change]:
    return [Change((rng.choice(("note", "use_flash_attn", "hidden_dim", "n_ctx_extra")),), rng.choice((True, 3, "x")))]


def _rope(raw: Mapping[str, Any], rng: random.Random) -> list[Change]:
    """Rotary positions, in either version's words."""
    config = _complete(raw)
    if "rope_parameters" not in config:
        return []
    heads, D = config.get("num_attention_heads") or 1, config.get("hidden_size") or 1
    size, positions = config.get("head_dim") or D // heads, config.get("max_position_embeddings") or 64
    part = rng.choice((1.0, 1.0, 0.5)) if rng.random() < 0.3 else 1.0
    kind = rng.choice(("default", "linear", "dynamic", "yarn", "llama3", "longrope"))
    theta, original = rng.choice((100.0, 10000.0, 500000.0)), rng.choice((positions, positions // 2, positions // 4))
    given: dict[str, Any] = {} if kind == "default" else {"factor": rng.choice((1.0, 2.0, 4.0, 8.0))}
    if kind in ("llama3", "yarn", "longrope"):
        given["original_max_position_embeddings"] = max(original, 1)
    if kind == "llama3":
        given |= {"low_freq_factor": 1.0, "high_freq_factor": rng.choice((2.0, 4.0))}
    if kind == "longrope":
        count = max(int(size * part) // 2, 1)
        given |= {name: [round(rng.uniform(1, 4), 2) for _ in range(count)] for name in ("short_factor", "long_factor")}
    if kind in ("yarn", "longrope") and rng.random() < 0.3:
        given["attention_factor"] = rng.choice((0.5, 1.2))
    if kind == "yarn":
        more = {"beta_fast": 16.0, "beta_slow": 2.0, "mscale": 0.7, "mscale_all_dim": 0.9, "truncate": False}
        given |= {name: more[name] for name in more if rng.random() < 0.3}
    if part != 1:
        given["partial_rotary_factor"] = part
    layers = config["rope_parameters"]
    if isinstance(layers, dict) and SLIDING_ATTENTION in layers:  # each kind of layer has its own
        of = rng.choice((FULL_ATTENTION, SLIDING_ATTENTION))
        given.pop("truncate", None)  # which transformers looks for beside the kinds, and so never finds
        return [Change(("rope_parameters",), {**layers, of: {"rope_type": kind, "rope_theta": theta, **given}})]
    if rng.random() < 0.5:
        return [Change(("rope_parameters",), {"rope_type": kind, "rope_theta": theta, **given})]
    named = {rng.choice(("type", "rope_type")): kind, **given}
    return [Change(("rope_scaling",), named), *([Change(("rope_theta",), theta)] if rng.random() < 0.5 else [])]


SOURCES: tuple[Callable[[Mapping[str, Any], random.Random], list[Change]], ...]
SOURCES = (_own_field, _of_all, _absent_field, _rope, _alias, _foreign_field, _unknown_field)
WEIGHTS = (52, 18, 12, 10, 6, 5, 2)

# Fields that say what is read, and not how.
FIXED_KEYS = (
    "model_type",
    "architectures",
    "transformers_version",
    "dtype",
    "id2label",
    "label2id",
    "quantization_config",
)
TOKENS = ("_token_id", "_token_index")


def other_value(name: str, config: Mapping[str, Any], hint: str, rng: random.Random) -> Any:
    """Another value of a field; KEPT where none is known.  hint: the type that transformers declares."""
    value = config.get(name)
    if name in BY_NAME:
        return BY_NAME[name](rng, config)
    if name.endswith(TOKENS):
        return rng.choice((None, 0, 3, (config.get("vocab_size") or 8) - 1))
    if isinstance(value, bool):
        return not value
    if "Literal" in hint and isinstance(value, str):
        words = [word for word in hint.replace('"', "'").split("'")[1::2] if word != value]
        return rng.choice(words) if words else NO_OTHER_VALUE
    if isinstance(value, str) and value in activations():
        return rng.choice(activations())
    if isinstance(value, int):
        found = [value + 1, value - 1, value * 2, value // 2, 0, 1, 2, 3, 4, 8]
        return rng.choice([n for n in found if n != value and 0 <= n <= max(MAX_SIZE, value)])
    if isinstance(value, float):
        return rng.choice((0.0, 1.0, 0.5, value * 2, value / 2, 1e-3, 0.1))
    if isinstance(value, list) and value and all(isinstance(one, int) for one in value):
        at = rng.randrange(len(value))
        one = not value[at] if isinstance(value[at], bool) else rng.choice((1, 2, 3, value[at] * 2, value[at] // 2))
        return [*value[:at], one, *value[at + 1 :]]
    if value is None:
        return {"bool": True, "int": rng.choice((1, 2, 4, 8, 16)), "float": rng.choice((0.5, 1.0, 2.0))}.get(
            next((kind for kind in ("bool", "int", "float") if kind in hint), ""), NO_OTHER_VALUE
        )
    return NO_OTHER_VALUE


def activations() -> list[str]:
    """The names of transformers' activations."""
    from transformers.activations import ACT2CLS

    return [*ACT2CLS]


def _kinds(rng: random.Random, config: Mapping[str, Any]) -> list[str]:
    return [rng.choice((FULL_ATTENTION, SLIDING_ATTENTION)) for _ in range(config.get("num_hidden_layers") or 1)]


def _stages(rng: random.Random, config: Mapping[str, Any]) -> list[str]:
    names = config.get("stage_names") or ["stem", "stage1", "stage2"]
    return sorted(rng.sample(names, rng.randint(1, len(names))), key=names.index)


def _indices(rng: random.Random, config: Mapping[str, Any]) -> list[int]:
    names = config.get("stage_names") or ["stem", "stage1", "stage2"]
    return sorted(rng.sample(range(len(names)), rng.randint(1, len(names))))


def _label_count(rng: random.Random, config: Mapping[str, Any]) -> int:
    answers = any("QuestionAnswering" in name for name in config.get("architectures") or ())
    return 2 if answers else rng.randint(1, 5)


def _divisor(rng: random.Random, config: Mapping[str, Any]) -> int:
    return rng.choice((1, 2, 4, 8))


# Field -> a function from the random numbers and the config to another value.
BY_NAME: dict[str, Callable[[random.Random, Mapping[str, Any]], Any]] = {
    "layer_types": _kinds,
    "out_features": _stages,
    "out_indices": _indices,
    "num_attention_heads": _divisor,
    "num_key_value_heads": _divisor,
    "num_heads": _divisor,
    "encoder_attention_heads": _divisor,
    "decoder_attention_heads": _divisor,
    "head_dim": lambda rng, config: rng.choice((None, 2, 4, 6, 16)),
    "d_kv": lambda rng, config: rng.choice((2, 4, 6, 16)),
    "vocab_size": lambda rng, config: rng.choice((config["vocab_size"] + 1, config["vocab_size"] - 1, 64)),
    # Not 1, of which transformers 5.23 caches all tokens instead of none.
    "sliding_window": lambda rng, config: rng.choice((None, 2, 3, 5, 16, 4096)),
    "max_position_embeddings": lambda rng, config: rng.choice((8, 16, 33, 64, 128)),
    "position_embedding_type": lambda rng, config: rng.choice(
        ("absolute", "relative_key", "relative_key_query", "sine", "learned", "rope", "none")
    ),
    "feed_forward_proj": lambda rng, config: rng.choice(("relu", "gated-gelu", "gated-silu", "gelu_new", "gated-relu")),
    "dense_act_fn": lambda rng, config: rng.choice(("relu", "gelu_new", "silu")),
    "pos_att_type": lambda rng, config: rng.choice(([], ["c2p"], ["p2c"], ["c2p", "p2c"], "p2c|c2p")),
    "classifier_pooling": lambda rng, config: rng.choice(("cls", "mean")),
    "no_rope_layers": lambda rng, config: [rng.randint(0, 1) for _ in range(config.get("num_hidden_layers") or 1)],
    "summary_type": lambda rng, config: rng.choice(("first", "last", "mean", "cls_index")),
    "image_size": lambda rng, config: rng.choice((16, 24, 32, 48, [32, 48], [48, 24])),
    "num_channels": lambda rng, config: rng.choice((1, 3, 4)),
    "depths": lambda rng, config: [rng.randint(1, 2) for _ in config["depths"]],
}

Ids = typing.Any
# Fields of every config -> a function that draws a value.
COMMON: dict[str, Callable[[random.Random, Mapping[str, Any]], Any]] = {
    **dict.fromkeys(
        (
            *("tie_word_embeddings", "is_decoder", "add_cross_attention", "is_encoder_decoder", "use_cache"),
            *("output_hidden_states", "output_attentions", "return_dict", "torchscript"),
            *("use_bfloat16", "gradient_checkpointing", "tie_encoder_decoder", "tie_last_hidden_states", "do_sample"),
        ),
        lambda rng, config: rng.random() < 0.5,
    ),
    **dict.fromkeys(
        ("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "cls_token_id"),
        lambda rng, config: rng.choice((None, 0, 3, 5, (config.get("vocab_size") or 8) - 1)),
    ),
    "chunk_size_feed_forward": lambda rng, config: 1,
    "cross_attention_hidden_size": lambda rng, config: rng.choice((None, 16, 48)),
    "pruned_heads": lambda rng, config: rng.choice(({}, {"0": [0]})),
    "torch_dtype": lambda rng, config: rng.choice(("float32", "float16", "bfloat16")),
    "dtype": lambda rng, config: rng.choice(("float32", "float16", "bfloat16")),
    "num_labels": _label_count,
    "id2label": lambda rng, config: {str(i): f"kind {i}" for i in range(_label_count(rng, config))},
    "problem_type": lambda rng, config: rng.choice(
        ("regression", "single_label_classification", "multi_label_classification")
    ),
    "per_layer_config": lambda rng, config: {"0": {rng.choice(("sliding_window", "intermediate_size", "head_dim")): 8}},
    "attn_implementation": lambda rng, config: rng.choice(("eager", "sdpa")),
    "_attn_implementation": lambda rng, config: rng.choice(("eager", "sdpa")),
    "finetuning_task": lambda rng, config: "mnli",
    "tokenizer_class": lambda rng, config: "BertTokenizer",
    "task_specific_params": lambda rng, config: {"summarization": {"num_beams": 2}},
    "max_length": lambda rng, config: rng.choice((20, 30)),
    "min_length": lambda rng, config: rng.choice((0, 3)),
    "num_beams": lambda rng, config: rng.choice((1, 2)),
    "temperature": lambda rng, config: rng.choice((0.5, 1.0)),
    "repetition_penalty": lambda rng, config: rng.choice((1.0, 1.3)),
    "no_repeat_ngram_size": lambda rng, config: rng.choice((0, 2)),
    "prefix": lambda rng, config: "summarize: ",
    "initializer_range": lambda rng, config: rng.choice((0.0, 0.5)),
}
