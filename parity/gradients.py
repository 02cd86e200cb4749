"""Gradients: of a head's loss by every parameter, zoo's on torch against transformers'.

What transformers found is saved as a checkpoint whose tensors are gradients, and read by zoo: names and shapes need no
table of their own.  Both sides compute in float64, where what is 0 in theory (a key's bias) is 0 to sixteen places and
not a rounding error to be compared with another; in float32 where transformers' own are NaN in float64.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from zoo.checkpoint.files import Checkpoint
from zoo.errors import InputError, UnsupportedError
from zoo.loading import load_model, model_of
from zoo.nn import leaves
from zoo.ops import to_numpy
from zoo.registry import FAMILIES, config_class

from .cases import RANDOM_PREFIX, Case
from .compare import Stage, Tolerance
from .inputs import given_to
from .reference import BadReferenceError, Reference, exact_products
from .run import Result
from .specs import SPECS, config_of
from .texts import Batch

# By dtype the rule, and the size below which a gradient is 0 in theory and its value rounding: as a part of the largest
# gradient (root mean square).
RULES = {
    "float64": (Tolerance(relative_l2=1e-5, max_abs=math.inf), 1e-6),
    "float32": (Tolerance(relative_l2=1e-3, max_abs=math.inf), 1e-4),
}
ALL_IGNORED = -100


def has_loss(case: Case) -> bool:
    """True if a random checkpoint's head has a loss; a real checkpoint must be named to be taken.

    The loss of a written text needs pad_token_id, which Moonshine's configs may lack.
    """
    from zoo.apps.train.losses import loss_of  # which needs torch

    spec = SPECS.get(case.name.removeprefix(RANDOM_PREFIX)) if case.size == "tiny" else None
    if spec is None:
        return False
    loss, padding = (
        loss_of(spec.architecture, spec.model_type),
        getattr(config_class(spec.model_type), "pad_token_id", 0),
    )
    pads = padding is not None or "pad_token_id" in config_of(spec, "tiny")
    return loss is not None and (pads or loss != "written text")


def run_gradients(case: Case, *, device: str | None = None, seed: int = 0) -> Result:
    """Compare loss and gradients on a case.  UnsupportedError where its head has no loss.

    In float64, and in float32 if transformers computes NaN in float64: some of its masks do not allow for that.
    """
    began = time.perf_counter()
    device = "torch:cpu" if device in (None, "cpu") else device
    with case.files(seed) as checkpoint, exact_products():
        name = ""
        for dtype in RULES:
            name, stages = _stages(checkpoint, device, dtype, seed)
            if stages:
                rest = dtype, seed, RULES[dtype][0], (), stages, time.perf_counter() - began
                return Result(case, name, checkpoint.revision, "torch", device, *rest)
    raise BadReferenceError(f"transformers computes NaN for {name}'s loss or a gradient, in float64 and float32")


def _stages(checkpoint: Checkpoint, device: str, dtype: str, seed: int) -> tuple[str, tuple[Stage, ...]]:
    """The name of the class, and the stages: the loss, and each gradient; none where the reference's are not finite."""
    from zoo.apps.train import compute_loss  # which needs torch

    model = model_of(checkpoint, device=device, dtype=dtype, trainable=True)
    name = model.architecture
    batch = _batch(model, checkpoint.folder, seed)
    labels = labels_for(model, batch, np.random.default_rng(seed))
    inputs = {key: array for key, array in batch.arrays.items() if key != "decoder_input_ids"}
    loss = compute_loss(model, inputs | dict.fromkeys(batch.switches, True), labels)
    loss.backward()
    reference = Reference(checkpoint.folder, name, device.removeprefix("torch:"), dtype)
    head = FAMILIES[model.config.model_type].head(name)
    with tempfile.TemporaryDirectory(prefix="parity-") as root:
        wanted = _reference_gradients(reference, batch, labels, Path(root))
        if wanted is None:
            return name, ()
        gradients = load_model(root, head=head, device=device, dtype=dtype, trainable=True)
        theirs: dict[str, Any] = dict(leaves(gradients))
    rule, nothing = RULES[dtype]
    stages = [_stage("loss", loss.detach().reshape(1), wanted.reshape(1), 0, rule)]
    # A shared array comes by several paths: its gradient is compared once.
    trained = {id(tensor) for tensor in model.parameters()}
    pairs = {id(tensor): (path, tensor) for path, tensor in leaves(model) if id(tensor) in trained}
    scale = max(float(theirs[path].detach().square().mean().sqrt()) for path, _ in pairs.values())
    for path, tensor in pairs.values():
        found: Any = tensor
        stages.append(_stage(path, found.grad, theirs[path], scale * nothing, rule))
    return name, tuple(stages)


