"""A model as a folder of ONNX graphs: for ONNX Runtime in any language, for other runtimes, and for `zoo.load`.

Files: model.onnx (for an encoder with a decoder also encoder.onnx and cross.onnx), each with its weights in
NAME.onnx.data; config.json and the checkpoint's tokenizer or image processor; README.md, how to run the graphs;
parity.json, their differences from the model on NumPy; and model.onnx.index.json, from which `zoo.load` reads all that.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...checkpoint.conflicts import CONFIG, refuse_other_files, refuse_other_weights, refuse_package
from ...checkpoint.files import beside_weights
from ...engines.onnx.checked import approval_marker, remember
from ...engines.onnx.decoder import crosses
from ...engines.onnx.exported import INDEX, VERSION
from ...engines.onnx.int8 import int8, of_steps
from ...engines.onnx.runner import method_of
from ...engines.onnx.step import trace_cross, trace_step
from ...engines.onnx.trace import trace
from ...errors import UnsupportedError, ZooError, nearest
from ...files.atomic_folder import atomic_folder
from ...inputs.heads import CausalLM
from ...inputs.image_text import ImageTextModel
from ...pretrained import Pretrained
from .card import GraphFile, card
from .proof import proof

# Files of an earlier export, the description of its page among them, which would run the new model like the old one.
OLD_FILES = (INDEX, "*.onnx", "*.onnx.data", "web/page.json")
PRECISIONS = ("float32", "int8")


def export_model(
    model: Pretrained,
    folder: str | os.PathLike[str],
    *,
    name: str = "",
    precision: str = "float32",
    standard: bool = False,
    prepare: Callable[[Path], object] = lambda path: None,
    finish: Callable[[Path], object] = lambda path: None,
) -> Path:
    """Write a model's graphs into a folder, which changes at once, in place of an earlier export.

    prepare(folder): writes the tokenizer or image processor.  finish(folder): writes more files beside the graphs.

    ZooError: the folder has files of another checkpoint that the export would not replace.
    """
    from ...saving import shapes_of

    if precision not in PRECISIONS:
        raise UnsupportedError(
            f"precision {precision!r} is not one of {', '.join(PRECISIONS)}{nearest(str(precision), PRECISIONS)}"
        )
    if not model.runner.has_weights:
        raise UnsupportedError("an exported folder cannot be exported: give the checkpoint it was exported from")
    path = Path(folder).expanduser()
    refuse_package(path)
    refuse_other_weights(path, INDEX)
    graphs = graphs_of(model, precision, standard)
    try:
        with atomic_folder(path, OLD_FILES) as staged:
            prepare(staged)
            about = _write_graphs(graphs, staged)
            config = {**model.config.to_dict(), "architectures": [model.architecture]}
            index = {
                "metadata": {
                    "format": "zoo",
                    "version": VERSION,
                    "class": model.architecture,
                    "precision": precision,
                    "standard": standard,
                    "tensors": {tensor: list(shape) for tensor, shape in shapes_of(model).items()},
                    "graphs": about,
                },
                "weight_map": {file: file for one in about.values() for file in _files(staged, one["file"])},
            }
            outputs = proof(model, {one.method: (staged / f"{one.file}.onnx", one.traced) for one in graphs})
            sha256 = {one["file"]: one["sha256"] for one in about.values()}
            report = {"against": "zoo on NumPy", "precision": precision, "graphs": sha256, "outputs": outputs}
            text = card(name or model.architecture, graphs, precision, staged, outputs)
            for file, content in (
                (CONFIG, _json(config)),
                ("parity.json", _json(report)),
                ("README.md", text),
                (INDEX, _json(index)),
            ):
                (staged / file).write_text(content, encoding="utf-8")
            finish(staged)
    except OSError as e:
        raise ZooError(f"cannot write to {path}: {e.strerror or e}") from e
    return path


def export(
    name_or_task: Any,
    folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    precision: str = "float32",
    standard: bool = False,
    web: bool | str | os.PathLike[str] = False,
    **where: Any,
) -> Path:
    """Export a checkpoint, a task or a model as ONNX graphs: see `zoo.export`."""
    from ...checkpoint.task import task_of
    from ...hub import find
    from ...loading import model_of
    from ...tasks import build
    from ...tasks.base import Task
    from .web.page import check_page, write_page

    given, path = name_or_task, Path(folder).expanduser()
    options: dict[str, Any] = {"precision": precision, "standard": standard}
    if isinstance(given, Pretrained):
        check_page(given, web)
        return export_model(given, path, **options)
    if not isinstance(given, Task):
        checkpoint = find(given, **where)
        try:
            found = task_of(checkpoint, task)
        except UnsupportedError:
            if task is not None:
                raise
            # The head has no task: export the model with the files beside the weights.
            check_page(checkpoint.name, web)
            names = beside_weights(checkpoint.folder)
            refuse_other_files(path, names)
            model = model_of(checkpoint)

            def copy(to: Path) -> None:
                for name in names:
                    (to / name).parent.mkdir(parents=True, exist_ok=True)
                    checkpoint.contents.copy(name, to / name)

            return export_model(model, path, name=checkpoint.name, prepare=copy, **options)
        given = build(found)
    check_page(given, web)
    given.check_beside(path)
    name = given.checkpoint.name if given.checkpoint else ""

    def finish(folder: Path) -> None:
        if web:
            write_page(given, folder, libraries=None if web is True else web)

    return export_model(given.model, path, name=name, prepare=given.save_beside, finish=finish, **options)


def graphs_of(model: Any, precision: str = "float32", standard: bool = False) -> list[GraphFile]:
    """The graphs that a model is exported as."""

    found = []
    for one in model.graph_methods():
        policy = int8(one.method, *one.records) if precision == "int8" else None
        traced = trace(one.method, *one.records, output=one.output, standard=standard, precision=policy)
        if any(node.op == "Loop" for node in traced.nodes):  # `checked` refuses it: it might never end
            raise UnsupportedError(f"{type(model).__name__} has a loop in its graph, with which zoo exports none")
        found.append(GraphFile(one.file, method_of(one.method), traced))
    if model.step_decoder is None:
        return found
    embeds = isinstance(model, ImageTextModel)
    return [*found, *_decoder(model.step_decoder, precision, standard, embeds)]


def _decoder(model: CausalLM, precision: str, standard: bool, embeds: bool) -> list[GraphFile]:
    """The graphs of a decoder's step.  embeds: there is one that takes vectors, too."""
    cls, sees = type(model).__name__, crosses(model)
    policy = of_steps(model) if precision == "int8" else None
    step = GraphFile("model", f"{cls}.step", trace_step(model, sees, standard, policy))
    if embeds:
        vectors = trace_step(model, sees, standard, policy, embeds=True)
        return [step, GraphFile("model_of_vectors", f"{cls}.step, vectors", vectors)]
    return [GraphFile("cross", f"{cls}.cross", trace_cross(model, standard, policy)), step] if sees else [step]


def _write_graphs(graphs: list[GraphFile], path: Path) -> dict[str, Any]:
    """Write the graphs -> their entries in the index, by method."""
    about: dict[str, Any] = {}
    for one in graphs:
        onnx = path / f"{one.file}.onnx"
        one.traced.save(onnx)
        about[one.method] = {
            "file": onnx.name,
            "sha256": hashlib.sha256(onnx.read_bytes()).hexdigest(),
            "data_bytes": os.path.getsize(onnx.with_name(f"{onnx.name}.data")),
            "signature": one.traced.signature.to_json(),
        }
        remember(approval_marker(about[one.method]["sha256"], about[one.method]["data_bytes"], one.traced.signature))
    return about


def _files(path: Path, onnx: str) -> list[str]:
    return [name for name in (onnx, f"{onnx}.data") if (path / name).is_file()]


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
