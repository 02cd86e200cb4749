"""Targets besides checkpoints: PDFs, recordings, exports, adapters, rows of tables, cached records."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import zoo
from zoo.apps.batch.mapping import map_files
from zoo.apps.batch.output import JobOutput
from zoo.errors import ZooError

from .. import mutate
from .one_child import OneChild
from .settings import preprocessors
from .target import DATA, TARGETS, Target, as_json, write
from .texts import tokenizers

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


def _tagged_mutator(**changes: mutate.Mutator) -> mutate.Mutator:
    """For inputs b"name\\n...": the rest is changed as the name says."""

    def change(rng: random.Random, data: bytes) -> bytes:
        name, _, body = data.partition(b"\n")
        return name + b"\n" + changes[name.decode()](rng, body)

    return change


# PDFs: in a confined process as users' are, but one for all of them.


def _pdfs() -> list[bytes]:
    from tests.small_pdf import line, pdf, text

    page = text(20, 150, "a b") + line(10, 10, 90, 90)
    return [
        pdf([page]),
        pdf([page, "q 1 0 0 1 5 5 cm /F1 9 Tf Q"], "/Rotate 90"),
        pdf([page], "/CropBox [1 2 30 40]"),
    ] + [path.read_bytes() for path in sorted((DATA / "documents").glob("*.pdf"))]


def _hurry_pdf(at: Path) -> None:
    from zoo.apps.documents import pdf

    pdf.JOB, pdf.Confined = pdf.JOB._replace(seconds=1), OneChild


def _read_pdf(data: bytes, at: Path) -> None:
    from zoo.apps.documents import open_document

    with open_document(data, dpi=36, password="secret", name="x.pdf") as document:
        for number in range(1, min(len(document), 3) + 1):
            document.page(number)


_PDF_WORDS = [
    b"/Kids [2 0 R]",
    b"/Filter /FlateDecode",
    b"3 0 R",
    b"<<",
    b">>",
    b"stream\n",
    b"/Type3",
    b"-1",
    b"1e38 ",
    b"[",
]
_PDF_WORDS += [b"9" * 20, b"/X0 Do ", b"BT ", b" Tj ", b"q ", b"(", b" re f ", b"/Pattern cs ", b" sh ", b"BI ", b" d "]
if has("pypdfium2"):
    TARGETS["pdf"] = Target(
        _pdfs, mutate.of_bytes(_PDF_WORDS), _read_pdf, prepare=_hurry_pdf, weight=2, seconds=15, starts=True
    )


# Recordings: the same.


def _recordings() -> list[bytes]:
    import io

    import av

    def encode(kind: str, codec: str, rate: int) -> bytes:
        file = io.BytesIO()
        with av.open(file, "w", format=kind) as out:
            stream: Any = out.add_stream(codec, rate=rate, layout="mono")
            samples = np.random.default_rng(0).integers(-9999, 9999, (1, rate // 4)).astype(np.int16)
            frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            frame.sample_rate = rate
            for packet in (*stream.encode(frame), *stream.encode(None)):
                out.mux(packet)
        return file.getvalue()

    kinds = [("wav", "pcm_s16le", 8000), ("mp3", "mp3", 16000), ("flac", "flac", 8000), ("ogg", "libopus", 16000)]
    kinds += [("mp4", "aac", 16000), ("adts", "aac", 16000), ("matroska", "libopus", 16000), ("mpegts", "aac", 16000)]
    return [encode(*kind) for kind in [*kinds, ("aiff", "pcm_s16be", 8000), ("avi", "mp3", 16000)]]


def _hurry_audio(at: Path) -> None:
    from zoo.audio import reading

    reading.JOB, reading.HOURS, reading.Confined = reading.JOB._replace(seconds=1), 0.1, OneChild


def _read_audio(data: bytes, at: Path) -> None:
    from zoo.audio import read_audio

    for block in read_audio(data, 16000):
        assert np.isfinite(block).all()


_AUDIO_WORDS = [
    b"RIFF",
    b"data",
    b"fmt ",
    b"moov",
    b"mdat",
    b"stsz",
    b"OggS",
    b"fLaC",
    b"\xff\xfb",
    b"ID3\x04",
    b"\x1aE\xdf\xa3",
]
if has("av"):
    TARGETS["audio"] = Target(
        _recordings,
        mutate.of_bytes(_AUDIO_WORDS, 200),
        _read_audio,
        prepare=_hurry_audio,
        weight=2,
        seconds=15,
        starts=True,
    )


# Exports: b"index\n..." is the index, b"graph\n..." the graph.


def small_bert(at: Path, head: str = "ForSequenceClassification", labels: int = 3) -> Any:
    from zoo.models import bert
    from zoo.saving import save_model

    config = {**SIZES, "model_type": "bert", "vocab_size": 8, "max_position_embeddings": 16, "type_vocab_size": 2}
    model = getattr(bert, f"Bert{head}").from_config(bert.BertConfig.from_dict({**config, "num_labels": labels}))
    save_model(model, at)
    write(at, "tokenizer.json", tokenizers()[-3])
    write(at, "tokenizer_config.json", b'{"tokenizer_class": "BertTokenizer", "model_max_length": 16}')
    return model


def _export_bert(at: Path) -> None:
    small_bert(at / "checkpoint")
    zoo.export(at / "checkpoint", at / "export")


def _prepare_export(at: Path) -> None:
    from zoo.engines.onnx import checked

    _export_bert(at)
    checked.JOB, checked.Confined = checked.JOB._replace(seconds=2), OneChild
    checked.remember = lambda path: None  # it would be a file outside of the folder


def _exports() -> list[bytes]:
    at = Path("made").absolute()
    _export_bert(at)
    index, graph = ((at / "export" / name).read_bytes() for name in ("model.onnx.index.json", "model.onnx"))
    shutil.rmtree(at)
    return [b"index\n" + index, b"signature\n" + _entry(json.loads(index))["signature"].encode(), b"graph\n" + graph]


def _entry(index: Any) -> Any:
    (entry,) = index["metadata"]["graphs"].values()
    return entry


def _run_export(data: bytes, at: Path) -> None:
    kind, _, body = data.partition(b"\n")
    kept, now = at / "export", at / "now"
    try:
        shutil.copytree(kept, now)
        index = json.loads((kept / "model.onnx.index.json").read_text())
        if kind == b"graph":
            write(now, "model.onnx", body)
            _entry(index)["sha256"] = hashlib.sha256(body).hexdigest()
        elif kind == b"signature":
            _entry(index)["signature"] = body.decode("utf-8", "replace")
        write(now, "model.onnx.index.json", body if kind == b"index" else as_json(index))
        zoo.load(now, device="onnx")("the a")
    finally:
        shutil.rmtree(now, ignore_errors=True)


if has("onnx", "onnxruntime"):
    _of_signature = mutate.of_json(["B", "T", "T // 2", "T <= 5", "float32", "context.mask", "logits"])
    _changes = _tagged_mutator(
        index=_of_signature,
        signature=_of_signature,
        graph=mutate.of_bytes([b"Loop", b"com.microsoft", b"Expand", b"\x08\x07"]),
    )
    TARGETS["onnx"] = Target(
        _exports, _changes, _run_export, prepare=_prepare_export, weight=2, seconds=20, megabytes=3000, starts=True
    )


# Adapters: b"config\n..." and b"weights\n...".


def _adapter(at: Path) -> None:
    from safetensors.numpy import save_file

    small_bert(at / "checkpoint")
    (at / "adapter").mkdir()
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["query"], "bias": "none"}
    write(at / "adapter", "adapter_config.json", as_json(config))
    name = "base_model.model.bert.encoder.layer.0.attention.self.query.lora_{}.weight"
    matrices = {"A": np.ones((2, 8), np.float32), "B": np.ones((8, 2), np.float32)}
    save_file({name.format(k): v for k, v in matrices.items()}, at / "adapter" / "adapter_model.safetensors")


def _adapters() -> list[bytes]:
    at = Path("made").absolute()
    _adapter(at)
    files = {b"config": "adapter_config.json", b"weights": "adapter_model.safetensors"}
    found = [kind + b"\n" + (at / "adapter" / name).read_bytes() for kind, name in files.items()]
    shutil.rmtree(at)
    return [*found, b'labels\n{"0": "a", "1": "b", "2": "c"}']


def _load_adapter(data: bytes, at: Path) -> None:
    names = {b"config": "adapter_config.json", b"weights": "adapter_model.safetensors", b"labels": "id2label.json"}
    kind, _, body = data.partition(b"\n")
    try:
        shutil.copytree(at / "adapter", at / "now")
        write(at / "now", names[kind], body)
        zoo.load(at / "checkpoint", adapter=at / "now")("the a")
    finally:
        shutil.rmtree(at / "now", ignore_errors=True)


_of_adapter = mutate.of_json(["LORA", "query", 2, 1e400, "lora_only"])
TARGETS["adapter"] = Target(
    _adapters,
    _tagged_mutator(config=_of_adapter, labels=_of_adapter, weights=mutate.of_safetensors),
    _load_adapter,
    prepare=_adapter,
)


# Tables whose rows name images, and parts of an earlier job.


def _images(at: Path) -> None:
    from zoo.models import vit
    from zoo.saving import save_model

    config = {**SIZES, "model_type": "vit", "image_size": 8, "patch_size": 4, "num_channels": 3, "num_labels": 2}
    save_model(vit.ViTForImageClassification.from_config(vit.ViTConfig.from_dict(config)), at / "vit")
    write(at / "vit", "preprocessor_config.json", preprocessors()[-2])
    Image.new("RGB", (9, 7)).save(at / "a.png")


_ROWS = b'{"image": "a.png", "n": 1}\n{"image": "a.png", "n": "b"}\n{"image": null}\n'
_WORDS = [
    b"../a.png",
    b"/etc/passwd",
    b"file:///etc/passwd",
    b"a.png",
    b"\\ud800",
    b"a\\u0000b",
    b"s3://b/k",
    b"NaN",
    b"\n",
]
_WORDS += [b'"', b",", b"con", b"data:x", b"\xff", b"{", b"}", b"a.png::x", b"http://127.0.0.1:9/x"]


def _map(data: bytes, at: Path) -> None:
    kind, _, body = data.partition(b"\n")
    try:
        (at / "out").mkdir()
        shutil.copy(at / "a.png", at / "out")
        table = write(at / "out", f"rows.{kind.decode()}", body)
        map_files(at / "vit", table, at / "out" / "out.jsonl", progress=False)
        rows = (at / "out" / "out.jsonl").read_text().splitlines()
        assert all(isinstance(json.loads(row), dict) for row in rows)
    finally:
        shutil.rmtree(at / "out", ignore_errors=True)


_of_rows = mutate.of_bytes(_WORDS)
TARGETS["map-rows"] = Target(
    lambda: [b"jsonl\n" + _ROWS, b"csv\nimage,n\na.png,1\n../x.png,2\n,\n"],
    _tagged_mutator(jsonl=_of_rows, csv=_of_rows),
    _map,
    prepare=_images,
)


def _parts() -> list[bytes]:
    """The names and bytes of the parts of a job of three rows in two parts."""
    at = Path("made").absolute()
    at.mkdir()
    _images(at)
    write(at, "rows.jsonl", _ROWS)
    map_files(at / "vit", at / "rows.jsonl", at / "out", format="jsonl", rows=2, progress=False)
    found = {path.name: path.read_text() for path in (at / "out").iterdir()}
    shutil.rmtree(at)
    return [as_json(found)]


def _resume(data: bytes, at: Path) -> None:
    """Whatever lies there, a resumed job has the rows that a new one has."""
    try:
        (at / "out").mkdir()
        shutil.copy(at / "a.png", at / "out")
        table = write(at / "out", "rows.jsonl", _ROWS)
        found = json.loads(data)
        for name, text in found.items() if isinstance(found, dict) else ():
            if (
                name
                and "/" not in name
                and "\0" not in name
                and len(name.encode(errors="replace")) < 200
                and name not in (".", "..")
            ):
                parts = at / "out" / "parts"
                parts.mkdir(exist_ok=True)
                (parts / name.encode(errors="replace").decode()).write_text(str(text), errors="replace")
        map_files(at / "vit", table, at / "out" / "parts", format="jsonl", rows=2, progress=False, resume=True)
        names = sorted(part.name for part in JobOutput("", str(at / "out" / "parts"), "jsonl", False).part_files())
        rows = [json.loads(line) for name in names for line in (at / "out" / "parts" / name).open()]
        assert [row.get("n") for row in rows] == [1, "b", None], rows
    finally:
        shutil.rmtree(at / "out", ignore_errors=True)


def _change_parts(rng: random.Random, data: bytes) -> bytes:
    return mutate.of_json(["part-00000-retry", _ROWS.decode(), ""])(rng, data)


def _tolerant(data: bytes, at: Path) -> None:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        raise ZooError("not an input") from None
    _resume(data, at)


TARGETS["manifests"] = Target(_parts, _change_parts, _tolerant, prepare=_images)


# States of runs.


def _states() -> list[bytes]:
    import io

    import torch

    file = io.BytesIO()
    torch.save({"identity": {"a": 1}, "step": 1, "losses": [0.5], "tensors": {"w": torch.ones(2)}}, file)
    return [file.getvalue()]


def _read_state(data: bytes, at: Path) -> None:
    from zoo.apps.train.state import read_state

    read_state(write(at, "state.pt", data))


if has("torch"):
    TARGETS["state"] = Target(_states, mutate.of_zip, _read_state, megabytes=3000)
