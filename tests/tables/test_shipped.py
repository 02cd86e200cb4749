"""The models that come with zoo: small, loaded by name, and scored in their cards as in the docs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

import zoo
from zoo.apps.tables import TableExtractor
from zoo.checkpoint.names import EMBEDDED_NAMES
from zoo.images import lines
from zoo.images.lines import split_words
from zoo.tasks import read

DATA = Path(zoo.__file__).parent / "data"


def test_they_are_small_and_have_a_card():
    files = [path for name in EMBEDDED_NAMES for path in (DATA / name).iterdir()]
    assert sum(path.stat().st_size for path in files) < 12 << 20
    for name in EMBEDDED_NAMES:
        card = (DATA / name / "README.md").read_text(encoding="utf-8")
        assert name == "stories260k" or "license: apache-2.0" in card
        assert "Not scored yet" not in card


@pytest.mark.parametrize("name", EMBEDDED_NAMES)
def test_each_is_loaded_by_name(name: str):
    task = zoo.load(name)
    image = np.full((60, 400, 3), 255, np.uint8)
    if name == "zoo-read":
        assert task(image).text == ""
        assert task.processor.pad_line
    elif name.startswith("zoo-table"):
        assert task.name == "detect"
        assert all(0 <= found.score <= 1 for found in task(image))


def test_a_line_longer_than_the_reader_knows_is_read_in_parts():
    task, text = zoo.load("zoo-read"), "Number of samples positive for other species per litre of water"
    image = Image.new("RGB", (720, 40), "white")
    ImageDraw.Draw(image).text((8, 8), text, fill="black", font=ImageFont.load_default(20))
    line = np.asarray(image)
    parts = split_words(line, 10)
    assert len(parts) == 2
    whole, alone = task(line), task([line[:, x0:x1] for x0, x1 in parts])
    assert whole.text == " ".join(one.text for one in alone)
    assert min(one.confidence for one in alone) <= whole.confidence <= max(one.confidence for one in alone)
    right = sum(a == b for a, b in zip(whole.text.split(), text.split(), strict=False))
    assert right >= 8  # of eleven; squeezed into one picture, few are


def test_an_uncertain_part_that_is_still_too_long_is_read() -> None:
    """Its only gaps are far from the middle, so that it could be cut again."""
    image = np.asarray(drawn("i lI1l1I1ll1I1lIl1I1llI1l1I1ll1I1lIl1I1llI1l1I1ll1I1lI l", 9, 1.3))
    task = zoo.load("zoo-read")
    parts = split_words(image, 10)
    assert max(b - a for a, b in parts) > 10 * len(image)
    assert all(one.text for one in task([image, *(image[:, a:b] for a, b in parts)]))


def test_the_docs_show_what_ships():
    pytest.importorskip("torch", reason="needs the extra train")
    pytest.importorskip("scipy", reason="needs the extra train")
    ship = importlib.import_module("training.ship")
    text = ship.DOCS.read_text(encoding="utf-8")
    assert text == ship.with_scores(text)
    readme = ship.README.read_text(encoding="utf-8")
    assert readme == ship.with_output(readme)
    assert sum((ship.ROOT / name).stat().st_size for name in ("zoo/data/page.png", "docs/page-cells.png")) < 300_000
    for what in ship.TITLES:
        assert f"# {ship.TITLES[what]}" in (ship.folder(what) / "README.md").read_text(encoding="utf-8")


def drawn(text: str, size: int, blur: float) -> np.ndarray:
    image = Image.new("RGB", (size * len(text) * 2 // 3 + 12, round(1.5 * size)), "white")
    ImageDraw.Draw(image).text((6, size // 6), text, fill="black", font=ImageFont.load_default(size))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(blur)))


def test_an_uncertain_line_is_read_again_and_a_certain_one_once(monkeypatch: pytest.MonkeyPatch):
    task = zoo.load("zoo-read")
    low = [drawn("Wm llI1 rnm", 9, 1.4), drawn("e8B6a0Oc9", 9, 1.4)]
    images = [drawn("Revenue 2023", 24, 0), drawn("Wm llI1 rnm", 18, 2.4), *low]
    factors: list[float] = []
    again: list[np.ndarray] = []

    def stretched(image: np.ndarray, factor: float) -> np.ndarray:
        factors.append(factor)
        assert image is not images[0]
        return lines.stretch(image, factor)

    def resampled(image: np.ndarray, height: int) -> list[np.ndarray]:
        again.append(image)
        return lines.resample_views(image, height)

    monkeypatch.setattr(read, "stretch", stretched)
    monkeypatch.setattr(read, "resample_views", resampled)
    found = task(images)
    assert found[0].text == "Revenue 2023"
    assert found[0].confidence >= read.MIN_CONFIDENCE
    assert factors == list(read.WIDTHS)
    assert [len(image) for image in again] == [14, 14]  # of the model's 32
    monkeypatch.setattr(read, "MIN_CONFIDENCE", 0.0)
    once = task(images)
    assert once[0] == found[0]


@pytest.mark.parametrize("low", [True, False])
def test_an_uncertain_line_is_what_all_views_together_find_likeliest(low: bool, monkeypatch: pytest.MonkeyPatch):
    """The twin is transformers' model, which gives the log-probabilities of every view's text in every view."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    task, folder = zoo.load("zoo-read"), DATA / "zoo-read"
    model = transformers.VisionEncoderDecoderModel.from_pretrained(folder).float().eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def padded(image: np.ndarray) -> Image.Image:
        paper = Image.new("RGB", (10 * len(image), len(image)), "white")
        paper.paste(Image.fromarray(image))
        return paper

    def logprobs(pixels: Any, ids: list[int]) -> Any:
        given = torch.tensor([[model.config.decoder_start_token_id, *ids[:-1]]])
        with torch.no_grad():
            logits = model(pixel_values=pixels[None], decoder_input_ids=given).logits[0]
        return logits.log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)]

    for text in ("Wm llI1 rnm", "e8B6a0Oc9", "im n m 5S"):
        image = drawn(text, 9, 1.3) if low else drawn(text, 18, 2.4)
        again = lines.resample_views(image, 32) if low else [lines.stretch(image, factor) for factor in read.WIDTHS]
        views = [image, *again]
        pixels = processor(images=[padded(view) for view in views], return_tensors="pt").pixel_values
        with monkeypatch.context() as patch:
            patch.setattr(read, "MIN_CONFIDENCE", 0.0)
            texts = {one.text for one in task(views)}
        end = model.generation_config.eos_token_id
        ids = {one: [*tokenizer(one, add_special_tokens=False).input_ids, end] for one in texts}
        means = {one: torch.stack([logprobs(view, ids[one]) for view in pixels]).mean(0) for one in texts}
        longest = max(map(len, ids.values()))
        whole = [one for one in texts if len(ids[one]) >= read.MIN_LENGTH_SHARE * longest]
        best = max(whole, key=lambda one: float(means[one].sum()))
        found = task(image)
        assert found.text == best
        assert found.confidence == pytest.approx(float(means[best].mean().exp()), abs=0.05)  # paper is padded otherwise


@pytest.mark.parametrize("margin", [2, 12], ids=["tight", "with margins"])
def test_a_single_row_is_read(margin: int):
    image = Image.new("RGB", (600, 24 + 2 * margin), "white")
    draw, texts = ImageDraw.Draw(image), ["Total", "1,204", "88.5", "No"]
    for x, words in zip((10, 200, 330, 460), texts, strict=True):
        draw.text((x, margin), words, fill="black", font=ImageFont.load_default(18))
    (table,) = TableExtractor(detection=None, reader="zoo-read")(np.asarray(image))
    assert table.rows() == [texts]
