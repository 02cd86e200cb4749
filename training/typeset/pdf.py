"""This module reads a PDF's pages: pictures, links, letters, rules and fills, and from these the tables' borders.

A cell that is set as a link to `http://c/TABLE/ROW/LAST/COLUMN/LAST` says by itself where it came to lie; the
address `http://s/` marks a paragraph. Sizes are in pixels of the picture, y down.
"""

import ctypes
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from training.tables import Place
from training.typeset.marks import Box, Line, ink


class Letter(NamedTuple):
    text: str
    box: Box
    made: bool  # a space that the PDF has not, but that there must be


class Read(NamedTuple):
    """A page that was read.

    links: address and box; letters: in their order; across, along: rules (x0 y0 x1 y1), and edges of fills.
    """

    image: Image.Image
    links: list[tuple[str, Box]]
    letters: list[Letter]
    across: list[Box]
    along: list[Box]


def pages(path: Path, scales: list[float]) -> list[Read]:
    """Read the pages of a file, each at its scale (1 is 72 dpi); the last scale holds for those that follow."""
    import pypdfium2 as pdfium

    document = pdfium.PdfDocument(str(path))
    try:
        return [_page(document, i, scales[min(i, len(scales) - 1)]) for i in range(len(document))]
    finally:
        document.close()


def _page(document: Any, number: int, scale: float) -> Read:
    import pypdfium2.raw as raw

    page = document[number]
    height = page.get_height()
    image = page.render(scale=scale).to_pil().convert("L")

    def box(left: float, bottom: float, right: float, top: float) -> Box:
        return left * scale, (height - top) * scale, right * scale, (height - bottom) * scale

    links = []
    rect = raw.FS_RECTF()
    for i in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, i)
        if raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_LINK:
            action = raw.FPDFLink_GetAction(raw.FPDFAnnot_GetLink(annotation))
            size = raw.FPDFAction_GetURIPath(document, action, None, 0)
            if size and raw.FPDFAnnot_GetRect(annotation, rect):
                buffer = ctypes.create_string_buffer(size)
                raw.FPDFAction_GetURIPath(document, action, buffer, size)
                links.append((buffer.value.decode(), box(rect.left, rect.bottom, rect.right, rect.top)))
        raw.FPDFPage_CloseAnnot(annotation)
    letters = _letters(page, raw, box)
    across, along = _rules(page, raw, box, scale)
    page.close()
    return Read(image, links, letters, across, along)


def _letters(page: Any, raw: Any, box: Any) -> list[Letter]:
    text = page.get_textpage()
    out, loose, matrix, x, y = [], raw.FS_RECTF(), raw.FS_MATRIX(), ctypes.c_double(), ctypes.c_double()
    for i in range(raw.FPDFText_CountChars(text)):
        if not raw.FPDFText_GetLooseCharBox(text, i, loose):
            continue
        bottom, top = loose.bottom, loose.top
        if raw.FPDFText_GetCharOrigin(text, i, x, y) and raw.FPDFText_GetMatrix(text, i, matrix):
            size = raw.FPDFText_GetFontSize(text, i) * max(abs(matrix.d), abs(matrix.b))
            bottom, top = y.value - 0.27 * size, y.value + 0.95 * size  # fonts lie about their descenders
        made = raw.FPDFText_IsGenerated(text, i) == 1
        letter = chr(raw.FPDFText_GetUnicode(text, i))
        out.append(Letter(letter, box(loose.left, bottom, loose.right, top), made))
    text.close()
    return out


