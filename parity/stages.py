"""Every stage of a model on one batch, of zoo and of the reference, and their comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from zoo import ops
from zoo.engines.onnx.runner import OnnxRunner
from zoo.images.segments import post_process_panoptic_segmentation
from zoo.images.universal import resize_masks
from zoo.nn import an_array
from zoo.tasks.segment import winners
from zoo.text.tokenizer import Tokenizer
from zoo.weights import RawTensor

from .choices import compare_ids, compare_masks, compare_objects, compare_pixels
from .compare import BY_FLOAT64, Pair, Peaks, Rule, Stage, Sums, compare, has_tokens, measure, skipped_stage
from .graphs import graph_stages
from .modules import PREFIX, comparable, modules_beside_layers, tapped_modules
from .reference import Reference
from .specs import spec_class
from .taps import outputs, tapping
from .texts import Batch
from .writing import cached_logits

Stages = dict[str, np.ndarray]
LAST_STAGES = {"mask": compare_masks, "objects": compare_objects}
THRESHOLDS = (0.5, 0.7, 0.9)  # the scores from which objects count


def zoo_stages(model: Any, batch: Batch) -> Stages:
    """Every stage's output of a zoo model, in order; for a decoder also the logits in steps with a cache.

    For a segmentation also the label of every pixel, of all images one after the other.
    """
    arrays = place(batch.arrays, an_array(model))
    by_graph, switches = isinstance(model.runner, OnnxRunner), dict.fromkeys(batch.switches, True)
    if by_graph:
        found = graph_stages(model, arrays, switches)
        result: Any = found.get("logits")
    else:
        modules = list(modules_beside_layers(model))
        with tapping(model) as found, tapped_modules(modules, found):
            result = model(**arrays, **switches)
        found.update(outputs(model, result))
    for name in spec_class(model.config.model_type).not_compared:
        found.pop(name, None)
    if _has_masks(type(model).__name__, batch):
        sizes = [(image.height, image.width) for image in batch.images]
        found["mask"] = np.concatenate([winners(result[i : i + 1], size).ravel() for i, size in enumerate(sizes)])
    if _has_objects(type(model).__name__, found, batch):
        sizes, names = [(image.height, image.width) for image in batch.images], model.config.id2label
        logits, masks = (found[name] for name in _query_names(found))
        masks = resize_masks(masks) if "masks_queries_logits" in found else masks
        objects = post_process_panoptic_segmentation(logits, masks, sizes, names)
        found["mask"] = np.concatenate([mask.ravel() for mask, _ in objects])
    if "positions" in found:
        found["positions"] = np.broadcast_to(found["positions"], found["encoder_last_hidden_state"].shape)
    if "pred_boxes" in found and batch.images:
        found["objects"] = _rows(batch, partial(spec_class(model.config.model_type).objects, model.config), found)
    if batch.steps:
        found["cached logits"] = cached_logits(model, arrays, by_graph)
    return found


def reference_stages(reference: Reference, batch: Batch, like: Iterable[str] = ()) -> Stages:
    """The same of the reference, whose logits of the whole text are what steps with a cache must give.

    like: zoo's stages, among them the modules that are compared.
    """
    modules = [name.removeprefix(PREFIX) for name in like if name.startswith(PREFIX)]
    found = reference.stages(batch.arrays, batch.switches, modules)
    if _has_masks(reference.architecture, batch):
        sizes = [(image.height, image.width) for image in batch.images]
        found["mask"] = np.concatenate([mask.ravel() for mask in reference.masks(found["logits"], sizes)])
    if _has_objects(reference.architecture, found, batch):
        sizes = [(image.height, image.width) for image in batch.images]
        logits, masks = (found[name] for name in _query_names(found))
        masks = reference.segments(logits, masks, sizes)
        found["mask"] = np.concatenate([mask.ravel() for mask in masks])
    if "positions" in found:  # which the model puts in a row
        found["positions"] = found["positions"].reshape(len(found["positions"]), -1, found["positions"].shape[-1])
    if "pred_boxes" in found and batch.images:
        found["objects"] = _rows(batch, reference.objects, found)
    if batch.steps:
        found["cached logits"] = found["logits"]
    return found


def compare_inputs(reference: Reference, inputs: list[Batch], tokenizer: Tokenizer | None) -> list[Stage]:
    """The stages before the model: tokens and pixels, or why there are none to compare."""
    stages = []
    if any(batch.images for batch in inputs) and not reference.has_processor:
        own = "zoo's own pixels: transformers' processor needs torchvision, and rounds otherwise"
        stages.append(skipped_stage("processor", own))
    elif any(batch.images for batch in inputs):
        stages.append(compare_processors(reference, inputs))
    elif any("pixel_values" in batch.arrays for batch in inputs):
        stages.append(skipped_stage("processor", "no preprocessor_config.json: what is compared is random pixels"))
    if tokenizer is not None and any(batch.texts for batch in inputs):
        stages.append(compare_tokenizers(tokenizer, reference, inputs))
    elif any("input_ids" in batch.arrays for batch in inputs):
        stages.append(skipped_stage("tokenizer", "no tokenizer, or none that knows a text: random tokens"))
    return stages


def compare_tokenizers(tokenizer: Tokenizer, reference: Reference, inputs: list[Batch]) -> Stage:
    """The first stage of a text: the ids."""
    rows = []
    for batch in (batch for batch in inputs if batch.texts):
        assert batch.mask is not None
        limit = batch.mask.shape[1]
        ours = tokenizer.encode_batch(batch.texts, batch.pairs, max_length=limit)
        rows.append((batch.name, [list(row.ids) for row in ours.rows], reference.ids(batch.texts, batch.pairs, limit)))
    return compare_ids(rows)


def compare_processors(reference: Reference, inputs: list[Batch]) -> Stage:
    """The first stage of an image: the pixel values that the models are given, and the mask if they have one."""
    pairs = []
    for batch in (batch for batch in inputs if batch.images):
        theirs = reference.pixels(batch.images)
        names = [name for name in ("pixel_values", "pixel_mask") if name in batch.arrays]
        pairs += [Pair(batch.name, batch.arrays[name], theirs[name]) for name in names]
    return compare_pixels(pairs)


def compare_stages(
    inputs: Iterable[Batch],
    ours: Iterable[Stages],
    theirs: Iterable[Stages],
    rule: Rule,
    own: Iterable[Stages] | None = None,
) -> list[Stage]:
    """All further stages, in the order of the reference.  Takes one batch at a time, and keeps only sums of it.

    own: in low precision the stages of the reference in that precision, where `theirs` are those in float32.
    """
    found = _Found(), _Found()
    for batch, a, b, c in zip(inputs, ours, theirs, repeat(None) if own is None else own, strict=False):
        found[0].add(batch, a, b)
        if c is not None:
            found[1].add(batch, c, b)
    mine, its = found
    stages = [compare(name, sums, rule, its.sums.get(name, ())) for name, sums in mine.sums.items()]
    return stages + [LAST_STAGES[name](pairs, rule, its.pairs.get(name, ())) for name, pairs in mine.pairs.items()]


def needs_float64(stage: Stage) -> bool:
    """True for a stage of numbers, or of objects, that are farther apart than the fixed limits of float32 allow."""
    if stage.name in LAST_STAGES:
        return not stage.holds and stage.name == "objects" and stage.top1 is not None
    return not stage.holds and not math.isnan(stage.relative_l2) and stage.max_abs > 0


def judge_by_float64(
    stages: Sequence[Stage],
    inputs: Sequence[Batch],
    ours: Iterable[Stages],
    exact: Iterable[Stages],
    theirs: Iterable[Stages],
    every: bool = False,
) -> list[Stage]:
    """The stages, those that float32's fixed limits call different judged by the errors to float64.

    exact, theirs: the reference's stages in float64, and in float32.  every: note the two errors of all stages.
    """
    found = {stage.name: stage for stage in compare_stages(inputs, ours, exact, BY_FLOAT64, theirs)}
    return [_with_errors(stage, found.get(stage.name), every) for stage in stages]


def _with_errors(stage: Stage, by_float64: Stage | None, every: bool) -> Stage:
    if by_float64 is None or stage.name in LAST_STAGES:
        return by_float64 if by_float64 and needs_float64(stage) else stage
    if by_float64.reference_error is None:
        return stage
    largest, own_largest = (x / by_float64.scale for x in (by_float64.max_abs, by_float64.reference_largest or 0))
    note = (
        f"to float64 {by_float64.relative_l2:.1e}, transformers {by_float64.reference_error:.1e}; "
        f"of one value {largest:.1e}, {own_largest:.1e}"
    )
    if needs_float64(stage):
        return replace(by_float64, note=note)
    return replace(stage, note="; ".join(filter(None, [stage.note, note]))) if every else stage


class _Found:
    """One side's stages compared with the reference's: sums of numbers, and choices as they are."""

    def __init__(self) -> None:
        self.sums: dict[str, list[Sums]] = {}
        self.pairs: dict[str, list[Pair]] = {}

    def add(self, batch: Batch, stages: Stages, wanted: Stages) -> None:
        peaks: Peaks = {}
        stages, wanted = comparable(stages, wanted)
        for name in {**_comparable(wanted, stages), **stages}:
            pair = Pair(batch.name, stages.get(name), wanted.get(name), batch.mask)
            if not batch.pooled and not any(has_tokens(name, x, batch.mask) for x in (pair.ours, pair.reference)):
                continue
            if name in LAST_STAGES:
                self.pairs.setdefault(name, []).append(pair)
            else:
                self.sums.setdefault(name, []).append(measure(name, pair, peaks))


def _comparable(wanted: Stages, stages: Stages) -> Stages:
    """The reference's stages without those that zoo need not compute: layers after the last that an output is made of
    (of a backbone, say), and the input of the first layer in a model whose first stages are others.
    """
    numbered = [name.rpartition(".") for name in stages if name.rpartition(".")[2].isdigit()]
    last: dict[str, int] = {}
    for prefix, _, number in numbered:
        last[prefix] = max(last.get(prefix, 0), int(number))

    def is_needed(name: str) -> bool:
        prefix, _, number = name.rpartition(".")
        if prefix.endswith("layer") and prefix in last:
            return int(number) <= last[prefix]
        return name in stages or "features" not in stages or not name.endswith("embeddings")

    return {name: array for name, array in wanted.items() if is_needed(name)}


def _has_masks(architecture: str, batch: Batch) -> bool:
    return architecture.endswith("ForSemanticSegmentation") and bool(batch.images)


def _has_objects(architecture: str, found: Stages, batch: Batch) -> bool:
    """True for masks that transformers' processor makes objects of without torchvision."""
    has_both = set(_query_names(found)) <= found.keys()
    return has_both and bool(batch.images) and not architecture.endswith("ForInstanceSegmentation")


