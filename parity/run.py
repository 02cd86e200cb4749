"""One case from its files to a verdict: both models on the same inputs, every stage compared in order."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from zoo import ops
from zoo.config import Config
from zoo.loader import model_of
from zoo.models.llama3 import LlamaConfig
from zoo.models.table_transformer import TableTransformerConfig
from zoo.models.trocr import TrOCRForCausalLM
from zoo.models.vit.config import VisionConfig
from zoo.nn import leaves
from zoo.pretrained import placement
from zoo.processors import ImageProcessor
from zoo.processors.boxes import post_process_object_detection
from zoo.tasks.segment import winners
from zoo.tokenizers import Tokenizer
from zoo.weights import Stored

from . import continuing, pictures, reading
from .cases import Batch, Case, batches
from .compare import (
    Pair,
    Stage,
    Sums,
    Tolerance,
    compare,
    compare_ids,
    compare_masks,
    compare_objects,
    compare_pixels,
    measure,
    tolerance_for,
)
from .reference import Reference
from .taps import body_of, outputs, tapped

Stages = dict[str, np.ndarray]
LAST = {"mask": compare_masks, "objects": compare_objects}
THRESHOLDS = (0.5, 0.7, 0.9)  # of the scores of objects


class File(NamedTuple):
    name: str
    size: int  # bytes
    sha256: str


@dataclass(frozen=True)
class Result:
    """What came of a case.  error: why it could not be run, in which case nothing else is known."""

    case: Case
    architecture: str = ""
    revision: str | None = None
    backend: str = ""
    device: str = ""
    dtype: str = ""
    seed: int = 0
    tolerance: Tolerance | None = None
    files: tuple[File, ...] = ()
    stages: tuple[Stage, ...] = ()
    seconds: float = 0.0
    error: str | None = None

    @property
    def diverged(self) -> str | None:
        """The first stage that does not hold."""
        return next((stage.name for stage in self.stages if not stage.holds), None)

    @property
    def holds(self) -> bool:
        return self.error is None and self.diverged is None


def run(case: Case, *, device: str | None = None, dtype: str = "float32", seed: int = 0) -> Result:
    """Compare zoo with transformers on a case; ZooError where that cannot be done."""
    began = time.perf_counter()
    backend = placement(device)[0].__name__.rpartition("on_")[2]
    tolerance = tolerance_for(backend, dtype)
    with case.files(seed) as checkpoint:
        # NumPy computes in float32, whether it widens 16-bit weights at once or keeps them: as `zoo.load` has it.
        model = model_of(checkpoint, device=device, dtype=None if backend == "numpy" else dtype, strict=True)
        architecture = type(model).__name__
        tokenizer, written, continued = None, [], []
        if reading.is_reader(model.config):
            tokenizer = Tokenizer.from_folder(checkpoint.folder)
            alone = isinstance(model, TrOCRForCausalLM)
            processor = None if alone else ImageProcessor.from_folder(checkpoint.folder)
            inputs = reading.batches(model.config, processor, tokenizer, seed)
            written = reading.written(model, inputs, tokenizer)
        elif isinstance(model.config, VisionConfig):
            processor = ImageProcessor.from_folder(checkpoint.folder)
            inputs = pictures.batches(model.config, architecture, processor, seed)
        elif isinstance(model.config, TableTransformerConfig):
            inputs = pictures.padded_batches(ImageProcessor.from_folder(checkpoint.folder))
        elif isinstance(model.config, LlamaConfig):
            inputs = continuing.batches(model.config, seed)
            continued = continuing.written(model, inputs)
        else:
            limit = body_of(model).embeddings.most_tokens
            tokenizer = Tokenizer.from_folder(checkpoint.folder, model_max_length=limit)
            inputs = batches(model.config, architecture, tokenizer, limit, seed)
        ours = [zoo_stages(model, batch) for batch in inputs]
        del model  # one model in memory at a time
        reference = Reference(checkpoint.folder, architecture)
        stages = []
        if any(batch.pictures for batch in inputs):
            stages.append(compare_processors(reference, inputs))
        if any(batch.texts for batch in inputs):
            assert tokenizer is not None
            stages.append(compare_tokenizers(tokenizer, reference, inputs))
        theirs = (reference_stages(reference, batch) for batch in inputs)
        stages += compare_stages(inputs, (ours.pop(0) for _ in inputs), theirs, tolerance)
        stages += reading.compare_written(written, reference, inputs)
        stages += continuing.compare_written(continued, reference, inputs)
        files = tuple(_file(path) for path in checkpoint.weights)
    return Result(
        case,
        architecture,
        checkpoint.revision,
        backend,
        device or "cpu",
        dtype,
        seed,
        tolerance,
        files,
        tuple(stages),
        time.perf_counter() - began,
    )


def zoo_stages(model: Any, batch: Batch) -> Stages:
    """Every stage's output of a zoo model, in order; of a decoder also the logits in two steps with a cache.

    Of a segmentation also the label of every pixel, of all pictures one after the other.
    """
    body = body_of(model)
    _, like = next(leaves(model))
    arrays = _placed(batch.arrays, like)
    with tapped(model) as found:
        result = model(**arrays, **dict.fromkeys(batch.switches, True))
    found.update(outputs(model, result))
    if _has_masks(type(model).__name__, batch):
        sizes = [(picture.height, picture.width) for picture in batch.pictures]
        found["mask"] = np.concatenate([winners(result[i : i + 1], size).ravel() for i, size in enumerate(sizes)])
    if "pred_boxes" in found and batch.pictures:
        found["positions"] = np.broadcast_to(found["positions"], found["encoder_last_hidden_state"].shape)
        found["objects"] = _rows(batch, partial(_labels_and_boxes, config=model.config), found)
    if getattr(model.config, "is_decoder", False) and model is not body and "attention_mask" not in arrays:
        ids, cache = arrays.pop("input_ids"), body.new_cache(len(batch.texts))
        middle = ids.shape[1] // 2
        steps = [model(ids[:, :middle], cache=cache, **arrays), model(ids[:, middle:], cache=cache, **arrays)]
        found["cached logits"] = np.concatenate([ops.to_numpy(step) for step in steps], 1)
    if continuing.has_steps(type(model).__name__, batch):
        found["cached logits"] = continuing.cached_logits(model, arrays)
    if "decoder_input_ids" in arrays:
        found["cached logits"] = reading.cached_logits(model, arrays)
    return found


def reference_stages(reference: Reference, batch: Batch) -> Stages:
    """The same of the reference, whose logits of the whole text are what steps with a cache must give."""
    found = reference.stages(batch.arrays, batch.switches)
    if _has_masks(reference.architecture, batch):
        sizes = [(picture.height, picture.width) for picture in batch.pictures]
        found["mask"] = np.concatenate([mask.ravel() for mask in reference.masks(found["logits"], sizes)])
    if "pred_boxes" in found and batch.pictures:
        found["objects"] = _rows(batch, reference.objects, found)
    if continuing.has_steps(reference.architecture, batch):
        found["cached logits"] = found["logits"]
    steps = reference.config.get("is_decoder") and "attention_mask" not in batch.arrays and "logits" in found
    if (steps and reference.architecture != "TrOCRForCausalLM") or "decoder_input_ids" in batch.arrays:
        found["cached logits"] = found["logits"]
    return found


def compare_tokenizers(tokenizer: Tokenizer, reference: Reference, inputs: list[Batch]) -> Stage:
    """The first stage of a text: the ids."""
    rows = []
    for batch in inputs:
        assert batch.mask is not None
        limit = batch.mask.shape[1]
        ours = tokenizer.encode_batch(batch.texts, batch.pairs, max_length=limit)
        rows.append((batch.name, [list(row.ids) for row in ours.rows], reference.ids(batch.texts, batch.pairs, limit)))
    return compare_ids(rows)


def compare_processors(reference: Reference, inputs: list[Batch]) -> Stage:
    """The first stage of a picture: the pixel values that the models are given, and the mask if they have one."""
    pairs = []
    for batch in (batch for batch in inputs if batch.pictures):
        theirs = reference.pixels(batch.pictures)
        names = [name for name in ("pixel_values", "pixel_mask") if name in batch.arrays]
        pairs += [Pair(batch.name, batch.arrays[name], theirs[name]) for name in names]
    return compare_pixels(pairs)


def compare_stages(
    inputs: Iterable[Batch], ours: Iterable[Stages], theirs: Iterable[Stages], tolerance: Tolerance
) -> list[Stage]:
    """All further stages, in the order of the reference.  Takes one batch at a time, and keeps only sums of it."""
    measured: dict[str, list[Sums]] = {}
    last: dict[str, list[Pair]] = {}
    for batch, a, b in zip(inputs, ours, theirs, strict=True):
        for name in {**b, **a}:
            pair = Pair(batch.name, a.get(name), b.get(name), batch.mask)
            if name in LAST:
                last.setdefault(name, []).append(pair)
            else:
                measured.setdefault(name, []).append(measure(name, pair))
    stages = [compare(name, sums, tolerance) for name, sums in measured.items()]
    return stages + [LAST[name](pairs) for name, pairs in last.items()]


def _has_masks(architecture: str, batch: Batch) -> bool:
    return architecture.endswith("ForSemanticSegmentation") and bool(batch.pictures)


def _rows(batch: Batch, objects: Callable[..., list[tuple[np.ndarray, np.ndarray]]], found: Stages) -> np.ndarray:
    """The objects of a detection: (n, 7) of picture, threshold, label, and a box in parts of the picture."""
    sizes = [(picture.height, picture.width) for picture in batch.pictures]
    rows = [np.zeros((0, 7))]
    for threshold in THRESHOLDS:
        for i, (labels, boxes) in enumerate(objects(found["logits"], found["pred_boxes"], sizes, threshold)):
            height, width = sizes[i]
            where = np.broadcast_to([i, threshold], (len(labels), 2))
            boxes = boxes.reshape(-1, 4) / [width, height, width, height]
            rows.append(np.concatenate([where, labels.reshape(-1, 1), boxes], 1))
    return np.concatenate(rows)


def _labels_and_boxes(
    logits: np.ndarray, boxes: np.ndarray, sizes: list[tuple[int, int]], threshold: float, config: Config
) -> list[tuple[np.ndarray, np.ndarray]]:
    found = post_process_object_detection(logits, boxes, sizes, config.id2label, threshold=threshold)
    return [(np.array([config.label2id[o.label] for o in one]), np.array([o.box for o in one])) for one in found]


def _placed(arrays: Mapping[str, np.ndarray], like: Any) -> dict[str, Any]:
    """Copies of the arrays; floating ones, which a model takes as they are, beside the model's own."""
    backend = ops.backend(like)
    device = str(getattr(like, "device", "cpu"))
    return {
        name: backend.place(Stored(array, "F32"), name, None, device) if array.dtype.kind == "f" else array.copy()
        for name, array in arrays.items()
    }


def _file(path: Path) -> File:
    with open(path, "rb") as f:
        digest = hashlib.sha256()
        while block := f.read(1 << 20):
            digest.update(block)
    return File(path.name, path.stat().st_size, digest.hexdigest())