def _rules(page: Any, raw: Any, box: Any, scale: float) -> tuple[list[Box], list[Box]]:
    """Return thin paths, and the edges of filled ones that are not white, as rules."""
    across, along = [], []
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    for i in range(raw.FPDFPage_CountObjects(page)):
        one = raw.FPDFPage_GetObject(page, i)
        if raw.FPDFPageObj_GetType(one) != raw.FPDF_PAGEOBJ_PATH or not raw.FPDFPageObj_GetBounds(
            one, left, bottom, right, top
        ):
            continue
        x0, y0, x1, y1 = box(left.value, bottom.value, right.value, top.value)
        w, h = x1 - x0, y1 - y0
        if w > 4 * scale and h < 3.5 * scale:
            across.append((x0, y0, x1, y1))
        elif h > 4 * scale and w < 3.5 * scale:
            along.append((x0, y0, x1, y1))
        elif w > 4 * scale and h > 4 * scale:
            raw.FPDFPageObj_GetFillColor(one, red, green, blue, alpha)
            if min(red.value, green.value, blue.value) < 252:
                across += [(x0, y0, x1, y0), (x0, y1, x1, y1)]
                along += [(x0, y0, x0, y1), (x1, y0, x1, y1)]
    return across, along


def lines_in(letters: list[Letter], boxes: list[Box]) -> list[Line]:
    """Return a line for each box, from the top down, of the letters that have their middles in it."""
    out = []
    for x0, y0, x1, y1 in sorted(boxes, key=lambda b: b[1]):
        mine: list[Letter] = []
        for a in letters:
            mx, my = (a.box[0] + a.box[2]) / 2, (a.box[1] + a.box[3]) / 2
            if x0 - 0.5 <= mx <= x1 + 0.5 and y0 - 1 <= my <= y1 + 1 and a.text not in "\r\n":
                mine.append(a)
        while mine and (mine[-1].made or mine[-1].text == " "):
            mine.pop()
        while mine and (mine[0].made or mine[0].text == " "):
            mine.pop(0)
        if mine:
            out.append(line_of(mine))
    return out


def line_of(letters: list[Letter]) -> Line:
    boxes = np.array([a.box for a in letters])
    solid = boxes[[not a.made for a in letters]]
    x0, y0, y1 = float(solid[:, 0].min()), float(np.median(solid[:, 1])), float(np.median(solid[:, 3]))
    ends = np.maximum.accumulate(np.where([a.made for a in letters], -1, boxes[:, 2] - x0))
    return Line(
        "".join(a.text for a in letters), (x0, y0, float(solid[:, 2].max()), y1), [round(float(e), 1) for e in ends]
    )


def says(read: Read) -> list[Line]:
    """Return the lines of paragraphs, which are links to http://s/."""
    out = []
    for name, box in read.links:
        if name.startswith("http://s/"):
            out += lines_in(read.letters, [box])
    return out


def cells_of(read: Read) -> dict[int, list[tuple[Place, list[Line]]]]:
    """Return the places and lines of cells that have a text, by the number of their table."""
    boxes: dict[tuple[int, ...], list[Box]] = {}
    for name, box in read.links:
        if name.startswith("http://c/"):
            boxes.setdefault(tuple(map(int, name.removeprefix("http://c/").strip("/").split("/"))), []).append(box)
    out: dict[int, list[tuple[Place, list[Line]]]] = {}
    for (table, *place), found in boxes.items():
        out.setdefault(table, []).append((Place(*place), lines_in(read.letters, _joined(found))))
    return out


def said(lines: list[Line], wanted: str) -> list[Line]:
    """Replace what the PDF calls the letters by what was set; where the two do not agree, by unknown characters."""
    plain = [c for c in wanted if c not in " \x01\x02\x03"]
    if sum(c != " " for line in lines for c in line.text) != len(plain):
        return [line._replace(text="\ufffd" * len(line.text)) for line in lines]
    rest = iter(plain)
    return [line._replace(text="".join(c if c == " " else next(rest) for c in line.text)) for line in lines]


def covered(read: Read, tables: list[Box]) -> bool:
    """Tell if a table leaves the page, or lies over another one or over letters that are not its own."""
    for i, (x0, y0, x1, y1) in enumerate(tables):
        if x1 > read.image.width or y1 > read.image.height:
            return True
        if any(x0 < b[2] and b[0] < x1 and y0 < b[3] and b[1] < y1 for b in tables[:i]):
            return True
    own = [box for name, box in read.links if name.startswith("http://c/")]
    places = np.array([((a + c) / 2, (b + d) / 2) for _, (a, b, c, d), made in read.letters if not made]).reshape(-1, 2)
    if not len(places):
        return False
    within = np.zeros(len(places), bool)
    for x0, y0, x1, y1 in tables:
        within |= ((places > (x0, y0)) & (places < (x1, y1))).all(1)
    for x0, y0, x1, y1 in own:
        within &= ~((places > (x0 - 2, y0 - 2)) & (places < (x1 + 2, y1 + 2))).all(1)
    return int(within.sum()) > 4


