"""TableStructure: what SLANet's tokens say of a table, whatever it writes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import zoo
from zoo.apps.tables import TableExtractor
from zoo.checkpoint.paddle_table import TABLE_TOKENS
from zoo.errors import InputError, UnsupportedError
from zoo.tasks.table_tokens import (
    Token,
    borders_of_ink,
    borders_of_places,
    find_parts,
    place_cells,
    read_tokens,
)

ROW, SPAN = ["<tr>", *["<td></td>"] * 3, "</tr>"], ["<td", ' colspan="2"', ">", "</td>"]
# Two rows of a header, of which the first has a cell over two rows and one over two columns, and two rows.
TABLE = ["<thead>", "<tr>", "<td", ' rowspan="2"', ">", "</td>", *SPAN, "</tr>", "<tr>", *["<td></td>"] * 2, "</tr>"]
TABLE += ["</thead>", "<tbody>", *ROW, *ROW, "</tbody>"]


def tokens_of(texts, score=0.75):
    return [Token(text, score, step) for step, text in enumerate(texts)]


def probabilities_of(texts):
    """(T, V): each token likely, and the start, and the end, as a model writes them."""
    found = np.full((len(texts) + 1, len(TABLE_TOKENS)), 0.005, np.float32)
    for row, text in zip(found, [*texts, "eos"], strict=True):
        row[TABLE_TOKENS.index(text)] = 0.755
    return found


def places_of(texts):
    """(T, 4): the texts of TABLE's cells in columns of 100 and rows of 20 pixels, 10 and 4 pixels from its borders."""
    places = np.zeros((len(texts), 4))
    for cell in place_cells(tokens_of(texts)):
        ends = cell.column + cell.column_span, cell.row + cell.row_span
        places[cell.step] = 100 * cell.column + 10, 20 * cell.row + 4, 100 * ends[0] - 10, 20 * ends[1] - 4
    return places


def test_cells_are_where_html_has_them():
    cells = [cell[:5] for cell in place_cells(tokens_of(TABLE))]
    head = [(0, 0, 2, 1, True), (0, 1, 1, 2, True), (1, 1, 1, 1, True), (1, 2, 1, 1, True)]
    assert cells == head + [(r, c, 1, 1, False) for r in (2, 3) for c in range(3)]


def test_the_end_and_the_start_are_no_tokens():
    tokens, is_whole = read_tokens(probabilities_of(["sos", *TABLE]))
    assert is_whole
    assert [token.text for token in tokens] == TABLE
    assert tokens[0].step == 1
    tokens, is_whole = read_tokens(probabilities_of(TABLE)[:-1])
    assert not is_whole
    assert len(tokens) == len(TABLE)


def test_borders_lie_between_places():
    cells = place_cells(tokens_of(TABLE))
    rows, columns = borders_of_places(cells, places_of(TABLE))
    np.testing.assert_allclose(columns, [10, 100, 200, 290])
    np.testing.assert_allclose(rows[1:], [20, 40, 60, 76])  # nothing but cells over others stands in the first row
    parts = find_parts(cells, rows, columns)
    assert [one.label for one in parts].count("table row") == 4
    assert [one.label for one in parts].count("table column") == 3
    (header,) = (one for one in parts if one.label == "table column header")
    np.testing.assert_allclose(header.box, (10, rows[0], 290, 40))
    spans = [one.box for one in parts if one.label == "table spanning cell"]
    np.testing.assert_allclose(spans, [(10, rows[0], 100, 40), (100, rows[0], 290, 20)])
    assert {one.score for one in parts} == {0.75}


def test_borders_lie_in_gaps_of_ink():
    """Without places; a rule across the table is no row."""
    pixels = np.full((90, 320, 3), 2.0, np.float32)
    for x0, y0, _, y1 in places_of(TABLE)[places_of(TABLE).any(1)].astype(int):
        middle = (y0 + y1) // 2 + 5
        pixels[middle - 3 : middle + 3, x0 + 10 : x0 + 40] = -1.5
    pixels[64, :] = -1.5
    rows, columns = borders_of_ink(place_cells(tokens_of(TABLE)), pixels)
    np.testing.assert_allclose(columns, [20, 85, 185, 250], atol=2)
    np.testing.assert_allclose(rows[1:4], [25, 45, 64.5], atol=6)
    assert len(rows) == 5
    blank = borders_of_ink(place_cells(tokens_of(TABLE)), np.zeros((40, 30, 3), np.float32))
    np.testing.assert_allclose(blank[0], [0, 10, 20, 30, 40])
    np.testing.assert_allclose(blank[1], [0, 10, 20, 30])


