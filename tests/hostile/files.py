"""Documents, pictures, recordings, tables, adapters and graphs of strangers."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import zoo
from tests.small_pdf import pdf, stream, text

from .case import SECRET, SOURCE, add, touch

TAKES = "would take memory or time without bounds"
READS = "would read a file outside"


def _file(at: Path, name: str, data: bytes | str) -> None:
    at.mkdir(exist_ok=True)
    (at / name).write_bytes(data if isinstance(data, bytes) else data.encode())


# PDFs.


def read_pdf(at: Path) -> Any:
    from zoo.apps.documents import open_document

    with open_document(at / "x.pdf", dpi=50) as document:
        return [document.page(number) for number in range(1, min(len(document), 2) + 1)]


_ACTION = "/OpenAction << /S /{} /JS (app.launchURL\\('http://127.0.0.1:9'\\)) /F (../secret.txt) /Win << /F (x) >> >>"
_X0 = "/XObject << /X0 100 0 R >>"
_FORM = stream("/X0 Do /X0 Do", f" /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << {_X0} >>")
_ELSEWHERE = stream("", " /Type /XObject /Subtype /Image /Width 9 /Height 9 /F (../secret.txt)")
for _name, _data, _says in (
    ("a script", pdf([text(9, 9, "a")], catalog=_ACTION.format("JavaScript")), ""),
    ("a program to launch", pdf([text(9, 9, "a")], catalog=_ACTION.format("Launch")), ""),
    ("a form that draws itself", pdf(["/X0 Do"], resources=_X0, objects=[_FORM]), "page 1"),
    ("content in another file", pdf(["/X0 Do"], resources=_X0, objects=[_ELSEWHERE]), ""),
    ("2^31 pages", pdf([""]).replace(b"/Count 1 ", b"/Count 2147483647 "), ""),
    ("a page of 10^9 points", pdf([""], size=(1e9, 1e9)), "36000000"),
):  # fmt: skip
    _write = partial(_file, name="x.pdf", data=_data)
    _peers = "PDFium runs scripts only with V8, which is not built in"
    add(f"a PDF with {_name}", TAKES if "page" in _name else "would act", _write, _says, "", _peers, read_pdf)

# Pictures.


def read_picture(at: Path) -> Any:
    from zoo.apps.documents import open_document

    with open_document(next(at.iterdir())) as document:
        return document.page(1)


def _png(width: int, height: int, data: bytes = b"") -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def _tiff(next_directory: int) -> bytes:
    tags = [(256, 3, 1, 9), (257, 3, 1, 9), (258, 3, 1, 8), (262, 3, 1, 1), (273, 4, 1, 8), (279, 4, 1, 81)]
    body = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + body + struct.pack("<I", next_directory)


_SVG = '<?xml version="1.0"?><!DOCTYPE s [<!ENTITY e SYSTEM "../secret.txt">]><svg xmlns="http://www.w3.org/2000/svg">&e;</svg>'
_BMP = b"BM" + struct.pack("<IIIIiiHHIIiiII", 60, 0, 54, 40, 65000, 65000, 1, 8, 1, *[0] * 5) + b"\0\2\xff\xff" * 4
_PS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(../secret.txt) (r) file\n"
for _name, _file_name, _data, _tries in (
    ("a PNG of 65,535 pixels a side", "x.png", _png(65535, 65535), TAKES),
    ("a PNG of 2^31 pixels", "x.png", _png(2**31 - 1, 1), TAKES),
    ("a TIFF whose directory follows itself", "x.tif", _tiff(8), TAKES),
    ("PostScript named .png", "x.png", _PS, "would run a program of Ghostscript's"),
    ("an SVG with an entity", "x.png", _SVG.encode(), READS),
    ("a BMP with run-length jumps", "x.bmp", _BMP, TAKES),
    ("a picture of another format", "x.png", b"\x00\x00\x00\x1cftypavif" + bytes(99), "would reach another decoder"),
):  # fmt: skip
    add(_name, _tries, partial(_file, name=_file_name, data=_data), "x.", "", "", read_picture)

# Recordings.


def read_sound(at: Path) -> Any:
    from zoo.audio import read_audio

    return sum(len(block) for block in read_audio(next(at.iterdir()).read_bytes(), 16000))


_FORMAT = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
_WAV = b"RIFF\xff\xff\xff\xffWAVEfmt " + _FORMAT + b"data\xff\xff\xff\xff"
PLAYLIST = "FFmpeg opens what a playlist names, within its list of protocols"
for _name, _data in (
    ("a playlist", b"#EXTM3U\n#EXTINF:1,\n../secret.txt\n#EXT-X-ENDLIST\n"),
    ("a playlist of addresses", b"#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/x.ts\n#EXT-X-ENDLIST\n"),
    ("a list to join", b"ffconcat version 1.0\nfile ../secret.txt\n"),
    ("a WAV of 4 GB", _WAV),
    ("an SDP", b"v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\n"),
):  # fmt: skip
    add(f"a recording that is {_name}", READS, partial(_file, name="x.wav", data=_data),
        "" if "WAV" in _name else "cannot be read as audio", "", PLAYLIST, read_sound)  # fmt: skip

# Tables.


def map_rows(at: Path) -> Any:
    from zoo.apps.batch.mapping import map_files

    table = next(path for path in at.iterdir() if path.suffix in (".jsonl", ".csv", ".parquet", ".xlsx"))
    map_files(SOURCE, table, at / "out.jsonl", progress=False, options={"max_new_tokens": 1})
    found = (at / "out.jsonl").read_text()
    assert "7391" not in found
    return found


def map_images(at: Path) -> Any:
    from PIL import Image

    from zoo.apps.batch.mapping import map_files
    from zoo.models import vit
    from zoo.saving import save_model

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = {**sizes, "model_type": "vit", "image_size": 8, "patch_size": 4, "num_channels": 3, "num_labels": 2}
    save_model(vit.ViTForImageClassification.from_config(vit.ViTConfig.from_dict(config)), at / "vit")
    images = {"image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 8}}
    (at / "vit" / "preprocessor_config.json").write_text(json.dumps(images))
    Image.new("RGB", (9, 9)).save(at.parent / "outside.png")
    map_files(at / "vit", at / "rows.jsonl", at / "out.jsonl", progress=False)
    rows = [json.loads(line) for line in (at / "out.jsonl").read_text().splitlines()]
    assert all(row["error"] for row in rows)
    return rows


_PLACES = ("../outside.png", "/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:9/x.png", "/dev/zero")
_PLACES += ("s3://bucket/x.png?endpoint_override=127.0.0.1:9&scheme=http",)
for _place in _PLACES:
    _row = json.dumps({"image": _place}) + "\n"
    add(f"a row that names {_place}", READS, partial(_file, name="rows.jsonl", data=_row), "", "", "", map_images)


def _parquet(at: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": touch(at)}
    field = pa.field("text", pa.string(), metadata=kind)
    at.mkdir()
    pq.write_table(pa.table([pa.array(["a"])], schema=pa.schema([field])), at / "x.parquet")


def _xlsx(at: Path, entity: str) -> None:
    at.mkdir()
    cell = "<row><c t='inlineStr'><is><t>&e;</t></is></c></row>"
    sheet = f"<!DOCTYPE x [{entity}]><worksheet><sheetData>{cell}</sheetData></worksheet>"
    with zipfile.ZipFile(at / "x.xlsx", "w") as file:
        file.writestr("xl/workbook.xml", "<workbook><sheets><sheet name='a' sheetId='1'/></sheets></workbook>")
        file.writestr("xl/worksheets/sheet1.xml", sheet)


add("parquet with a pickled type", "would run code as it is read", _parquet, "", "CVE-2023-47248 (pyarrow)",
    "pyarrow ignores such types since 14.0.1", map_rows)  # fmt: skip
add("XLSX with an entity of a file", READS, partial(_xlsx, entity=f"<!ENTITY e SYSTEM '../{SECRET}'>"), "x.xlsx", "",
    "openpyxl reads entities without defusedxml", map_rows)  # fmt: skip
_LAUGHS = (
    "<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 10)) + "<!ENTITY e '&a9;'>"
)
add("XLSX with entities that grow", TAKES, partial(_xlsx, entity=_LAUGHS), "x.xlsx", "", "", map_rows)

# Adapters.


def load_adapter(at: Path) -> Any:
    return zoo.load(SOURCE, adapter=at)("a", max_new_tokens=1)


def _adapter(at: Path, weights: bool = True, **fields: Any) -> None:
    from safetensors.numpy import save_file

    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"], "bias": "none", **fields}
    _file(at, "adapter_config.json", json.dumps(config))
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    if weights:
        both = {name.format("A"): np.zeros((2, 64), np.float32), name.format("B"): np.zeros((64, 2), np.float32)}
        save_file(both, at / "adapter_model.safetensors")
    else:
        _file(at, "adapter_model.bin", touch(at))


def _adapter_link(at: Path) -> None:
    _adapter(at)
    (at / "adapter_model.safetensors").unlink()
    (at / "adapter_model.safetensors").symlink_to(f"../{SECRET}")


PEFT = "peft reads adapter_model.bin with torch.load(weights_only=True)"
add(
    "an adapter that is a pickle",
    "would run code",
    partial(_adapter, weights=False),
    "adapter_model",
    "",
    PEFT,
    load_adapter,
)
add("an adapter's auto_mapping", "would import code", partial(_adapter, auto_mapping={"base_model_class": "Evil",
    "parent_library": "evil"}), "", "", "peft imports parent_library", load_adapter)  # fmt: skip
add("an adapter that is a link", READS, _adapter_link, "a link out", "", "", load_adapter)
add("an adapter of 10^9 rows", TAKES, partial(_adapter, r=10**9), "adapter", "", "", load_adapter)
add("an adapter's pattern", TAKES, partial(_adapter, target_modules="(.*)*(.*)*q_proj$"), "", "", "", load_adapter)
