"""`zoo info`: the contents of a checkpoint and the memory that it takes.

Weights here are mapped and matched by name, but not computed with; of those on the hub only headers are read.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...cache import layer_capacities
from ...errors import ResourceError, ZooError
from ...hub import find_headers
from ...tasks.progress import Progress
from ...weights import QUANT_CHOICES, memory
from ...weights.memory import TensorHeader, size_text
from ...weights.slices import Split
from .terminal import Terminal, json_text, terminal_of

if TYPE_CHECKING:
    from ...checkpoint.files import Checkpoint
    from ...task_kinds import TaskKind

DEFAULT_TOKENS = 4096  # tokens in the cache by default, if the checkpoint takes as many
PAGE = 1684, 1191  # pixels of an A4 page at 144 dpi, height and width, as zoo read draws it
SHOWN_NAMES = 4  # names in a terminal; JSON has all
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
    names = ("revision", "local_files_only", "lock", "batch", "length", "tp")
    with Progress(None, unit="", what=f"reading {args.name}"):
        found = describe(args.name, **{name: getattr(args, name) for name in names})
    terminal = terminal_of(args)
    if terminal.json:
        terminal.line(json_text(found, indent=2))
    else:
        _show(terminal, found)


def describe(
    name: str,
    *,
    revision: str | None = None,
    local_files_only: bool = False,
    lock: str | None = None,
    batch: int = 1,
    length: int | None = None,
    tp: int | None = None,
) -> dict[str, Any]:
    """The contents of a checkpoint, as the command writes them in JSON.

    Of weights on the hub that are not in the cache only the headers are read.  batch, length: the rows of a batch and
    their tokens.  tp: the number of processes that share a model; the memory is that of one.
    """
    from ...registry import family_of

    checkpoint, tensors = find_headers(name, revision=revision, local_files_only=local_files_only, lock=lock)
    config = checkpoint.config
    images, kind = family_of(config.model_type).reads_images, _task(checkpoint)
    sizes = IMAGE_SIZES if images else TEXT_SIZES
    parts = [getattr(config, part, config) for part in ("encoder", "decoder")]  # TrOCR has a config for each
    read: dict[str, Any] = {}
    if tensors is None:
        tensors = list(memory.headers(checkpoint.open_weights()))
        read = _read(checkpoint) if tp is None else {}
    architecture = next(iter(config.architectures), None)
    return {
        "name": checkpoint.name,
        "revision": checkpoint.revision,
        **({"fingerprint": checkpoint.fingerprint} if lock is not None else {}),
        "folder": str(checkpoint.folder),
        "architecture": architecture,
        "model_type": config.model_type,
        "task": kind and kind.name,
        "parameters": sum(tensor.elements for tensor in tensors),
        **{field: getattr(part, field) for part in parts for field in sizes if hasattr(part, field)},
        "labels": _labels(checkpoint),
        **({"processor": _processor(checkpoint)} if images else {"tokenizer": _tokenizer(checkpoint)}),
        "stored": _count_types(tensors),
        "memory": _memory(checkpoint.config, tensors, batch, length, tp) | _page_plan(checkpoint),
        **read,
        "files": {file: (checkpoint.folder / file).stat().st_size for file in checkpoint.files},
    }


def _read(checkpoint: Checkpoint) -> dict[str, Any]:
    """The report on tensors of a load; nothing if the model does not fit into the memory."""
    from ...loading import model_of
    from ...nn import count_parameters

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # unused tensors are listed
            model = model_of(checkpoint)
    except ResourceError:
        return {}
    report = model.report
    labels = {"labels": list(model.config.id2label.values())} if hasattr(model, "classifier") else {}
    return {
        "architecture": model.architecture,
        "parameters": count_parameters(model),
        **labels,
        "renamed": report.renamed,
        "tied": report.tied,
        "ignored": list(report.ignored),
        "unused": list(report.unused),
    }


def _task(checkpoint: Checkpoint) -> TaskKind | None:
    from ...checkpoint.task import task_of

    try:
        return task_of(checkpoint).kind
    except ZooError:  # there is a model for it, but no task
        return None


def _labels(checkpoint: Checkpoint) -> list[str] | None:
    """The names of what its task finds, which its config has, or its task's class."""
    from ...checkpoint.task import task_of
    from ...tasks import task_class

    if (kind := _task(checkpoint)) is None or not kind.labelled:
        return None
    own = getattr(task_class(kind, task_of(checkpoint).head), "own_labels", ())
    return list(own or checkpoint.config.id2label.values())


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
    from ...images.text_lines import CLASS, LineProcessor

    try:
        if is_reader_of_lines(checkpoint):
            lines = LineProcessor.from_folder(checkpoint.contents)
            return {"kind": CLASS, "size": {"height": lines.height, "width": lines.min_width}, "crop": None}
        processor = ImageProcessor.from_folder(checkpoint.contents)
    except ZooError as e:
        return {"error": str(e)}
    return {"kind": f"{processor.family}ImageProcessor", "size": processor.size, "crop": processor.crop}