def test_whatever_is_written_is_a_table(rng):
    """Each position of the cells that random tokens say belongs to one cell, and borders are in order."""
    for _ in range(300):
        texts = [TABLE_TOKENS[i] for i in rng.integers(1, len(TABLE_TOKENS) - 1, rng.integers(0, 60))]
        cells = place_cells(tokens_of(texts))
        assert len(cells) == sum(text in ("<td", "<td></td>") for text in texts)
        if not cells:
            continue
        found = [
            (cell.row + y, cell.column + x)
            for cell in cells
            for y, x in itertools.product(range(cell.row_span), range(cell.column_span))
        ]
        assert len(found) == len(set(found))
        for borders in borders_of_places(cells, rng.uniform(0, 100, (60, 4))):
            assert np.isfinite(borders).all()
            assert (np.diff(borders) >= 0).all()
        find_parts(cells, *borders_of_ink(cells, rng.normal(size=(20, 30, 3))))


@pytest.fixture
def structure(tmp_path):
    pytest.importorskip("torch")
    from parity.checkpoints import build

    return zoo.load(build("slanet", tmp_path))


def write(monkeypatch, structure, texts, places=None):
    """Make a model write this table for each image."""
    out = probabilities_of(texts)[None], None if places is None else np.concatenate([places, [[0] * 4]])[None]

    def run(model, pixels, *_, **__):
        return type("Output", (), {"last_hidden_state": out[0], "loc_preds": out[1]})

    monkeypatch.setattr(structure, "runner", run)


def test_a_task_gives_boxes_in_pixels_of_the_image(monkeypatch, structure, rng):
    write(monkeypatch, structure, TABLE, places_of(TABLE) / (300, 80, 300, 80))
    found = structure(rng.integers(0, 256, (160, 600, 3), np.uint8))
    assert found.labels == structure.labels
    assert found[0].label == "table"
    np.testing.assert_allclose(found[0].box[2:], (580, 152), atol=1e-3)
    assert not structure(np.zeros((160, 600, 3), np.uint8), threshold=0.9)
    with pytest.raises(InputError, match="rule is 'argmax', and a model that writes tokens has only 'score'"):
        structure(np.zeros((160, 600, 3), np.uint8), rule="argmax")
    write(monkeypatch, structure, TABLE)
    assert len(structure(rng.integers(0, 256, (160, 600, 3), np.uint8))) == len(found)


def test_values_that_are_not_finite(monkeypatch, structure):
    for where in (0, 1):
        write(monkeypatch, structure, TABLE, places_of(TABLE) * (np.nan if where else 1))
        if not where:
            monkeypatch.setattr("zoo.tasks.table_structure.floats", lambda x: np.asarray(x) * np.nan)
        with pytest.raises(InputError, match="of the tokens are not all finite"):
            structure(np.zeros((160, 600, 3), np.uint8))
        monkeypatch.undo()


def test_other_tokens_are_refused(tmp_path):
    pytest.importorskip("torch")
    from parity.checkpoints import build

    config = build("slanet", tmp_path) / "config.json"
    config.write_text(config.read_text().replace('"model_type"', '"out_channels": 30, "model_type"'))
    with pytest.raises(UnsupportedError, match="out_channels = 30 is not implemented, expected the 50 tokens"):
        zoo.load(tmp_path)


def test_a_table_without_an_end_is_said(structure):
    with pytest.warns(UserWarning, match="has no end after 6 tokens: its last rows may be missing"):
        structure(np.zeros((40, 60, 3), np.uint8), threshold=0.0)


def test_it_is_the_structure_of_an_extractor(monkeypatch, structure):
    from PIL import Image, ImageDraw

    page = Image.new("RGB", (340, 120), "white")
    texts = [["Name", "A", "B"], ["one", "1", "2"], ["two", "3", "4"]]
    places = []
    for (y, row), x in itertools.product(enumerate(texts), range(3)):
        place = 20 + 100 * x, 20 + 30 * y
        ImageDraw.Draw(page).text(place, row[x], fill="black")
        places.append((*place, place[0] + 30, place[1] + 12))
    written = ["<thead>", *ROW, "</thead>", "<tbody>", *ROW, *ROW, "</tbody>"]
    at = np.zeros((len(written), 4))
    at[[i for i, text in enumerate(written) if text == "<td></td>"]] = places
    write(monkeypatch, structure, written, at / (340, 120, 340, 120))
    extract = TableExtractor(structure, None, ocr="none", padding=0)
    (table,) = extract(np.asarray(page))
    assert table.shape == (3, 3)
    assert table.header_rows == 1
