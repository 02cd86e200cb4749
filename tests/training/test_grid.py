"""Tests of the split network's truth, targets and export, and of how real tables are found in papers and reports."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="needs torch, which trains")

import torch
from safetensors.torch import save_file

from training.grid import filings, journals, targets
from training.grid.examples import Source, draw, window
from training.grid.export import tensors
from training.grid.matching import WRONG, placed
from training.grid.network import Size, Split
from training.grid.pack import Packs, png, write
from training.grid.recipe import hits, mean_over, true_cells
from training.grid.split import SplitConfig, SplitModel
from training.grid.truth import Layout
from zoo.apps.documents import Word
from zoo.apps.tables import Table
from zoo.weights.files import open_weights


def regular(rows: int, columns: int, spans: dict[tuple[int, int], tuple[int, int]] | None = None) -> Layout:
    """A layout of texts of 60 x 12 pixels, 100 and 20 pixels apart; spans: their sizes by their first position."""
    spans, taken, cells = spans or {}, set(), []
    for r, c in itertools.product(range(rows), range(columns)):
        if (r, c) in taken:
            continue
        high, wide = spans.get((r, c), (1, 1))
        taken |= {(r + i, c + j) for i in range(high) for j in range(wide)}
        x, y = 10 + 100 * c, 10 + 20 * r
        box = [[x, y, x + 60 + 100 * (wide - 1), y + 12]]
        cells.append((r, r + high - 1, c, c + wide - 1, np.array(box, float)))
    return Layout(rows, columns, cells, heads=1)


def test_bands_are_the_gaps_between_texts_and_spanning_cells_have_no_say() -> None:
    layout = regular(3, 3, {(0, 1): (1, 2)})
    assert layout.bands(1).tolist() == [[22, 30], [42, 50]]
    assert layout.bands(0).tolist() == [[70, 110], [170, 210]]
    overlapping = Layout(2, 1, [(0, 0, 0, 0, np.array([[0, 0, 9, 12.0]])), (1, 1, 0, 0, np.array([[0, 11, 9, 20.0]]))])
    ((low, high),) = overlapping.bands(1)
    assert low < 11.5 < high
    assert high - low < 2


def test_rows_without_a_text_have_the_borders_that_are_drawn() -> None:
    layout = regular(4, 2)
    cells = [cell for cell in layout.cells if cell[0] != 2]
    drawn = Layout(4, 2, cells, X=np.array([0.0, 100, 200]), Y=np.array([0.0, 26, 46, 66, 90]))
    first, second, third = drawn.bands(1).tolist()
    assert first == [22, 30]
    assert second[0] == 42
    assert second[0] < 46 < second[1] <= third[0] < 66 < third[1] == 70


@pytest.mark.parametrize("spans", [{}, {(0, 1): (1, 2)}, {(1, 0): (2, 1)}, {(0, 0): (1, 4), (2, 2): (2, 2)}])
def test_the_grid_is_decoded_from_its_own_targets(spans: dict[tuple[int, int], tuple[int, int]]) -> None:
    layout = regular(5, 4, spans)
    H, W = 128, 432
    out = {}
    for axis, name in ((1, "rows"), (0, "columns")):
        out[name] = 20 * targets.lines(layout, axis, (H, W)[1 - axis]).targets - 10
    for axis, name, shape in ((1, "row_gaps", (H // 2, W // 8)), (0, "column_gaps", (H // 8, W // 2))):
        gaps = np.full(shape, 10.0)
        found = targets.edges(layout, axis, shape, np.random.default_rng(0))
        for (y0, y1, x0, x1), apart in zip(found.places.tolist(), found.apart.tolist(), strict=True):
            gaps[y0:y1, x0:x1] = 10 if apart else -10
        out[name] = gaps
    grid = targets.decode(out)
    assert hits(grid.rows, layout.bands(1), near=0) == len(grid.rows) == 4
    assert hits(grid.columns, layout.bands(0), near=0) == len(grid.columns) == 3
    assert grid.cells == true_cells(layout)
    assert grid.heads == 1


def test_means_over_parts_of_a_map_are_those_of_numpy() -> None:
    grid = np.random.default_rng(0).standard_normal((7, 9)).astype(np.float32)
    places = np.array([[0, 7, 0, 9], [2, 3, 4, 5], [1, 6, 3, 8]])
    wanted = [grid[a:b, c:d].mean() for a, b, c, d in places.tolist()]
    np.testing.assert_allclose(targets.means(grid, places), wanted, rtol=1e-5)
    np.testing.assert_allclose(mean_over(torch.from_numpy(grid), torch.from_numpy(places)), wanted, rtol=1e-5)


def test_a_part_of_a_large_table_is_a_table() -> None:
    layout = regular(40, 12, {(0, 2): (1, 4), (5, 0): (3, 1)})
    for seed in range(20):
        part, sides, box = window(layout, random.Random(seed), 120.0)
        assert part.rows < 40
        assert (part.owners() >= 0).all()
        assert len(part.bands(1)) == part.rows - 1
        low, high = (10 if box[1] is None else box[1]), (900 if box[3] is None else box[3])
        assert all((boxes[:, 1] >= low).all() and (boxes[:, 3] <= high).all() for *_, boxes in part.cells)
        assert sides[1] == (box[1] is not None)


def test_examples_keep_their_texts_under_their_boxes() -> None:
    layout = regular(6, 4)
    image = Image.new("L", (430, 150), 255)
    for *_, boxes in layout.cells:
        for box in boxes.tolist():
            image.paste(0, (int(box[0]), int(box[1]), int(box[2]), int(box[3])))
    for seed in range(10):
        example = draw(image, layout, random.Random(seed))
        grey, bands = example.pixels.astype(float), example.layout.bands(1).mean(1).astype(int)
        paper = np.median(grey[bands])
        for *_, boxes in example.layout.cells:
            for x0, y0, x1, y1 in boxes.tolist():
                assert abs(grey[int(y0 + y1) // 2, int(x0 + x1) // 2] - paper) > 40


def test_the_network_in_zoo_computes_what_torch_does(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = Size(stem=8, wide=16, lines=32, blocks=3, layers=2, heads=2)
    model = Split(sizes).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr]
    state = {k: v.half().float() if v.is_floating_point() else v for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    made = tensors({f"model.{k}": v for k, v in state.items()})
    save_file({k: v.float() for k, v in made.items()}, tmp_path / "model.safetensors")
    ours = SplitModel.from_source(open_weights(tmp_path / "model.safetensors"), SplitConfig(**sizes._asdict()))
    pixels = np.random.default_rng(0).uniform(-1, 1, (2, 48, 112, 1)).astype(np.float32)
    with torch.no_grad():
        wanted = model(torch.from_numpy(pixels.transpose(0, 3, 1, 2)))
    found = ours(pixels)._asdict()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value.numpy(), atol=1e-5, err_msg=name)


def test_packs_are_read_one_table_at_a_time(tmp_path: Path) -> None:
    sources = [Source(png(Image.new("L", (20 + n, 20))), regular(2 + n, 2), str(n)) for n in range(5)]
    write(tmp_path / "one" / "00000.pack", sources[:3])
    write(tmp_path / "one" / "00001.pack", sources[3:])
    packs = Packs(tmp_path)
    assert len(packs) == 5
    assert [source.name for source in packs.all()] == list("01234")
    assert packs.read("one", 4).layout.rows == 6
    assert {packs.draw(random.Random(n)).name for n in range(60)} == set("01234")


HTML = """<table><thead><tr><th rowspan="2">Drug</th><th colspan="2">Dose, mg</th></tr>
<tr><th>low</th><th>high</th></tr></thead>
<tbody><tr><td>Aspirin with water</td><td>10.5</td><td>20.5</td></tr><tr><td>Ibuprofen</td><td>10.5</td>
<td>40</td></tr></tbody></table>"""


def page() -> list[Word]:
    """A page with that table between lines of prose, some of whose words are the table's."""
    lines = [(100, "Doses of Aspirin with water were low at first, as in Table 1, and 40 later on.")]
    lines += [(300, "Ibuprofen was given with water, too, when patients asked for it, at 20.5 mg.")]
    words, at = [], []
    for y, text in lines:
        for n, one in enumerate(text.split()):
            at.append((one, 40 + 45 * n, y))
    at += [("Drug", 100, 150), ("Dose,", 300, 140), ("mg", 340, 140), ("low", 300, 160), ("high", 400, 160)]
    at += [("Aspirin", 100, 180), ("with", 150, 180), ("10.5", 300, 180), ("20.5", 400, 180), ("water", 100, 195)]
    at += [("Ibuprofen", 100, 215), ("10.5", 300, 215), ("40", 400, 215)]
    for text, x, y in sorted(at, key=lambda one: one[2]):
        words.append(Word(text, (x, y, x + 7 * len(text), y + 10)))
    return words


