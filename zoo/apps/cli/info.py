"""`zoo info`: the contents of a checkpoint.  Its weights are mapped and matched by name, but not computed with."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ZooError
from .terminal import Terminal, json_text, terminal_of

if TYPE_CHECKING:
    from ...checkpoint.files import Checkpoint
    from ...weights import Source

SHOWN = 4  # names in a terminal; JSON has all
TEXT_SIZES = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden",
    "num_attention_heads": "heads",
    "intermediate_size": "feed-forward",
    "vocab_size": "vocabulary",
    "max_position_embeddings": "positions",
}
IMAGE_SIZES = {
    **{field: name for field, name in TEXT_SIZES.items() if field not in ("vocab_size", "max_position_embeddings")},
    "image_size": "image",
    "patch_size": "patch",
    "encoder_layers": "encoder layers",
    "decoder_layers": "decoder layers",
    "d_model": "hidden",
    "num_queries": "queries",
}


def info(args: argparse.Namespace) -> None:
    found = describe(args.name, revision=args.revision, local_files_only=args.local_files_only, lock=args.lock)
    terminal = terminal_of(args)
    if terminal.json:
        terminal.line(json_text(found, indent=2))
    else:
        _show(terminal, found)


def describe(
    name: str, *, revision: str | None = None, local_files_only: bool = False, lock: str | None = None
) -> dict[str, Any]:
    """The contents of a checkpoint, as the command writes them in JSON."""
    from ...loading import model_of
    from ...lock import find
    from ...nn import count_parameters
    from ...registry import family_of

    checkpoint = find(name, revision=revision, local_files_only=local_files_only, lock=lock)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # unused tensors are listed below
        model = model_of(checkpoint)
    config, report = model.config, model.report
    images, task = family_of(config.model_type).reads_images, _task(checkpoint)
    sizes = IMAGE_SIZES if images else TEXT_SIZES
    parts = [getattr(config, part, config) for part in ("encoder", "decoder")]  # TrOCR has a config for each
    labelled = task in ("classify", "segment", "detect") if images else hasattr(model, "classifier")
    return {
        "name": checkpoint.name,
        "revision": checkpoint.revision,
        **({"fingerprint": checkpoint.fingerprint} if lock is not None else {}),
        "folder": str(checkpoint.folder),
        "architecture": model.architecture,
        "model_type": config.model_type,
        "task": task,
        "parameters": count_parameters(model),
        **{field: getattr(part, field) for part in parts for field in sizes if hasattr(part, field)},
        "labels": list(config.id2label.values()) if labelled else None,
        **({"processor": _processor(checkpoint)} if images else {"tokenizer": _tokenizer(checkpoint)}),
        "stored": _stored(checkpoint.open_weights()),
        "renamed": report.renamed,
        "tied": report.tied,
        "ignored": list(report.ignored),
        "unused": list(report.unused),
        "files": {file: (checkpoint.folder / file).stat().st_size for file in checkpoint.files},
    }


def _task(checkpoint: Checkpoint) -> str | None:
    from ...tasks import default_task

    try:
        return default_task(checkpoint)
    except ZooError:  # there is a model for it, but no task
        return None


def _tokenizer(checkpoint: Checkpoint) -> dict[str, Any]:
    """The tokenizer's kind and sizes, or the error if it cannot be read."""
    from ...text.tokenizer import Tokenizer

    try:
        tokenizer = Tokenizer.from_folder(checkpoint.contents)
    except ZooError as e:
        return {"error": str(e)}
    return {
        "kind": type(tokenizer.backend.model).__name__,
        "vocabulary": tokenizer.vocab_size,
        "longest": tokenizer.model_max_length,
        "files": sorted(tokenizer.files),
    }


def _processor(checkpoint: Checkpoint) -> dict[str, Any]:
    """The image processor's kind and sizes, or the error if it cannot be read."""
    from ...images import ImageProcessor

    try:
        processor = ImageProcessor.from_folder(checkpoint.contents)
    except ZooError as e:
        return {"error": str(e)}
    return {"kind": f"{processor.family}ImageProcessor", "size": processor.size, "crop": processor.crop}


def _stored(source: Source) -> dict[str, dict[str, int]]:
    """Element type -> the number of tensors, of elements and of bytes in the files."""
    from ...quant import QUANT_TYPES
    from ...weights.mapped import element_bits

    out: dict[str, dict[str, int]] = {}
    for name in source.names():
        dtype, shape = source.dtype(name), source.shape(name)
        elements = math.prod(shape)
        kind = QUANT_TYPES.get(dtype)
        of = out.setdefault(dtype, {"tensors": 0, "elements": 0, "bytes": 0})
        of["tensors"] += 1
        of["elements"] += elements
        if kind is not None and not kind.plain and len(shape) == 2:
            of["bytes"] += kind.nbytes(*shape)
        else:
            of["bytes"] += elements * element_bits(dtype) // 8
    return out


def _show(terminal: Terminal, found: Mapping[str, Any]) -> None:
    if "processor" in found:
        sizes, prepared = IMAGE_SIZES, ("processor", _image_text(found["processor"]))
    else:
        tokenizer, sizes = found["tokenizer"], TEXT_SIZES
        prepared = ("tokenizer", tokenizer.get("error") or f"{tokenizer['kind']}, {tokenizer['vocabulary']:,} tokens")
    terminal.title(found["name"])
    rows = [
        ("architecture", f"{found['architecture']} ({found['model_type']})"),
        ("task", found["task"] or "none: zoo.load_model loads the model"),
        ("parameters", f"{found['parameters']:,} ({found['parameters'] / 1e6:.1f} M)"),
        ("sizes", ", ".join(_size(name, found[field]) for field, name in sizes.items() if field in found)),
        prepared,
        (
            "stored as",
            ", ".join(f"{s['tensors']} x {dtype} ({size_text(s['bytes'])})" for dtype, s in found["stored"].items()),
        ),
        ("folder", found["folder"]),
    ]
    if found["labels"] is not None:
        rows.insert(4, ("labels", _some(found["labels"])))
    if found["revision"]:
        rows.insert(1, ("commit", found["revision"]))
    if "fingerprint" in found:
        rows.insert(1, ("fingerprint", found["fingerprint"]))
    for kind in ("renamed", "tied"):
        rows.append((kind, _some([f"{a} = {b}" for a, b in found[kind].items()])))
    for kind in ("ignored", "unused"):
        rows.append((kind, _some(found[kind])))
    terminal.fields(rows)
    terminal.title("files")
    terminal.table([(size_text(size), file) for file, size in found["files"].items()], right=(0,))


def _size(name: str, value: Any) -> str:
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {' x '.join(map(str, value))}"


def _image_text(processor: Mapping[str, Any]) -> str:
    if "error" in processor:
        return processor["error"]
    size, crop = processor["size"], processor["crop"]
    resized = "any size" if size is None else ", ".join(f"{name} {value}" for name, value in size.items())
    return f"{processor['kind']}, {resized}" + (f", cropped to {crop[0]} x {crop[1]}" if crop else "")


def _some(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (f"{len(names)}: " if more else "") + ", ".join(names[:SHOWN]) + more


def size_text(size: float) -> str:
    """A number of bytes with a unit."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