def _batch(model: Any, folder: Path, seed: int) -> Batch:
    """One of the batches of the report: with hidden patches, where a head is about them; else the first.

    The loss of an answer's ends is over all tokens: there padding counts as tokens, for each side has its own states of
    padding that attends to nothing.
    """
    from zoo.apps.train.losses import loss_of

    found = given_to(model, folder, seed).batches
    batch = next((batch for batch in found if "bool_masked_pos" in batch.arrays), found[0])
    if loss_of(model.architecture, model.config.model_type) == "span":
        batch = batch._replace(arrays={k: v for k, v in batch.arrays.items() if k != "attention_mask"})
    if any({"input_ids", name} <= batch.arrays.keys() for name in ("pixel_values", "input_features")):  # pairs
        count = min(map(len, batch.arrays.values()))
        batch = batch._replace(arrays={k: v[:count] for k, v in batch.arrays.items()})
    return batch


def labels_for(model: Any, batch: Batch, rng: np.random.Generator) -> Any:
    """Random labels as `zoo.apps.train.compute_loss` takes them."""
    from zoo.apps.train.losses import loss_of

    loss = loss_of(model.architecture, model.config.model_type)
    if loss is None:
        raise UnsupportedError(f"{model.architecture} has no loss")
    return LABELS[loss](model.config, batch.arrays, rng)


