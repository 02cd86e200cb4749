"""Folders of ONNX graphs: constants in other files, operators that never end or are someone else's."""

from __future__ import annotations

import hashlib
import json
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import zoo

from .case import SECRET, add

READS = "would read a file outside"


@cache
def _export() -> Path:
    """An export of a small classifier."""
    from checks.fuzz.targets.strangers import small_bert

    at = Path(mkdtemp())
    small_bert(at / "checkpoint")
    zoo.export(at / "checkpoint", at / "export")
    return at / "export"


def run_graph(at: Path) -> Any:
    return zoo.load(at, device="onnx")("the a")


def _change(at: Path, change: Any) -> None:
    """An export whose graph has been changed."""
    import shutil

    import onnx

    shutil.copytree(_export(), at)
    model = onnx.load(at / "model.onnx", load_external_data=False)
    change(model.graph, onnx)
    data = model.SerializeToString()
    (at / "model.onnx").write_bytes(data)
    index = json.loads((at / "model.onnx.index.json").read_text())
    (entry,) = index["metadata"]["graphs"].values()
    entry["sha256"] = hashlib.sha256(data).hexdigest()
    (at / "model.onnx.index.json").write_text(json.dumps(index))


def _constant(graph: Any, onnx: Any, **entries: str) -> None:
    tensor = onnx.TensorProto(name="evil", data_type=1, dims=[3], data_location=1)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    graph.initializer.append(tensor)


def _linked(at: Path) -> None:
    _change(at, lambda graph, onnx: _constant(graph, onnx, location="other.data"))
    (at / "other.data").symlink_to(f"../{SECRET}")


def _node(graph: Any, onnx: Any, kind: str, domain: str = "") -> None:
    graph.node.append(onnx.helper.make_node(kind, [graph.input[0].name], ["evil"], domain=domain))


GRAPH = "onnx refuses paths out of the folder since 1.16, and links since 1.21"
for _name, _entries, _where in (
    ("a parent folder", {"location": f"../{SECRET}"}, "CVE-2022-25882 (onnx)"),
    ("a nested parent", {"location": f"x/../../{SECRET}"}, "CVE-2024-27318 (onnx)"),
    ("an absolute path", {"location": "/etc/passwd"}, "CVE-2022-25882 (onnx)"),
    ("a device", {"location": "/dev/zero", "length": str(2**40)}, ""),
    ("memory", {"location": "*/_ORT_MEM_ADDR_/*", "offset": "4096", "length": "12"}, ""),
    ("attributes of its own", {"location": "model.onnx.data", "__class__": "x", "offset": "9" * 30}, "CVE-2026-34445"),
):  # fmt: skip
    _made: Any = partial(_change, change=lambda graph, onnx, entries=_entries: _constant(graph, onnx, **entries))
    add(f"a graph's constant in {_name}", READS, _made, "model.onnx", _where, GRAPH, run_graph)
add("a graph's constant behind a link", READS, _linked, "model.onnx", "CVE-2026-27489 (onnx)", GRAPH, run_graph)
for _kind, _domain in (("Evil", "evil"), ("Loop", ""), ("Scan", ""), ("If", ""), ("PyOp", "com.microsoft")):
    _made = partial(_change, change=lambda graph, onnx, kind=_kind, domain=_domain: _node(graph, onnx, kind, domain))
    add(
        f"a graph with the operator {_kind}",
        "would run code of a library, or for ever",
        _made,
        "model.onnx",
        "",
        "",
        run_graph,
    )
