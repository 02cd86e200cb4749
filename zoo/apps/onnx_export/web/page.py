"""Writes the page that runs an exported graph in the browser.

Files: index.html, and in web/ zoo.js, page.json (model, tokenizer and processor), tokenizer.json and the libraries.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....checkpoint.sentence_encoder import normalize
from ....errors import UnsupportedError
from ....files.atomic_write import atomic_write, copy_file
from ....images import ImageProcessor
from ....tasks.base import Task, TextTask
from ....tasks.classify import Classify, function_for
from ....tasks.detect import Detect
from ....tasks.embed import Embed
from ....tasks.fill_mask import FillMask
from ....tasks.image_classify import ImageClassify
from ....tasks.image_task import ImageTask
from ....text.tokenizer import Tokenizer
from .libraries import RELEASES, write_libraries

PAGE, MODULE, FOLDER, ABOUT, TOKENIZER = "index.html", "zoo.js", "web", "page.json", "tokenizer.json"
MAX_BYTES = 2 << 30  # a model's: WebAssembly addresses 4 GB, and loading needs two copies of the weights
NEAREST_FILTER = 0  # Pillow's number of the only filter that zoo.js lacks


def write_page(
    task: Task,
    folder: str | os.PathLike[str],
    graph: str = "model.onnx",
    libraries: str | os.PathLike[str] | None = None,
) -> Path:
    """Write the page beside a task's graph -> the path of index.html.

    graph: a file of `folder`, its weights in it or in GRAPH.data.  libraries: see `write_libraries`.
    UnsupportedError: the page does not have the task, or the model is too large for a browser.
    """
    folder = Path(folder)
    about = describe(task)
    files = [graph, *([f"{graph}.data"] if (folder / f"{graph}.data").is_file() else [])]
    if (size := sum((folder / name).stat().st_size for name in files)) > MAX_BYTES:
        raise UnsupportedError(f"{folder / graph}: {size / 1e9:.1f} GB with its weights, a browser can load about 2 GB")
    inside = folder / FOLDER
    inside.mkdir(exist_ok=True)
    about["model"] = {"file": f"../{files[0]}", "data": [f"../{name}" for name in files[1:]]}
    if isinstance(task, TextTask):
        # The backend's JSON, which includes the settings of tokenizer_config.json.
        _write(inside / TOKENIZER, task.tokenizer.backend.to_str())
    _write(inside / ABOUT, json.dumps(about, ensure_ascii=False))
    _write(inside / "LICENSES.txt", "".join(f"{r.package} {r.version}: {r.licence}, {r.url}\n" for r in RELEASES))
    write_libraries(inside, libraries)
    copy_file(Path(__file__).parent / MODULE, inside / MODULE)
    copy_file(Path(__file__).parent / PAGE, folder / PAGE)
    return folder / PAGE


def check_page(of: Any, wanted: object) -> None:
    """Raise UnsupportedError, before anything is written, if the page does not have the task."""
    if wanted and not isinstance(of, Task):
        raise UnsupportedError(f"{of!r} has no task, and a page needs one: export without --web")
    if wanted:
        describe(of)


def describe(task: Task) -> dict[str, Any]:
    """The content of page.json for a task, without its graph; UnsupportedError if the page cannot do the same."""
    about: dict[str, Any] = {"name": _name(task)}
    if isinstance(task, Embed):
        return {**about, "task": "embed", **_texts(task), "encoder": _encoder(task)}
    if isinstance(task, FillMask):
        return {**about, "task": "fill-mask", **_texts(task)}
    if isinstance(task, Classify):
        return {**about, "task": "classify", **_texts(task), **_labels(task), "function": function_for(task.config)}
    if isinstance(task, ImageClassify):
        function = function_for(task.config)
        return {**about, "task": "classify-image", **_images(task), **_labels(task), "function": function}
    if isinstance(task, Detect):
        kind = "table" if {"table row", "table column"} <= set(task.config.id2label.values()) else "detect"
        return {**about, "task": kind, **_images(task), **_labels(task)}
    raise UnsupportedError(
        f"--web has no page for the task {task.name!r} of {about['name']}, only for embed (texts), classify, fill-mask "
        "and detect: export without --web"
    )


def _name(task: Task) -> str:
    """The hub's name, or the folder's name without its path, which is private."""
    if task.checkpoint is None:
        return task.model.architecture
    return task.checkpoint.name if task.checkpoint.revision else task.checkpoint.folder.resolve().name


def _texts(task: TextTask) -> dict[str, Any]:
    return {"tokenizer": describe_tokenizer(task.tokenizer, task.max_tokens)}


def describe_tokenizer(tokenizer: Tokenizer, max_tokens: int) -> dict[str, Any]:
    """The part of page.json about a tokenizer."""
    if not tokenizer.fits_tokenizer_json:
        raise UnsupportedError(f"--web has no page for the tokenizer of {tokenizer.folder}: export without --web")
    row = tokenizer.encode_batch(["a"], truncation=False).rows[0]
    own = [i for i, sequence in enumerate(row.sequence_ids) if sequence == 0]
    return {
        "file": TOKENIZER,
        "prefix": row.ids[: own[0]],
        "suffix": row.ids[own[-1] + 1 :],
        "max_tokens": max_tokens,
        "truncation_side": tokenizer.truncation_side,
        "lowers": tokenizer.lowers,
        "mask_token": tokenizer.mask_token,
        "mask_token_id": tokenizer.mask_token_id,
    }


def _encoder(task: Embed) -> dict[str, Any]:
    encoder = task.encoder
    if any(step is not normalize for step in encoder.steps):
        raise UnsupportedError(f"--web: {task!r} has a Dense module after pooling, which the page cannot compute")
    prompt = encoder.prompts[encoder.default_prompt] if encoder.default_prompt else ""
    skip = 0 if encoder.include_prompt or not prompt else task.prompt_length(prompt)
    return {
        "pooling": list(encoder.pooling),
        "normalize": bool(encoder.steps),
        "truncate_dim": encoder.truncate_dim,
        "prompt": prompt,
        "skip": skip,
    }


def _images(task: ImageTask) -> dict[str, Any]:
    processor: ImageProcessor = task.processor
    if processor.pad_size is not None:
        raise UnsupportedError(
            f"--web: the processor of {task!r} pads to {processor.pad_size}, which the page cannot do"
        )
    if processor.size is not None and processor.resample == NEAREST_FILTER:
        raise UnsupportedError(
            f"--web: the processor of {task!r} resizes to the nearest pixel, which the page cannot do"
        )
    if processor.pad_line:
        raise UnsupportedError(f"--web: the processor of {task!r} pads lines with paper, which the page cannot do")
    steps = {"size": processor.size, "resample": processor.resample, "crop": processor.crop}
    return {"processor": {**steps, "table": processor.table.T.astype(float).tolist()}}


def _labels(task: Task) -> Mapping[str, Any]:
    labels = task.config.id2label
    return {"labels": [labels[i] for i in sorted(labels)]}


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")
