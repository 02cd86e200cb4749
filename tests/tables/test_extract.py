"""From a page to its tables: with what a detector said of real tables, laid on pages in many ways."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import zoo
from zoo.apps.tables import Table, TableExtractor, Word, build_table, draw_tables, extract_tables
from zoo.apps.tables.extract import TableCrop
from zoo.apps.tables.structure import LABELS
from zoo.errors import InputError, NotFoundError, UnsupportedError
from zoo.images.boxes import Box, Detection
from zoo.models.table_transformer import TableTransformerForObjectDetection
from zoo.options import Options
from zoo.weights import Random

DATA = Path(__file__).parent.parent / "data" / "tables"
TABLES = {"gpt3": ("gpt3.png", 0), "gmft": ("gmft_3_1.png", 50)}  # the image, and the margin that its objects have


def moved(box: Sequence[float], x: float, y: float) -> Box:
    return box[0] + x, box[1] + y, box[2] + x, box[3] + y


class Sample:
    """A real table: its image, the objects that were detected in it and its words, in pixels of the image."""

    def __init__(self, name: str):
        self.file, margin = DATA / TABLES[name][0], TABLES[name][1]
        self.image = np.asarray(Image.open(self.file).convert("RGB"))
        raw = json.loads((DATA / f"{name if name == 'gpt3' else 'gmft_3_1'}.json").read_text())
        self.objects = [Detection(n, s, moved(box, -margin, -margin)) for n, s, box in raw["objects"]]
        self.words = [Word(w["text"], moved(w["box"], -margin, -margin)) for w in raw.get("words", ())]


SAMPLES = {name: Sample(name) for name in TABLES}


class Page:
    """A white page with tables on it, and what detectors say of them."""

    def __init__(self, height: int = 1200, width: int = 1000):
        self.pixels = np.full((height, width, 3), 255, np.uint8)
        self.found: list[tuple[Detection, Sample]] = []

    def put(self, name: str, x: int, y: int, score: float = 0.99) -> Page:
        sample = SAMPLES[name]
        h, w = sample.image.shape[:2]
        self.pixels[y : y + h, x : x + w] = sample.image
        self.found.append((Detection("table", score, (float(x), float(y), float(x + w), float(y + h))), sample))
        return self

    @property
    def words(self) -> list[Word]:
        return [Word(w.text, moved(w.box, *d.box[:2])) for d, sample in self.found for w in sample.words]

    def detection(self, image: np.ndarray, threshold: float) -> list[Detection]:
        np.testing.assert_array_equal(image, self.pixels)
        return [d for d, _ in self.found if d.score > threshold]

    def structure(self, image: np.ndarray, threshold: float) -> list[Detection]:
        """The objects of the table in a crop, which is found by its image."""
        for _, sample in self.found:
            h, w = sample.image.shape[:2]
            y, x = (image.shape[0] - h) // 2, (image.shape[1] - w) // 2
            if x >= 0 and y >= 0 and np.array_equal(image[y : y + h, x : x + w], sample.image):
                return [o._replace(box=moved(o.box, x, y)) for o in sample.objects if o.score > threshold]
        raise AssertionError("the crop has no table in its middle")


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.grid()]


def turned_left(box: Box, width: float) -> Box:
    """The box on a page that is turned by 90 degrees counter-clockwise."""
    return box[1], width - box[2], box[3], width - box[0]


def all_boxes(table: Table) -> np.ndarray:
    return np.array([*(cell.box for cell in table.cells), *table.row_boxes, *table.column_boxes, table.box])


def inner_borders(table: Table, x: float = 0, y: float = 0) -> np.ndarray:
    """The ends of rows and columns but for the outer edges, which go to where the ink ends; moved by (x, y)."""
    ys = [v + y for box in table.row_boxes for v in (box[1], box[3])]
    xs = [v + x for box in table.column_boxes for v in (box[0], box[2])]
    return np.array(ys[1:-1] + xs[1:-1])


def test_two_tables_on_a_page() -> None:
    page = Page().put("gmft", 250, 700, score=0.8).put("gpt3", 40, 130)
    words = [
        *page.words,
        Word("Caption", (300.0, 650.0, 400.0, 664.0)),
        Word("footnote", (250.0, 1100.0, 300.0, 1110.0)),
    ]
    first, second = TableExtractor(page.structure, page.detection)(page.pixels, words)
    assert (first.shape, first.score) == ((9, 8), 0.99)
    assert (second.shape, second.score) == ((14, 8), 0.8)
    for table, name, x, y in ((first, "gpt3", 40, 130), (second, "gmft", 250, 700)):
        sample = SAMPLES[name]
        alone = build_table(sample.objects, sample.words)
        assert texts(table) == texts(alone)
        np.testing.assert_allclose(inner_borders(table), inner_borders(alone, x, y), atol=1e-6)
        assert table.header_rows == alone.header_rows
    assert second.grid()[2][1].text == "12 × 12 × 12"
    assert second.grid()[1][0].is_projected_row_header


@pytest.mark.parametrize("straighten", [True, False])
def test_a_table_that_lies_on_its_side(straighten: bool) -> None:
    """Its page is turned upright, or a detector says that it lies on its side."""
    upright = Page().put("gmft", 250, 700)
    (wanted,) = TableExtractor(upright.structure, upright.detection)(upright.pixels, upright.words)
    pixels, width = np.rot90(upright.pixels), upright.pixels.shape[1]  # reads from the bottom up
    words = [Word(w.text, turned_left(w.box, width)) for w in upright.words]

    def detection(image: np.ndarray, threshold: float) -> list[Detection]:
        return [Detection("table rotated", 0.99, turned_left(d.box, width)) for d, _ in upright.found]

    said = upright.detection if straighten else detection
    (table,) = TableExtractor(upright.structure, said, straighten=straighten)(pixels, words)
    assert texts(table) == texts(wanted)
    assert table.angle == -90
    back = np.array([turned_left(tuple(box), width) for box in all_boxes(wanted)])
    np.testing.assert_allclose(all_boxes(table), back, atol=1e-6)
    assert table.row_boxes[0][2] < table.row_boxes[-1][0]  # the first row is on the left


def test_upright_after_exif(tmp_path: Path) -> None:
    page = Page().put("gmft", 250, 700)
    sideways = Image.fromarray(page.pixels).transpose(Image.Transpose.ROTATE_90)
    exif = sideways.getexif()
    exif[274] = 6
    sideways.save(tmp_path / "page.png", exif=exif)
    (table,) = TableExtractor(page.structure, page.detection)(tmp_path / "page.png", page.words)
    assert table.grid()[2][1].text == "12 × 12 × 12"


@pytest.mark.parametrize("turned", [False, True])
def test_boxes_go_to_the_page_and_back(turned: bool, rng: np.random.Generator) -> None:
    page = np.arange(60 * 80).reshape(60, 80, 1).repeat(3, 2)
    label = "table rotated" if turned else "table"
    extractor = TableExtractor(lambda p, threshold: [], None, padding=7)
    crop = extractor.crop((page % 251).astype(np.uint8), Detection(label, 1.0, (20.0, 30.0, 50.0, 40.0)))
    assert crop.pixels.shape == ((44, 24, 3) if turned else (24, 44, 3))
    for _ in range(50):
        x0, x1 = np.sort(rng.integers(13, 57, 2)).tolist()
        y0, y1 = np.sort(rng.integers(23, 47, 2)).tolist()
        box = crop.from_page((x0, y0, x1 + 1, y1 + 1))
        assert crop.to_page(box) == (x0, y0, x1 + 1, y1 + 1)
        left, top, right, bottom = map(int, box)
        part = crop.pixels[top:bottom, left:right, 0]
        original = page[y0 : y1 + 1, x0 : x1 + 1, 0] % 251
        np.testing.assert_array_equal(np.rot90(part) if turned else part, original)


@pytest.mark.parametrize(
    ("x", "y"), [(0, 0), (85, 964), *(pytest.param(*edge, marks=pytest.mark.nightly) for edge in ((0, 500), (40, 0)))]
)
def test_a_table_at_the_edge_has_a_white_margin(x: int, y: int) -> None:
    page = Page().put("gpt3", x, y)
    seen = []

    def structure(image: np.ndarray, threshold: float) -> list[Detection]:
        seen.append(image)
        return page.structure(image, threshold)

    (table,) = TableExtractor(structure, page.detection)(page.pixels)
    (crop,) = seen
    assert crop.shape == (236 + 60, 915 + 60, 3)  # 25 for each 1000 of the page's 1200
    around = crop.copy()
    around[30:-30, 30:-30] = 255
    assert (around == 255).all()
    alone = build_table(SAMPLES["gpt3"].objects)
    np.testing.assert_allclose(inner_borders(table), inner_borders(alone, x, y), atol=1e-6)
    seen.clear()
    TableExtractor(structure, page.detection, padding=3)(page.pixels)
    assert seen[0].shape == (242, 921, 3)


def test_the_image_of_a_table() -> None:
    sample, page = SAMPLES["gmft"], Page(333, 504).put("gmft", 0, 0)
    (table,) = TableExtractor(page.structure, None)(sample.file, sample.words)
    assert texts(table) == texts(build_table(sample.objects, sample.words))
    assert table.score == max(o.score for o in sample.objects if o.label == "table")
    (same,) = TableExtractor(lambda p, threshold: sample.objects, None, padding=0)(sample.file, sample.words)
    np.testing.assert_allclose(all_boxes(same), all_boxes(table), atol=1e-6)
    blank = np.full((40, 60, 3), 255, np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TableExtractor(lambda p, threshold: [], None)(blank) == []


def test_no_table_is_an_empty_list() -> None:
    def never(image: np.ndarray, threshold: float) -> list[Detection]:
        raise AssertionError("there is no crop")

    page = np.zeros((30, 40), np.uint8)
    assert TableExtractor(never, lambda p, threshold: [])(page, []) == []
    elsewhere = [Detection("table", 0.9, (40.0, 0.0, 60.0, 30.0)), Detection("table", 0.9, (-9.0, -9.0, 0.0, 5.0))]
    others = [Detection("figure", 0.9, (0.0, 0.0, 20.0, 20.0)), Detection("table", 0.9, (5.0, 5.0, 5.0, 20.0))]
    assert TableExtractor(never, lambda p, threshold: elsewhere + others)(page) == []


def test_a_box_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match=r"the box of a 'table' that detection found has x1 = nan"):
        places(at(0, 0, float("nan"), 5))


def test_a_table_without_rows_and_columns_is_left_out_with_a_warning() -> None:
    page = Page().put("gpt3", 40, 130)
    with pytest.warns(UserWarning, match=r"found at \(40, 130, 955, 366\) has no rows and no columns") as caught:
        assert TableExtractor(lambda p, threshold: [], page.detection)(page.pixels) == []
    assert caught[0].filename == __file__


def places(*found: Detection) -> list[Detection]:
    extractor = TableExtractor(lambda p, threshold: [], lambda p, threshold: list(found))
    return extractor.places(np.zeros((1000, 1000, 3), np.uint8))


def at(x0: float, y0: float, x1: float, y1: float, score: float = 0.9, label: str = "table") -> Detection:
    return Detection(label, score, (float(x0), float(y0), float(x1), float(y1)))


def test_boxes_that_overlap_are_one() -> None:
    big, inner = at(100, 100, 500, 500, 0.8), at(120, 120, 300, 300, 0.9)
    assert places(big, inner) == [big._replace(score=0.9)]
    assert places(inner._replace(score=0.7), big) == [big]
    twice = big._replace(label="table rotated", score=0.95)
    assert places(big, twice) == [twice]
    touching, halves = at(100, 480, 500, 900, 0.7), at(100, 440, 500, 900, 0.7)
    assert places(big, touching) == [big, touching]
    assert places(big, halves) == [at(100, 100, 500, 900, 0.8)]
    apart = at(320, 320, 480, 480, 0.95)
    assert places(big, inner, apart) == [inner, apart]  # the outer one is less sure than the two that it holds


def test_places_are_clipped_and_in_reading_order() -> None:
    left, right, below = at(-5, 110, 400, 300), at(500, 100, 1003, 280), at(100, 400, 300, 2000)
    assert places(below, right, left) == [at(0, 110, 400, 300), at(500, 100, 1000, 280), at(100, 400, 300, 1000)]


def test_two_hundred_tables() -> None:
    grid = [at(100 * (i % 10), 50 * (i // 10), 100 * (i % 10) + 90, 50 * (i // 10) + 40) for i in range(200)]

    def structure(image: np.ndarray, threshold: float) -> list[Detection]:
        y, x = image.shape[0] / 2, image.shape[1]
        rows = [at(0, 0, x, y, label="table row"), at(0, y, x, 2 * y, label="table row")]
        return [*rows, *(at(a * x, 0, (a + 0.5) * x, 2 * y, label="table column") for a in (0, 0.5))]

    page = np.full((1000, 1000, 3), 255, np.uint8)
    words = []
    for i, (x, y, _, _) in enumerate(d.box for d in grid):
        words += [Word(str(i), (x + a, y + b, x + a + 20, y + b + 10)) for a in (10, 60) for b in (5, 25)]
    tables = TableExtractor(structure, lambda p, threshold: grid, padding=0)(page, words)
    assert [table.cells[0].text for table in tables] == [str(i) for i in range(200)]
    extract = TableExtractor(structure, lambda p, threshold: grid[:40], padding=0)
    tracemalloc.start()  # which is slow: of a part of them
    extract(page, words[:160])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * page.nbytes


@pytest.mark.parametrize("size", [None, {"longest_edge": 120}])
def test_with_checkpoints(tmp_path: Path, size: dict[str, int] | None) -> None:
    """Random weights detect noise: what matters is that all of it goes through, and through which doors."""
    folders = {}
    for name, known in (("detection", ("table", "table rotated")), ("structure", LABELS)):
        config = TableTransformerForObjectDetection.config_class.from_dict(
            {
                "d_model": 16,
                "encoder_layers": 1,
                "decoder_layers": 1,
                "encoder_attention_heads": 2,
                "decoder_attention_heads": 2,
                "encoder_ffn_dim": 16,
                "decoder_ffn_dim": 16,
                "num_queries": 40,
                "use_timm_backbone": False,
                "backbone_config": {
                    "model_type": "resnet",
                    "layer_type": "basic",
                    "embedding_size": 4,
                    "hidden_sizes": [4, 4, 4, 8],
                    "depths": [1, 1, 1, 1],
                },
                "id2label": {str(i): label for i, label in enumerate(known)},
            }
        )
        folders[name] = zoo.save(TableTransformerForObjectDetection.from_source(Random(), config), tmp_path / name)
        processor = {"image_processor_type": "DetrImageProcessor", "size": {"longest_edge": 100}}
        (folders[name] / "preprocessor_config.json").write_text(json.dumps(processor))
    page = Page().put("gmft", 250, 700)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tables = extract_tables(page.pixels, page.words, **folders, threshold=0.05, size=size)
    assert all(isinstance(table, Table) and table.cells for table in tables)
    structure, detection = (zoo.load(folders[name]) for name in ("structure", "detection"))
    extractor = TableExtractor(structure, None, threshold=0.05, ocr="none")
    assert extractor.structure is structure
    (table,) = extractor(SAMPLES["gmft"].file)
    assert {cell.text for cell in table.cells} == {""}
    with pytest.raises(
        UnsupportedError, match="which detects table, table rotated, and not table row and table column"
    ):
        TableExtractor(detection, None)
    with pytest.raises(NotFoundError):
        TableExtractor(tmp_path / "none", None)


@pytest.mark.parametrize("spec", ["docling-layout-heron", "pp-doclayout-v2", "pp-doclayout-v3"])
def test_a_layout_model_finds_tables(spec: str, tmp_path: Path) -> None:
    """Of a model of a page's regions the tables are taken, however it spells that label."""
    from parity.checkpoints import build

    page, path = Page().put("gmft", 250, 700), build(spec, tmp_path) / "config.json"
    (first, *_) = zoo.load(tmp_path)(page.pixels, threshold=0.2)
    config = json.loads(path.read_text())  # in which a random model's favourite becomes the table
    swapped = {first.label: "Table", "Table": first.label}
    config["id2label"] = {i: swapped.get(label, label) for i, label in config["id2label"].items()}
    config["label2id"] = {label: int(i) for i, label in config["id2label"].items()}
    path.write_text(json.dumps(config))
    detect: Any = zoo.load(tmp_path)
    extractor = TableExtractor(page.structure, tmp_path, threshold=0.2)
    seen = detect(page.pixels, threshold=0.2)
    wanted = [one for one in seen if one.label == "Table"]
    assert wanted
    assert len(wanted) < len(seen) or spec == "pp-doclayout-v3"  # whose random weights know one label
    found = extractor.places(page.pixels)
    assert found
    assert {one.label for one in found} == {"table"}
    assert {one.score for one in found} <= {one.score for one in wanted}

    def regions(image: np.ndarray, **options: Any) -> list[Detection]:
        own = [one._replace(label="Table") for one in page.detection(image, **options)]
        return [*own, Detection("Text", 0.9, (100.0, 100.0, 600.0, 300.0))]

    (table,) = TableExtractor(page.structure, regions)(page.pixels, page.words)
    assert table == TableExtractor(page.structure, page.detection)(page.pixels, page.words)[0]