def is_reader_of_lines(checkpoint: Checkpoint) -> bool:
    """True for a checkpoint whose own task is to read pages, such as PP-OCR's."""
    from ...registry import family_of

    family = family_of(checkpoint.config.model_type)
    return family.task_of(str(family.head_of(checkpoint.config.architectures))) == "ocr"


def _count_types(tensors: Sequence[TensorHeader]) -> dict[str, dict[str, int]]:
    """Element type -> the number of tensors, of elements and of bytes in the files."""
    out: dict[str, dict[str, int]] = {}
    for tensor in tensors:
        of = out.setdefault(tensor.dtype, {"tensors": 0, "elements": 0, "bytes": 0})
        of["tensors"] += 1
        of["elements"] += tensor.elements
        of["bytes"] += tensor.nbytes
    return out


def _page_plan(checkpoint: Checkpoint) -> dict[str, int]:
    """The tiles and the tokens of a page of PAGE's size; nothing of another kind, or without a processor."""
    from ...images import ImageProcessor

    model = _model_of_images_and_texts(checkpoint.config)
    if model is None:
        return {}
    try:
        processor = ImageProcessor.from_folder(checkpoint.contents, checkpoint.config.model_type)
    except ZooError:
        return {}
    vision, cut = model.config.vision_config, processor.tiling or processor.crops
    rows, columns = (0, 0) if cut is None else cut.grid(*PAGE)
    tiles = rows * columns + 1
    grid = getattr(vision, "grid", None)
    if grid is None:  # images of any size
        height, width = processor.output_size(*PAGE)
        grid = height // vision.patch[0], width // vision.patch[1]
    return {"page_tiles": tiles, "page_tokens": tiles * model.image_length(grid)}


def _model_of_images_and_texts(config: Any) -> Any:
    """The model without its weights, for what needs only the config; None if the config is another kind's."""
    from ...inputs.image_text import ImageTextCausalLM
    from ...registry import model_class

    cls: Any = model_class(config) if config.architectures else None
    if cls is None or not issubclass(cls, ImageTextCausalLM):
        return None
    model = object.__new__(cls)
    model.config = config
    return model