def _joined(boxes: list[Box]) -> list[Box]:
    """Join boxes to one for each line, since links are broken at raised letters too."""
    out: list[Box] = []
    for b in sorted(boxes, key=lambda b: (b[1] + b[3]) / 2):
        if out and min(out[-1][3], b[3]) - max(out[-1][1], b[1]) > 0.3 * min(b[3] - b[1], out[-1][3] - out[-1][1]):
            a = out[-1]
            out[-1] = min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
        else:
            out.append(b)
    return out


def borders(
    cells: list[tuple[Place, list[Line]]], rows: int, columns: int, read: Read
) -> tuple[list[float], list[float]] | None:
    """Return the borders of a table from its texts and the rules between them, or None where texts overlap."""
    extents = [(p, ink(line.box)) for p, lines in cells for line in lines]
    if not extents:
        return None
    reach = np.array([b for _, b in extents])
    whole = (*reach[:, :2].min(0).tolist(), *reach[:, 2:].max(0).tolist())
    high = float(np.median(reach[:, 3] - reach[:, 1]))
    across = _near(read.across, whole, 1, 1.4 * high)
    along = _near(read.along, whole, 0, high)
    X = _between(
        [(p.column, p.last_column, b[0], b[2]) for p, b in extents], columns, [(r[0] + r[2]) / 2 for r in along]
    )
    Y = _between([(p.row, p.last_row, b[1], b[3]) for p, b in extents], rows, [(r[1] + r[3]) / 2 for r in across])
    if X is None or Y is None:
        return None
    for rule in across:
        X[0], X[-1] = min(X[0], rule[0]), max(X[-1], rule[2])
        Y[0], Y[-1] = min(Y[0], (rule[1] + rule[3]) / 2), max(Y[-1], (rule[1] + rule[3]) / 2)
    for rule in along:
        X[0], X[-1] = min(X[0], (rule[0] + rule[2]) / 2), max(X[-1], (rule[0] + rule[2]) / 2)
        Y[0], Y[-1] = min(Y[0], rule[1]), max(Y[-1], rule[3])
    return X, Y


def _near(rules: list[Box], whole: tuple[float, ...], axis: int, reach: float) -> list[Box]:
    """Return the rules that lie among a table's texts, or within `reach` of them, and do not go far beyond."""
    x0, y0, x1, y1 = whole[0] - 2 * reach, whole[1] - reach, whole[2] + 2 * reach, whole[3] + reach
    out = []
    for r in rules:
        if (
            axis == 1
            and y0 <= r[1]
            and r[3] <= y1
            and r[0] < whole[2]
            and r[2] > whole[0]
            and r[2] - r[0] < 1.3 * (x1 - x0)
        ):
            out.append(r)
        if (
            axis == 0
            and x0 <= r[0]
            and r[2] <= x1
            and r[1] < whole[3]
            and r[3] > whole[1]
            and r[3] - r[1] < 1.1 * (y1 - y0)
        ):
            out.append(r)
    return out


def _between(extents: list[tuple[int, int, float, float]], count: int, rules: list[float]) -> list[float] | None:
    """Return count + 1 borders, each between the texts of neighbours, at a rule where one is there."""
    out = [min(e[2] for e in extents)]
    for i in range(1, count):
        before = [e[3] for e in extents if e[1] == i - 1]
        after = [e[2] for e in extents if e[0] == i]
        low = max(before, default=out[-1] + 2)
        high = min(after, default=low + 6)
        if low > high + 3:
            return None
        drawn = [r for r in rules if low - 1.5 <= r <= high + 1.5]
        at = float(np.median(drawn)) if drawn else (low + high) / 2
        if at <= out[-1] + 1:
            return None
        out.append(at)
    last = max(e[3] for e in extents)
    return [*out, last] if last > out[-1] + 1 else None
