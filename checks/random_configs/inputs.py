"""Random arguments for a model: lengths from 1 to the longest, paddings, positions, images of other sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parity.specs import spec_class
from parity.specs.siglip2 import PatchSpec
from zoo.inputs import ChoiceModel, ImageModel, TextModel
from zoo.inputs.audio import AudioModel
from zoo.inputs.audio_text import SpectrogramModel
from zoo.inputs.encoder_decoder import ReadTwice
from zoo.inputs.entities import EntityTextModel
from zoo.inputs.frames import FrameModel
from zoo.inputs.grounding import GroundedDetector
from zoo.inputs.poses import PoseModel
from zoo.inputs.waveform import WaveformModel

MAX_TOKENS = 160  # tokens, where a model has positions for more
STATES = 7  # an encoder's, where a decoder is called without one
MOST_PIXELS = 72  # a side's


class Arguments(NamedTuple):
    """Arguments of both models.

    mask (rows, T): the tokens, or the features of images, that are compared, over all leading axes flattened.  pooled:
    whether outputs without an axis of tokens are compared: not where a row begins with padding, of which an encoder
    would make them.
    """

    arrays: dict[str, np.ndarray]
    switches: tuple[str, ...] = ()
    mask: np.ndarray | None = None
    pooled: bool = True


def arguments(model: Any, rng: np.random.Generator) -> Arguments:
    """Arguments that a model of zoo takes."""
    if isinstance(model, TextModel):
        return _texts(model, rng)
    if isinstance(model, PoseModel):
        return Arguments(model.example(int(rng.integers(1 << 30)), rows=int(rng.integers(1, 4))))
    if isinstance(model, ImageModel):
        return _images(model, rng)
    if isinstance(model, AudioModel):
        return Arguments({"input_features": _sounds(model.config, rng)})
    if isinstance(model, SpectrogramModel):
        found = model.example(int(rng.integers(1 << 30)), rows=int(rng.integers(1, 3)))
        W = int(rng.choice([model.config.max_frames, *rng.integers(1, model.config.max_frames + 1, 2)]))
        return Arguments({**found, "input_features": found["input_features"][..., -W:]})
    if isinstance(model, WaveformModel | FrameModel):
        sizes = {"seed": int(rng.integers(1 << 30)), "rows": int(rng.integers(1, 4)), "length": int(rng.integers(1, 9))}
        return Arguments(model.example(**sizes))
    kinds = TextModel | ImageModel | AudioModel | SpectrogramModel | WaveformModel
    parts = {name: part for name, part in vars(model).items() if isinstance(part, kinds)}
    if not parts or isinstance(model, GroundedDetector):  # which may hold one of its parts alone
        parts = {name: getattr(model, name) for name in getattr(model, "parts", ())}
    decoder, found, taken = parts.pop("decoder", None), Arguments({}), getattr(model, "arguments", ())
    for part in parts.values():
        own = arguments(part, rng)
        mask = own.mask if found.mask is None else found.mask
        switches = tuple(name for name in own.switches if name in (*getattr(model, "inputs", ()), *taken))
        both = ("input_ids", "attention_mask", *PIXELS, *getattr(model, "inputs", ()))
        arrays = {k: v for k, v in own.arrays.items() if k in both}
        if "input_ids" in own.arrays or "inputs_embeds" not in own.arrays:
            found = Arguments({**found.arrays, **arrays}, switches, mask, found.pooled and own.pooled)
    if isinstance(model, GroundedDetector):  # for which 0 is no text, in transformers
        ids = found.arrays["input_ids"]
        ids[:, 0] = np.maximum(ids[:, 0], 1)
    if decoder is None and getattr(model, "in_pairs", False):
        count = min(map(len, found.arrays.values()))
        mask = None if found.mask is None else found.mask[:count]
        return found._replace(arrays={name: array[:count] for name, array in found.arrays.items()}, mask=mask)
    if decoder is None:
        return found
    rows = len(next(iter(found.arrays.values())))
    arrays = {**found.arrays, **_decoder_tokens(decoder, rows, rng)}
    return Arguments(
        arrays, found.switches, arrays.get("decoder_attention_mask", np.ones_like(arrays["decoder_input_ids"])) > 0
    )


PIXELS = ("pixel_values", "input_features", "is_longer", "input_values")


def _length(most: int, rng: np.random.Generator) -> int:
    """Of a text: few tokens mostly, but one token and all positions too."""
    most = max(min(most, MAX_TOKENS), 1)
    return int(rng.choice([1, 2, most, *rng.integers(1, min(most, 24) + 1, 5)]))


def _padding(rows: int, T: int, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """How a batch is padded, and its mask (rows, T)."""
    how = str(rng.choice(["none", "none", "ones", "right", "right", "left", "holes"]))
    lengths = rng.integers(1, T + 1, (rows, 1))
    lengths[0] = T
    at = np.arange(T)
    mask = {"right": at < lengths, "left": at >= T - lengths}.get(how, np.ones((rows, T), bool))
    if how == "holes":
        mask = rng.random((rows, T)) < 0.7
        mask[:, 0] = True
    return how, mask


def _texts(model: TextModel, rng: np.random.Generator) -> Arguments:
    config, rows = model.config, int(rng.integers(1, 4))
    T, V = _length(model.max_positions, rng), config.vocab_size
    how, mask = _padding(rows, T, rng)
    ids = rng.integers(0, V, (rows, T))
    pad, end = getattr(config, "pad_token_id", None), getattr(config, "eos_token_id", None)
    if how in ("right", "left") and pad is not None and 0 <= pad < V:
        ids = np.where(mask, ids, pad)
    if isinstance(model, ReadTwice) and isinstance(end, int):  # transformers wants as many ends in each row
        ids = np.where(ids == end, (end + 1) % V, ids)
        ids[:, -1] = end
    arrays: dict[str, np.ndarray] = {"input_ids": ids}
    if how != "none":
        arrays["attention_mask"] = mask.astype(np.int64)
    kinds = getattr(config, model.inputs.get("token_type_ids", ""), 0)
    if kinds and rng.random() < 0.6:
        arrays["token_type_ids"] = rng.integers(0, kinds, (rows, T))
    if "position_ids" in model.inputs and rng.random() < 0.5:
        arrays["position_ids"] = _positions(rows, T, getattr(config, model.inputs["position_ids"]), rng)
    embeds = getattr(config, model.inputs.get("inputs_embeds", ""), 0)
    if embeds and rng.random() < 0.1 and not isinstance(model, ChoiceModel):
        del arrays["input_ids"]
        arrays["inputs_embeds"] = rng.standard_normal((rows, T, embeds), np.float32) * np.float32(0.05)
    if not isinstance(model, ChoiceModel):
        arrays |= _other_inputs(model, rows, T, rng)
    states = getattr(config, model.inputs.get("encoder_hidden_states", ""), 0)
    if states and getattr(config, "add_cross_attention", True):
        arrays["encoder_hidden_states"] = rng.standard_normal((rows, STATES, states), np.float32)
        if spec_class(config.model_type).masks_states and rng.random() < 0.5:
            seen = np.arange(STATES) < rng.integers(1, STATES + 1, (rows, 1))
            arrays["encoder_attention_mask"] = seen.astype(np.int64)
    if isinstance(model, ChoiceModel):
        arrays = {name: array.reshape(rows, 1, T) for name, array in arrays.items() if name != "position_ids"}
    return Arguments(arrays, (), mask, _has_pooled_tokens(model, ids, mask))


def _has_pooled_tokens(model: TextModel, ids: np.ndarray, mask: np.ndarray) -> bool:
    """False where the token that the vector of a text is taken from is padding, whose state means nothing."""
    if places := getattr(getattr(model, "base_model", model), "eos_positions", None):  # of CLIP
        return bool(mask[np.arange(len(ids)), np.asarray(places(ids))].all())
    if model.ends_with_cls:
        return bool(mask[:, -1].all())
    pools_last = model.is_causal and not getattr(model.config, "is_decoder", False)
    return pools_last or bool(mask[:, 0].all())


def _other_inputs(model: TextModel, rows: int, T: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Some of what a kind of input has beside texts, such as boxes and pictures of pages."""
    sizes: dict[str, Any] = {"seed": int(rng.integers(1 << 30)), "rows": rows, "length": T}
    if isinstance(model, EntityTextModel):
        if not model.least_entities and rng.random() < 0.4:
            return {}
        entities = model.entities_of(rows, T, sizes["seed"], padded=bool(rng.random() < 0.5))
        kept = ("entity_token_type_ids",) if rng.random() < 0.3 else ()
        return {name: array for name, array in entities.items() if name not in kept}
    of_texts = TextModel.example(model, **sizes)
    found = {name: array for name, array in model.example(**sizes).items() if name not in of_texts}
    return {name: array for name, array in found.items() if len(array) == rows and rng.random() < 0.7}