def _memory(
    config: Any, tensors: Sequence[TensorHeader], batch: int, length: int | None, tp: int | None = None
) -> dict[str, Any]:
    """The bytes of the weights in each precision, of the cache, and of a batch of that many rows of `length` tokens.

    tp: the bytes of the largest of that many parts.
    """
    from ...registry import model_class

    ranks = {}
    if tp is not None:
        split = Split(config, tp)
        parts = [[split.header(tensor, rank) for tensor in tensors] for rank in range(tp)]
        of = [sum(tensor.nbytes for tensor in part) for part in parts]
        rank = of.index(max(of))
        config, tensors, ranks = split.config_of(rank), parts[rank], {"ranks": tp}
    words = getattr(config, "vocab_size", None)
    weights = memory.table(tensors, words)
    if ranks:  # which are not quantised
        weights = {name: size for name, size in weights.items() if name not in QUANT_CHOICES}
    out: dict[str, Any] = {**ranks, "weights": weights, "machine": memory.machine_memory()}
    cls: Any = model_class(config) if config.architectures else None
    if (reader := _model_of_images_and_texts(config)) is not None:  # what is computed at once is its decoder's
        if (grid := getattr(config.vision_config, "grid", None)) is not None:  # None: images of any size
            out["image_tokens"] = reader.image_length(grid)
        config, cls = config.text_config, cls.decoder_class
    most, width = (getattr(config, name, None) for name in ("max_position_embeddings", "hidden_size"))
    if not isinstance(most, int) or not isinstance(width, int):  # a model of images, or of two parts
        return out
    model: Any = None
    if cls is not None:  # without weights: what is asked for needs only the config
        model = object.__new__(cls)
        model.config = config
    tokens = min(most, DEFAULT_TOKENS) if length is None else length
    # What `checks` of tracemalloc find on NumPy, where attention and feed-forward layers are computed in parts.
    extra = 4 * width * tokens * (3 * batch + 4)
    if getattr(model, "is_causal", False):
        of_layers = [heads * (sizes[0] + sizes[-1]) * 4 for heads, *sizes in model.cache_shapes]
        held = layer_capacities(len(of_layers), tokens, model.windows)
        held = [n + (model.states[i].size if i in model.states else 0) for i, n in enumerate(held)]
        out["cache_per_token"] = sum(of_layers)
        out["cache"] = batch * sum(n * size for n, size in zip(held, of_layers, strict=True))
        extra += out["cache"]
    out |= {"batch": batch, "length": tokens, "peak": {name: n + extra for name, n in out["weights"].items()}}
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
        rows.insert(4, ("labels", _first_names(found["labels"])))
    if found["revision"]:
        rows.insert(1, ("commit", found["revision"]))
    if "fingerprint" in found:
        rows.insert(1, ("fingerprint", found["fingerprint"]))
    for kind in ("renamed", "tied"):
        if kind in found:
            rows.append((kind, _first_names([f"{a} = {b}" for a, b in found[kind].items()])))
    for kind in ("ignored", "unused"):
        if kind in found:
            rows.append((kind, _first_names(found[kind])))
    terminal.fields(rows)
    _show_memory(terminal, found["memory"])
    terminal.title("files")
    terminal.table([(size_text(size), file) for file, size in found["files"].items()], right=(0,))


def _show_memory(terminal: Terminal, of: Mapping[str, Any]) -> None:
    machine, peak = of["machine"], of.get("peak")
    there = "" if machine is None else f" (this machine: {size_text(machine)})"
    terminal.title(f"memory of each of {of['ranks']} processes{there}" if "ranks" in of else f"memory{there}")
    heads = ["", "weights"]
    if peak:
        heads.append(f"with {of['batch']} x {of['length']} tokens")
    rows: list[Sequence[str]] = [(*heads, "")]
    for name, size in of["weights"].items():
        whole = peak[name] if peak else size
        fits = "" if machine is None else "fits" if whole <= machine else "does not fit"
        rows.append((name, size_text(size), *([size_text(whole)] if peak else []), fits))
    terminal.table(rows, right=range(1, len(heads)))
    if "cache_per_token" in of:
        rows_of = f"cache of {of['batch']} x {of['length']} tokens"
        sizes = ("cache of a token", of["cache_per_token"]), (rows_of, of["cache"])
        images = [("tokens of an image, or of a tile", f"{of['image_tokens']:,}")] if "image_tokens" in of else []
        if "page_tokens" in of:
            tokens, tiles = of["page_tokens"], of["page_tiles"]
            parts = f"{tiles} tiles, {tokens:,} tokens" if tiles > 1 else f"{tokens:,} tokens"
            page = f"{parts}, {size_text(tokens * of['cache_per_token'])} of cache"
            images.append((f"a page of {PAGE[1]} x {PAGE[0]} pixels", page))
        terminal.fields([*((name, size_text(size)) for name, size in sizes), *images])


def _size(name: str, value: Any) -> str:
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {' x '.join(map(str, value))}"


def _image_text(processor: Mapping[str, Any]) -> str:
    if "error" in processor:
        return processor["error"]
    size, crop = processor["size"], processor["crop"]
    resized = "any size" if size is None else ", ".join(f"{name} {value}" for name, value in size.items())
    return f"{processor['kind']}, {resized}" + (f", cropped to {crop[0]} x {crop[1]}" if crop else "")


def _first_names(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f", and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return (f"{len(names)}: " if more else "") + ", ".join(names[:SHOWN_NAMES]) + more