def test_words_of_a_paper_go_to_the_cells_of_its_xml() -> None:
    table, words = Table.from_html(HTML), page()
    at, wrong = placed(words, table)
    assert wrong == 0
    texts = [" ".join(w.text for w, k in zip(words, at, strict=True) if k == i) for i in range(len(table.cells))]
    assert texts == [cell.text for cell in table.cells]


def test_a_table_whose_numbers_are_others_is_not_found() -> None:
    other = Table.from_html(HTML.replace("10.5", "11.7").replace("40", "51"))
    assert placed(page(), other)[1] > WRONG


def test_xml_of_papers_becomes_tables_without_blank_rows() -> None:
    xml = f"""<article><table-wrap><label>Table 1</label><caption><p>Doses</p></caption>{HTML}</table-wrap>
<table-wrap><graphic/></table-wrap></article>""".replace("<tbody>", "<tbody><tr><td/><td/><td/></tr>")
    ((label, table),) = journals.tables_of(xml.encode())
    assert label == "Table 1"
    assert table.shape == (4, 3)
    assert table.header_rows == 2


def test_signs_in_reports_belong_to_their_numbers() -> None:
    def cell(r: int, c: int, last: int, text: str, x: float) -> list[object]:
        return [r, r, c, last, text, [[x, 20.0 * r, x + 7 * len(text), 20.0 * r + 14]]]

    cells = [cell(0, 2, 8, "Year ended", 120), cell(1, 2, 4, "2024", 120), cell(1, 6, 8, "2023", 220)]
    for r, name in ((2, "Sales"), (3, "Costs")):
        cells += [cell(r, 0, 0, name, 0), cell(r, 2, 2, "$", 110), cell(r, 3, 3, "1,234", 125)]
        cells += [cell(r, 6, 6, "$", 210), cell(r, 7, 7, "(99", 225), cell(r, 8, 8, ")", 247)]
    layout = filings.layout_of(cells)
    assert layout is not None
    assert (layout.rows, layout.columns) == (4, 3)
    assert filings.fits(layout)
    places = sorted(cell[:4] for cell in layout.cells)
    assert places[0] == (0, 0, 1, 2)
    assert places[1:3] == [(1, 1, 1, 1), (1, 1, 2, 2)]