def _positions(rows: int, T: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Positions (rows or 1, T): counted from elsewhere, several texts in a row, or any."""
    at, how = np.arange(T)[None], rng.choice(["later", "packed", "packed", "each", "any"])
    if how == "later":
        return np.minimum(at + rng.integers(0, max(most - T, 0) + 1), most - 1)
    if how == "packed":
        begins = np.sort(rng.integers(0, T, (rows, 2)), axis=1)
        starts = np.where(at >= begins[:, 1:], begins[:, 1:], np.where(at >= begins[:, :1], begins[:, :1], 0))
        return np.minimum(at - starts, most - 1)
    if how == "each":
        return np.minimum(at + rng.integers(0, 3, (rows, 1)), most - 1)
    return rng.integers(0, most, (rows, T))


def _decoder_tokens(decoder: Any, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    T = _length(decoder.max_positions, rng)
    ids = rng.integers(0, decoder.config.vocab_size, (rows, T))
    found = {"decoder_input_ids": ids}
    if rng.random() < 0.4:
        found["decoder_attention_mask"] = (np.arange(T) < rng.integers(1, T + 1, (rows, 1))).astype(np.int64)
    return found


def _sounds(config: Any, rng: np.random.Generator) -> np.ndarray:
    shape = int(rng.integers(1, 3)), config.num_mel_bins, config.frames
    return rng.normal(0, 0.4, shape).astype(np.float32)


def _images(model: ImageModel, rng: np.random.Generator) -> Arguments:
    """Images of the config's size; or, where the model takes any, of another."""
    config, switches = model.config, ()
    size, patch = getattr(config, "image", (MOST_PIXELS // 2, MOST_PIXELS // 2)), model.patch
    asked = "interpolate_pos_encoding" in model.inputs
    if model.any_size or (asked and size[0] == size[1] and rng.random() < 0.4):
        step = max(int(rng.choice([patch[0], 32, 32])), 1)
        sides = rng.integers(1, max(MOST_PIXELS // step, 1) + 1, 2) * step
        sides[1] = max(sides[1], 2 * patch[1])  # torch 2.13 resizes positions to one column wrongly
        if not model.any_size:
            switches = ("interpolate_pos_encoding",)
        elif rng.random() < 0.2 and not issubclass(spec_class(config.model_type), PatchSpec):
            sides = sides + rng.integers(0, step, 2)
        size = int(sides[1 if spec_class(config.model_type).square else 0]), int(sides[1])
    B = int(rng.integers(1, 3))
    arrays: dict[str, np.ndarray] = {"pixel_values": rng.standard_normal((B, *size, model.channels), np.float32)}
    mask = None
    if "pixel_mask" in model.inputs and rng.random() < 0.5:
        seen = rng.integers(1, np.array(size) + 1, (B, 2))
        rows, columns = np.arange(size[0]) < seen[:, :1], np.arange(size[1]) < seen[:, 1:]
        arrays["pixel_mask"] = (rows[:, :, None] & columns[:, None]).astype(np.int64)
        mask = spec_class(config.model_type).seen_features(config, arrays["pixel_mask"])
    masks = "bool_masked_pos" in model.inputs and model.base_model.embeddings.mask is not None
    if masks and rng.random() < 0.5:
        h, w = model.grid(arrays["pixel_values"])
        arrays["bool_masked_pos"] = rng.random((B, h * w)) < 0.4
    return Arguments(arrays, switches, mask)
