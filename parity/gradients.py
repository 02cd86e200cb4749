"""Gradients: of a head's loss by every parameter, zoo's on torch against transformers'.

What transformers found is saved as a checkpoint whose tensors are gradients, and read by zoo: names and shapes need no
table of their own.  Both sides compute in float64, where what is 0 in theory (a key's bias) is 0 to sixteen places and
not a rounding error to be compared with another.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from zoo.errors import InputError, UnsupportedError
from zoo.loading import load_model, model_of
from zoo.nn import leaves
from zoo.ops import to_numpy
from zoo.registry import FAMILIES

from .cases import RANDOM, Batch, Case
from .compare import Stage, Tolerance
from .reference import Reference, exact_products
from .run import Result, given_to
from .specs import SPECS

RULE = Tolerance(relative_l2=1e-5, max_abs=math.inf)
# Of the largest gradient (root mean square): what is smaller is 0 in theory, and its figures are rounding.
NOTHING = 1e-6
ALL_IGNORED = -100


def has_loss(case: Case) -> bool:
    """Whether a random checkpoint's head has one; a real checkpoint is taken by name alone."""
    if not case.name.startswith(RANDOM) or case.size != "tiny":
        return False
    name = SPECS[case.name.removeprefix(RANDOM)].architecture
    bare = name.endswith(("Model", "Backbone", "WithTeacher")) and not name.endswith("LMHeadModel")
    return not bare or name == "VisionEncoderDecoderModel"


def run_gradients(case: Case, *, device: str | None = None, seed: int = 0) -> Result:
    """Compare loss and gradients on a case.  UnsupportedError where its head has no loss."""
    from zoo.apps.train import compute_loss  # which needs torch

    began = time.perf_counter()
    device = "torch:cpu" if device in (None, "cpu") else device
    where = device.removeprefix("torch:")
    with case.files(seed) as checkpoint, exact_products():
        model = model_of(checkpoint, device=device, dtype="float64", trainable=True)
        name = type(model).__name__
        batch = _batch(model, checkpoint.folder, seed)
        labels = labels_for(model, batch, np.random.default_rng(seed))
        inputs = {key: array for key, array in batch.arrays.items() if key != "decoder_input_ids"}
        loss = compute_loss(model, inputs | dict.fromkeys(batch.switches, True), labels)
        loss.backward()
        reference = Reference(checkpoint.folder, name, where, "float64")
        with tempfile.TemporaryDirectory(prefix="parity-") as root:
            wanted = _reference_gradients(reference, batch, labels, Path(root))
            theirs: dict[str, Any] = dict(
                leaves(load_model(root, head=_head(model), device=device, dtype="float64", trainable=True))
            )
    stages = [_stage("loss", loss.detach().reshape(1), wanted.reshape(1), 0)]
    # A shared array comes by several paths: its gradient is compared once.
    trained = {id(tensor) for tensor in model.parameters()}
    pairs = {id(tensor): (path, tensor) for path, tensor in leaves(model) if id(tensor) in trained}
    scale = max(float(theirs[path].detach().square().mean().sqrt()) for path, _ in pairs.values())
    for path, tensor in pairs.values():
        found: Any = tensor
        stages.append(_stage(path, found.grad, theirs[path], scale))
    seconds = time.perf_counter() - began
    return Result(case, name, checkpoint.revision, "torch", device, "float64", seed, RULE, (), tuple(stages), seconds)


def _head(model: Any) -> str:
    return type(model).__name__.removeprefix(FAMILIES[model.config.model_type].prefix)


def _batch(model: Any, folder: Path, seed: int) -> Batch:
    """One of the batches of the report: with hidden patches, where a head is about them; else the first."""
    found = given_to(model, folder, seed).batches
    return next((batch for batch in found if "bool_masked_pos" in batch.arrays), found[0])