def _choices(cfg: Any, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    ids = arrays["input_ids"]  # (B, choices, T), or (B, T) where the second sentence follows or does not
    return rng.integers(0, ids.shape[1] if ids.ndim == 3 else 2, len(ids))


def _spans(cfg: Any, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    B, T = arrays["input_ids"].shape
    return {"start_positions": rng.integers(0, T + 3, B), "end_positions": rng.integers(0, T, B)}


def _tokens(count: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Labels below count, some of them ignored, but never all."""
    labels = rng.integers(0, count, shape)
    found = np.where(rng.random(shape) < 0.3, ALL_IGNORED, labels)
    found[:, -1] = labels[:, -1]
    return found


def _of_text(count: int, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """`_tokens` of a text's tokens: padding has no label, since within a window it may attend to nothing."""
    found = _tokens(count, arrays["input_ids"].shape, rng)
    return np.where(arrays.get("attention_mask", 1), found, ALL_IGNORED)


def _pretraining(cfg: Any, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    ids = arrays["input_ids"]
    return {"labels": _tokens(cfg.vocab_size, ids.shape, rng), "next_sentence_label": rng.integers(0, 2, len(ids))}


def _segments(cfg: Any, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    found = rng.integers(0, cfg.num_labels, arrays["pixel_values"].shape[:3])
    return np.where(rng.random(found.shape) < 0.1, cfg.semantic_loss_ignore_index, found)


def _objects(cfg: Any, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    found = []
    for count in range(2, 2 + len(arrays["pixel_values"])):
        boxes = np.concatenate([rng.uniform(0.3, 0.7, (count, 2)), rng.uniform(0.1, 0.5, (count, 2))], 1)
        found.append({"class_labels": rng.integers(0, cfg.num_labels, count), "boxes": boxes.astype(np.float32)})
    return found


def _classes(cfg: Any, arrays: dict[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    B, problem = len(next(iter(arrays.values()))), cfg.extra.get("problem_type")
    if problem == "multi_label_classification":
        return rng.integers(0, 2, (B, cfg.num_labels)).astype(np.float64)
    if problem == "regression" or cfg.num_labels == 1:
        return rng.standard_normal((B, cfg.num_labels) if cfg.num_labels > 1 else B)
    return rng.integers(0, cfg.num_labels, B)


# The name of a loss -> labels of a batch with these arguments.
LABELS: dict[str, Callable[[Any, dict[str, np.ndarray], np.random.Generator], Any]] = {
    "tokens": lambda cfg, arrays, rng: _of_text(cfg.vocab_size, arrays, rng),
    "next token": lambda cfg, arrays, rng: _of_text(cfg.vocab_size, arrays, rng),
    "tags": lambda cfg, arrays, rng: _of_text(cfg.num_labels, arrays, rng),
    "replaced tokens": lambda cfg, arrays, rng: rng.integers(0, 2, arrays["input_ids"].shape),
    "written text": lambda cfg, arrays, rng: _tokens(
        getattr(cfg, "decoder", cfg).vocab_size, (len(next(iter(arrays.values()))), 7), rng
    ),
    "characters of a recording": lambda cfg, arrays, rng: _tokens(
        cfg.vocab_size, (len(next(iter(arrays.values()))), 5), rng
    ),
    "visual tokens": lambda cfg, arrays, rng: rng.integers(0, cfg.vocab_size, int(arrays["bool_masked_pos"].sum())),
    "hidden pixels": lambda cfg, arrays, rng: None,
    "classes": _classes,
    "classes of entities": lambda cfg, arrays, rng: rng.integers(
        0,
        cfg.num_labels,
        arrays["entity_ids"].shape if "entity_start_positions" in arrays else len(arrays["entity_ids"]),
    ),
    "choice": _choices,
    "span": _spans,
    "pretraining": _pretraining,
    "segmentation": _segments,
    "objects": _objects,
    "pairs": lambda cfg, arrays, rng: None,
    "pairs of texts and sounds": lambda cfg, arrays, rng: None,
}


def _reference_gradients(reference: Reference, batch: Batch, labels: Any, folder: Path) -> Any:
    """The loss, and in `folder` the model with its gradients in the place of its parameters; None for what is not
    finite.
    """
    import torch

    from zoo.apps.train.losses import shift_right

    model = reference.model
    for parameter in model.parameters():
        parameter.requires_grad_(True)  # of a detector transformers freezes what it was given trained
    options: dict[str, Any] = reference.arguments(batch.arrays) | dict.fromkeys(batch.switches, True)
    has_decoder = options.pop("decoder_input_ids", None) is not None
    if isinstance(labels, dict):
        options |= {name: torch.as_tensor(value, device=reference.device) for name, value in labels.items()}
    elif isinstance(labels, list):
        options["labels"] = [{k: reference._tensor(v) for k, v in one.items()} for one in labels]
    elif labels is not None:
        options["labels"] = torch.as_tensor(labels, device=reference.device)
    if has_decoder:  # the config of version 5 has no pad_token_id to make it of
        decoder = reference.config.get("decoder", {})
        start, padding = (reference.config.get(k, decoder.get(k)) for k in ("decoder_start_token_id", "pad_token_id"))
        options["decoder_input_ids"] = shift_right(torch.as_tensor(labels), start, padding)
    elif any({"input_ids", name} <= options.keys() for name in ("pixel_values", "input_features")):
        options["return_loss"] = True
    before = torch.get_default_dtype()
    torch.set_default_dtype(reference.dtype)  # in which its losses make their constants
    try:
        loss = model(**options, **({"use_cache": False} if reference.config.get("is_decoder") else {})).loss
    finally:
        torch.set_default_dtype(before)
    if loss is None:
        raise InputError(f"transformers gives no loss for {reference.architecture}")
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
    if not all(bool(torch.isfinite(x).all()) for x in (loss, *model.parameters())):
        return None
    model.save_pretrained(folder)
    return loss.detach()


def _stage(name: str, ours: Any, theirs: Any, least: float, rule: Tolerance) -> Stage:
    a, b = (np.zeros(1) if x is None else to_numpy(x.detach()).astype(np.float64).ravel() for x in (ours, theirs))
    own = float(np.sqrt(np.mean(b**2)))
    off = float(np.sqrt(np.mean((a - b) ** 2)))
    relative = off / own if own > least else 0.0 if off <= least else math.inf
    cosine = float(a @ b / math.sqrt((a @ a) * (b @ b))) if own > least and a.any() else 1.0
    note = "no gradient" if ours is None and own > least else "0 on both sides" if own <= least and off <= least else ""
    largest, holds = float(np.abs(a - b).max()), relative <= rule.relative_l2
    return Stage(name, "", len(b), max(own, least), largest, relative, cosine, None, holds, note)
