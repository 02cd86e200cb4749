"""Tokens and pixel values by zoo.js, in headless Chromium, are those of zoo."""

from __future__ import annotations

import base64
import json
import lzma
import re
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image

import zoo
from tests.web.pictures import IMAGENET, picture
from zoo.apps.onnx_export.web.page import describe_tokenizer
from zoo.images import ImageProcessor, open_image
from zoo.text.tokenizer import Tokenizer

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent.parent / "data"
ZOO_JS = Path(zoo.__file__).parent / "apps" / "onnx_export" / "web" / "zoo.js"


def encoded(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


TOKENIZERS = {
    "bert-base-uncased.vocab.txt.xz": "vocab.txt",
    "bert-base-multilingual-cased.vocab.txt.xz": "vocab.txt",
    "roberta.tokenizer.json.xz": "tokenizer.json",
    "xlm_roberta.tokenizer.json.xz": "tokenizer.json",
    "stories260k": "",
}
# Two accents on one letter, in a form that SentencePiece's character map knows: the library does not find it there.
STACKED = re.compile("[\u0300-\u036f]{2}")


def strings() -> list[str]:
    """The strings of the published vectors of several tokenizers."""
    folder = DATA / "tokenizer_vectors"
    cases = json.loads((folder / "bert.json").read_text(encoding="utf-8"))
    found = [case["text"] for of in cases.values() for case in of.values()]
    for path in folder.glob("*.inp"):
        found += path.read_bytes().decode().split("\n__ggml_vocab_test__\n")
    return list(
        dict.fromkeys([*found, "e\u0301\u0301\u0301", "[MASK] it's <s> hello<mask>world </s>", "a\u200bb\u00a0c"])
    )


@pytest.mark.parametrize("packed", TOKENIZERS)
def test_ids_equal_zoos(packed, libraries, tab, tmp_path):
    source = Path(zoo.__file__).parent / "data" / packed
    if name := TOKENIZERS[packed]:
        source = tmp_path / "source"
        source.mkdir()
        (source / name).write_bytes(lzma.decompress((DATA / "tokenizers" / packed).read_bytes()))
        (source / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": "uncased" in packed}))
    tokenizer = Tokenizer.from_folder(source)
    texts = strings()
    assert len(texts) > 80
    (tmp_path / "tokenizer.json").write_text(tokenizer.backend.to_str())
    (tmp_path / "index.html").write_text("<title>ids</title>")
    (tmp_path / "zoo.js").write_bytes(ZOO_JS.read_bytes())
    shutil.copy(libraries / "tokenizers.min.mjs", tmp_path)
    page = tab(tmp_path)
    page.page.goto(page.address)
    found = page.page.evaluate(
        "async ([texts, about]) => { const { loadTokenizer } = await import('./zoo.js');"
        " const { encode } = await loadTokenizer(about); return texts.map((text) => encode(text)); }",
        [texts, describe_tokenizer(tokenizer, 30)],
    )
    wanted = [row.ids for row in tokenizer.encode_batch(texts, max_length=30).rows]
    differing = [text for text, ids, want in zip(texts, found, wanted, strict=True) if ids != want]
    assert len(differing) == (2 if "xlm" in packed else 0), differing
    assert all(STACKED.search(unicodedata.normalize("NFD", text)) for text in differing)


SIZES = [
    {"height": 60, "width": 84},
    {"shortest_edge": 48},
    {"shortest_edge": 40, "longest_edge": 70},
    {"longest_edge": 90},
    {"max_height": 50, "max_width": 120},
]


def test_pixels_equal_the_processors_bit_by_bit(libraries, tab, tmp_path, rng):
    (tmp_path / "zoo.js").write_bytes(ZOO_JS.read_bytes())
    (tmp_path / "index.html").write_text("<title>pixels</title>")
    cases, wanted = [], []
    for i in range(35):
        crops = i % 3 == 0
        name = "DeiTImageProcessor" if crops else "ViTImageProcessor"
        raw = {**IMAGENET, "image_processor_type": name, "size": 32, "crop_size": 64, "resample": 1 + i % 5}
        processor = replace(
            ImageProcessor.from_dict(raw), size=SIZES[i % 7] if i % 7 < 5 else {"height": 9, "width": 120}
        )
        height, width = rng.integers(20, 160, 2).tolist()
        H, W = (
            processor.output_size(height, width)
            if not crops
            else replace(processor, crop=None).output_size(height, width)
        )
        if height > H and height - H > 2 * (width - W) and int(PIL.__version__.split(".")[0]) < 13:
            continue  # before Pillow 13 rows came first in every case
        image = rng.integers(0, 256, (height, width, 3), np.uint8)
        steps = {"size": processor.size, "resample": processor.resample, "crop": processor.crop}
        table = processor.table.T.astype(float).tolist()
        cases.append({"width": width, "height": height, "data": encoded(image), "steps": {**steps, "table": table}})
        wanted.append(processor(image).pixel_values[0].transpose(2, 0, 1))
    page = tab(tmp_path)
    page.page.goto(page.address)
    found = page.page.evaluate(
        "async (cases) => { const { prepare } = await import('./zoo.js');"
        " const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));"
        " return cases.map(({ width, height, data, steps }) => {"
        "   const out = prepare({ width, height, data: bytes(data) }, steps);"
        "   const binary = new Uint8Array(out.data.buffer).reduce((a, b) => a + String.fromCharCode(b), '');"
        "   return [out.height, out.width, btoa(binary)]; }); }",
        cases,
    )
    for (height, width, data), want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.frombuffer(base64.b64decode(data), np.float32).reshape(3, height, width), want)


def test_pictures_are_opened_as_zoo_opens_them(libraries, tab, tmp_path, rng):
    image = picture(rng, 90, 120)
    turned = Image.Exif()
    turned[274] = 6
    fading = image.convert("RGBA")
    fading.putalpha(Image.linear_gradient("L").resize(image.size))
    image.save(tmp_path / "turned.jpg", quality=90, exif=turned)
    image.save(tmp_path / "lossless.webp", lossless=True)
    image.convert("L").save(tmp_path / "grey.png")
    image.quantize(32).save(tmp_path / "palette.png")
    Image.fromarray(rng.integers(0, 65536, (40, 50), np.uint16)).save(tmp_path / "16-bits.png")
    fading.save(tmp_path / "fading.png")
    names = sorted(path.name for path in tmp_path.iterdir())
    (tmp_path / "zoo.js").write_bytes(ZOO_JS.read_bytes())
    (tmp_path / "index.html").write_text("<title>pictures</title>")
    page = tab(tmp_path)
    page.page.goto(page.address)
    for name in names:
        height, width, data = page.page.evaluate(
            "async (name) => { const { openImage } = await import('./zoo.js');"
            " const image = await openImage(await (await fetch(name)).blob());"
            " const binary = image.data.reduce((a, b) => a + String.fromCharCode(b), '');"
            " return [image.height, image.width, btoa(binary)]; }",
            name,
        )
        found = np.frombuffer(base64.b64decode(data), np.uint8).reshape(height, width, 3).astype(int)
        # Decoders of JPEG may round differently; Chromium's was Pillow's when this was written.
        np.testing.assert_allclose(
            found, np.asarray(open_image(tmp_path / name)), atol=2 if name.endswith("jpg") else 0
        )