def labels_for(model: Any, batch: Batch, rng: np.random.Generator) -> Any:
    """Random labels of the kind that `zoo.apps.train.compute_loss` names for the head."""
    cfg, head, arrays = model.config, _head(model), batch.arrays
    B = len(next(iter(arrays.values())))
    if head in ("ForSequenceClassification", "ForImageClassification"):
        return _classes(cfg, B, rng)
    if head == "ForNextSentencePrediction":
        return rng.integers(0, 2, B)
    if head == "ForMultipleChoice":
        return rng.integers(0, arrays["input_ids"].shape[1], B)
    if head == "ForQuestionAnswering":
        T = arrays["input_ids"].shape[1]
        return {"start_positions": rng.integers(0, T + 3, B), "end_positions": rng.integers(0, T, B)}
    if head == "ForPreTraining":
        words = _some_ignored(rng.integers(0, cfg.vocab_size, arrays["input_ids"].shape), rng)
        return {"labels": words, "next_sentence_label": rng.integers(0, 2, B)}
    if head in ("ForMaskedLM", "ForCausalLM", "LMHeadModel", "ForTokenClassification"):
        count = cfg.num_labels if head == "ForTokenClassification" else cfg.vocab_size
        return _some_ignored(rng.integers(0, count, arrays["input_ids"].shape), rng)
    if cfg.model_type == "vision-encoder-decoder":
        return _some_ignored(rng.integers(0, cfg.decoder.vocab_size, (B, 7)), rng)
    if head == "ForMaskedImageModeling":
        return (
            rng.integers(0, cfg.vocab_size, int(arrays["bool_masked_pos"].sum())) if cfg.model_type == "beit" else None
        )
    if head == "ForSemanticSegmentation":
        found = rng.integers(0, cfg.num_labels, (B, *arrays["pixel_values"].shape[1:3]))
        return np.where(rng.random(found.shape) < 0.1, cfg.semantic_loss_ignore_index, found)
    if head == "ForObjectDetection":
        return [_objects(cfg, n, rng) for n in range(2, 2 + B)]
    raise UnsupportedError(f"{type(model).__name__} has no loss")


def _classes(cfg: Any, B: int, rng: np.random.Generator) -> np.ndarray:
    problem = cfg.extra.get("problem_type")
    if problem == "multi_label_classification":
        return rng.integers(0, 2, (B, cfg.num_labels)).astype(np.float64)
    if problem == "regression" or cfg.num_labels == 1:
        return rng.standard_normal((B, cfg.num_labels) if cfg.num_labels > 1 else B)
    return rng.integers(0, cfg.num_labels, B)


def _some_ignored(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    found = np.where(rng.random(labels.shape) < 0.3, ALL_IGNORED, labels)
    found[:, -1] = labels[:, -1]  # never all of them
    return found


def _objects(cfg: Any, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    boxes = np.concatenate([rng.uniform(0.3, 0.7, (count, 2)), rng.uniform(0.1, 0.5, (count, 2))], 1)
    return {"class_labels": rng.integers(0, cfg.num_labels, count), "boxes": boxes.astype(np.float32)}


def _reference_gradients(reference: Reference, batch: Batch, labels: Any, folder: Path) -> Any:
    """The loss; and in `folder` the model with its gradients in the place of its parameters."""
    import torch

    from zoo.apps.train.losses import shift_right

    model = reference.model
    for parameter in model.parameters():
        parameter.requires_grad_(True)  # of a detector transformers freezes what it was given trained
    options: dict[str, Any] = {name: reference._tensor(array) for name, array in batch.arrays.items()}
    options.pop("decoder_input_ids", None)
    if "pixel_values" in options:
        options["pixel_values"] = options["pixel_values"].permute(0, 3, 1, 2)
    options |= dict.fromkeys(batch.switches, True)
    if "bool_masked_pos" in options:
        options["bool_masked_pos"] = options["bool_masked_pos"].bool()
    if isinstance(labels, dict):
        options |= {name: torch.as_tensor(value, device=reference.device) for name, value in labels.items()}
    elif isinstance(labels, list):
        options["labels"] = [{k: reference._tensor(v) for k, v in one.items()} for one in labels]
    elif labels is not None:
        options["labels"] = torch.as_tensor(labels, device=reference.device)
    if reference.config["model_type"] == "vision-encoder-decoder":  # whose config of version 5 has no pad_token_id
        decoder = reference.config["decoder"]
        start, padding = (reference.config.get(k, decoder.get(k)) for k in ("decoder_start_token_id", "pad_token_id"))
        options["decoder_input_ids"] = shift_right(torch.as_tensor(labels), start, padding)
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
    model.save_pretrained(folder)
    return loss.detach()


def _stage(name: str, ours: Any, theirs: Any, scale: float) -> Stage:
    a, b = (np.zeros(1) if x is None else to_numpy(x.detach()).astype(np.float64).ravel() for x in (ours, theirs))
    own = float(np.sqrt(np.mean(b**2)))
    off = float(np.sqrt(np.mean((a - b) ** 2)))
    least = scale * NOTHING
    relative = off / own if own > least else 0.0 if off <= least else math.inf
    cosine = float(a @ b / math.sqrt((a @ a) * (b @ b))) if own > least and a.any() else 1.0
    note = "no gradient" if ours is None and own > least else "0 on both sides" if own <= least and off <= least else ""
    return Stage(
        name,
        "",
        len(b),
        max(own, least),
        float(np.abs(a - b).max()),
        relative,
        cosine,
        None,
        relative <= RULE.relative_l2,
        note,
    )