def test_draw() -> None:
    page = Page().put("gmft", 250, 700)
    tables = TableExtractor(page.structure, page.detection)(page.pixels)
    pixels = np.asarray(draw_tables(page.pixels, tables))
    assert pixels.shape == page.pixels.shape
    changed = (pixels != page.pixels).any(-1)
    assert 0 < changed.mean() < 0.2
    assert not changed[:600].any()
    header, body = tables[0].grid()[0][1], tables[0].grid()[3][1]
    for cell, colour in ((header, (0, 140, 0)), (body, (0, 90, 200))):
        x = round((cell.box[0] + cell.box[2]) / 2)
        column = pixels[round(cell.box[1]) - 1 : round(cell.box[3]) + 2, x]
        assert (column == colour).all(-1).any()
    # Between two columns there is one line, halfway between their words, and not one around each cell.
    left, right = tables[0].grid()[3][1], tables[0].grid()[3][2]
    y = round((body.box[1] + body.box[3]) / 2)
    between = changed[y, round(left.box[2]) - 3 : round(right.box[0]) + 4]
    assert np.diff(np.pad(between.astype(int), 1)).clip(0).sum() == 1
    np.testing.assert_array_equal(np.asarray(draw_tables(page.pixels, [])), page.pixels)


def test_what_is_refused() -> None:
    def none(image: np.ndarray, threshold: float) -> list[Detection]:
        return []

    for given, message in [
        ({"threshold": 2}, "threshold is 2, expected a number in 0"),
        ({"padding": -1}, "padding is -1, expected a number of pixels from 0"),
        ({"padding": 2.5}, r"padding is 2\.5"),
        ({"structure": 3}, "structure is of type int, expected a name, a folder or a detector"),
    ]:
        arguments: dict[str, Any] = {"structure": none, "detection": None, **given}
        with pytest.raises(InputError, match=message):
            TableExtractor(**arguments)
    extractor = TableExtractor(none, None)
    page = np.zeros((9, 9, 3), np.uint8)
    for words in (["a"], [("a", (0, 0, 1, 1))]):
        with pytest.raises(InputError, match=r"words\[0\] is of type"):
            extractor(page, words)
    with pytest.raises(NotFoundError, match=r"none\.png"):
        extractor("none.png")
    with pytest.raises(InputError, match="padding of 100000 is more than"):
        TableExtractor(none, None, padding=100_000)(page)
    assert TableCrop(page, np.eye(2, 3)).words([Word("a", (50.0, 50.0, 50.0, 50.0))]) == []


def test_how_checkpoints_are_loaded(monkeypatch):
    asked = []
    monkeypatch.setattr("zoo.tasks.load_task", lambda name, **options: asked.append((name, options)) or (lambda *_: []))
    readers = []
    monkeypatch.setattr("zoo.apps.tables.extract.load_reader", lambda *given: readers.append(given))
    TableExtractor("rows", "pages", reader="lines", device="torch:cpu", dtype="float64", local_files_only=True)
    how = {"device": "torch:cpu", "dtype": "float64", "local_files_only": True, "lock": None}
    assert asked == [
        ("rows", {"task": "detect", **how}),
        ("pages", {"task": "detect", **how}),
    ]
    assert readers == [("lines", Options(**how))]
    with pytest.raises(InputError, match="device is 'cuda', but no checkpoint is loaded by name"):
        TableExtractor(lambda *_: [], None, ocr="none", device="cuda")