def _query_names(found: Stages) -> tuple[str, str]:
    """The outputs that have queries' labels and masks."""
    return (
        ("class_queries_logits", "masks_queries_logits")
        if "class_queries_logits" in found
        else ("logits", "pred_masks")
    )


def _rows(batch: Batch, objects: Callable[..., list[tuple[np.ndarray, np.ndarray]]], found: Stages) -> np.ndarray:
    """The objects of a detection: (n, 7) of image, threshold, label, and a box in parts of the image."""
    sizes = [(image.height, image.width) for image in batch.images]
    rows = [np.zeros((0, 7))]
    for threshold in THRESHOLDS:
        for i, (labels, boxes) in enumerate(objects(found["logits"], found["pred_boxes"], sizes, threshold)):
            height, width = sizes[i]
            where = np.broadcast_to([i, threshold], (len(labels), 2))
            boxes = boxes.reshape(-1, 4) / [width, height, width, height]
            rows.append(np.concatenate([where, labels.reshape(-1, 1), boxes], 1))
    return np.concatenate(rows)


def place(arrays: Mapping[str, np.ndarray], like: Any) -> dict[str, Any]:
    """Copies of the arrays; floating ones, which a model takes as they are, beside the model's own."""
    backend = ops.backend(like)
    device = str(getattr(like, "device", "cpu"))
    return {
        name: backend.to_parameter(RawTensor(array, "F32"), name, None, device)
        if array.dtype.kind == "f"
        else array.copy()
        for name, array in arrays.items()
    }
