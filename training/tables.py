"""Pictures of tables with the boxes of their parts, marked up as in PubTables-1M (https://arxiv.org/abs/2110.00061).

Columns and rows tile the table; where no rule is drawn, a border lies midway between the texts on its two sides.
"""

import math
import random
import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from training import fonts, text
from training.lines import colours, degrade

LABELS = ("table", "table column", "table row", "table column header", "table projected row header")
LABELS += ("table spanning cell",)
TABLE, COLUMN, ROW, HEADER, PROJECTED, SPAN = range(6)
STYLES = "none", "horizontal", "booktabs", "booktabs", "grid", "grid", "vertical", "zebra", "headrule"
HELD_OUT_STYLES = "frame", "dotted", "double"  # layouts that training never shows
_BOLD, _SLANTED = re.compile("Bold|Bd|Demi"), re.compile("Ita|Obl")
Box = tuple[float, float, float, float]


class Place(NamedTuple):
    """The cells that one text takes, first and last included."""

    row: int
    last_row: int
    column: int
    last_column: int


@dataclass
class Cell:
    place: Place
    lines: list[str]
    font: str
    align: str
    boxes: list[Box] = field(default_factory=list)  # of the lines, before the picture was turned


@dataclass
class Table:
    """image: RGB; boxes: (n, 5) float32, each a label's number and x0 y0 x1 y1 in pixels."""

    image: Image.Image
    boxes: np.ndarray
    cells: list[Cell]
    heads: int
    rows: int
    columns: int
    font_size: int
    degrees: float  # that the picture was turned by

    def words(self, cell: Cell) -> list[tuple[str, Box]]:
        """The words of a cell with their boxes in pixels."""
        words, boxes = [], []
        for line, (x, y0, _, y1) in zip(cell.lines, cell.boxes, strict=True):
            begin = 0
            for word in line.split(" "):
                before, within = (fonts.width(cell.font, self.font_size, line[:n]) for n in (begin, begin + len(word)))
                if word:
                    words.append(word)
                    boxes.append((x + before, y0, x + within, y1))
                begin += len(word) + 1
        turned = _turned(np.array(boxes).reshape(-1, 4), self.degrees, self.image)
        return [(word, (a, b, c, d)) for word, (a, b, c, d) in zip(words, turned.tolist(), strict=True)]


Colours = tuple[tuple[int, ...], tuple[int, ...]]


def table(
    rng: random.Random, columns: int = 12, rows: int = 25, held_out: bool = False, on_page: Colours | None = None
) -> Table:
    """A table of 2 to `columns` x 2 to `rows`: cut out of a page, or to be put `on_page` of this paper and ink."""
    return Drawing(rng, rng.randint(2, columns), rng.randint(2, rows), held_out, on_page).draw()


def square(table: Table, side: int, rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
    """As a detector sees it: (side, side) uint8 grey; boxes (n, 5) with x0 y0 x1 y1 as parts of the picture."""
    image, boxes = table.image, table.boxes.copy()
    boxes[:, 1::2] /= image.width
    boxes[:, 2::2] /= image.height
    boxes[:, 1:] = boxes[:, 1:].clip(0, 1)
    image = degrade(image, rng).resize((side, side), Image.Resampling.BILINEAR).convert("L")
    return np.asarray(image), boxes


class Drawing:
    """A table before it is drawn: X and Y are where its columns and rows begin and end."""

    def __init__(self, rng: random.Random, columns: int, rows: int, held_out: bool, on_page: Colours | None):
        self.on_page = on_page
        self.rng, self.columns, self.rows = rng, columns, rows
        self.heads = min(rng.choice([0, 0, 0, 1, 1, 1, 1, 2, 2, 3]), rows - 1)
        self.style = rng.choice(HELD_OUT_STYLES if held_out and rng.random() < 0.5 else STYLES)
        self.path, self.bold = _plain_and_bold(rng, held_out)
        # Without a cue nobody could tell a heading from a row: a rule among as many others is none, nor is a bold face
        # that the family lacks.
        ruled = self.style in ("booktabs", "headrule", "frame")
        able = ["fill"] + ["rule"] * (self.style not in ("grid", "horizontal")) + ["bold"] * (self.bold != self.path)
        cues = ["rule"] if ruled else rng.sample(able, min(len(able), rng.choice([1, 1, 2])))
        more = [c for c in able if c not in cues and c != "rule" and rng.random() < 0.3]
        self.cues = cues + more if self.heads else []
        self.size = rng.randint(9, 16)
        ascent, descent = fonts.load(self.path, self.size).getmetrics()
        self.line_height = ascent + descent
        self.paper, self.ink = on_page or colours(rng)
        self.pad_x = self.size * rng.uniform(0.25, 1.6)
        self.pad_y = self.size * rng.choice([0.06, 0.1, 0.2, 0.3, 0.5, 0.8]) * rng.uniform(0.7, 1.3)
        self.spans: list[Place] = []
        self.projected: list[int] = []
        self._span()
        self.owner = {
            (r, c): s
            for s in self.spans
            for r in range(s.row, s.last_row + 1)
            for c in range(s.column, s.last_column + 1)
        }
        self.cells = self._fill()
        self.X, self.Y = self._measure()

    def _span(self) -> None:
        """Groups of columns in upper header rows; then one of: projected rows, cells over rows, a cell over columns."""
        rng, heads, columns, body = self.rng, self.heads, self.columns, range(self.heads, self.rows)
        for r in range(heads - 1):
            c = rng.choice([0, 1])
            while c < columns:
                n = min(rng.randint(1, 4), columns - c)
                if n > 1 and rng.random() < 0.8:
                    self.spans.append(Place(r, r, c, c + n - 1))
                c += n
        if heads > 1 and rng.random() < 0.5 and all(s.column for s in self.spans):
            self.spans.append(Place(0, heads - 1, 0, 0))
        k = rng.random()
        if len(body) > 3 and k < 0.3:
            self.projected = rng.sample(body, rng.randint(1, max(1, len(body) // 4)))
        elif len(body) > 3 and k < 0.5:
            r = heads
            while r < self.rows:
                n = min(rng.randint(1, 4), self.rows - r)
                if n > 1:
                    self.spans.append(Place(r, r + n - 1, 0, 0))
                r += n
        elif columns > 2 and k < 0.62:
            for r in rng.sample(body, min(len(body), rng.randint(1, 2))):
                c = rng.randint(1, columns - 2)
                self.spans.append(Place(r, r, c, rng.randint(c + 1, columns - 1)))

    def _fill(self) -> dict[tuple[int, int], Cell]:
        rng, columns = self.rng, self.columns
        kinds = [rng.choice(["words", "words", "code", "date"] if c == 0 else list(text.KINDS)) for c in range(columns)]
        if rng.random() < 0.4:
            kinds[1:] = [rng.choice(["number", "number", "percent", "money", "measure"])] * (columns - 1)
        aligns = [rng.choice("lllrc" if k in ("words", "code", "date") else "rrrcl") for k in kinds]
        if rng.random() < 0.3:
            aligns[1:] = rng.choice("lrc") * (columns - 1)
        blank, folded = rng.choice([0, 0, 0, 0.05, 0.15, 0.3]), rng.choice([0, 0, 0, 0.1, 0.4])
        if self.style in ("none", "headrule", "zebra"):
            folded *= self.pad_y > 0.2 * self.size  # else no eye could tell a second line from a second row
        cells: dict[tuple[int, int], Cell] = {}
        for r in range(self.rows):
            head, projected = r < self.heads, r in self.projected
            never = rng.randrange(1, columns)  # a row with its first text alone would be a projected one
            for c in range(columns):
                place = self.owner.get((r, c), Place(r, r, c, c))
                if projected:
                    place = Place(r, r, 0, columns - 1)
                if (r, c) != (place.row, place.column):
                    continue
                if head:
                    string = text.words(rng, 1, 2) if rng.random() < 0.8 else text.date(rng)
                elif projected:
                    string = text.words(rng, 1, 5)
                elif rng.random() < (blank if c else blank * 0.3) and c != never and r > 0:
                    string = ""
                else:
                    string = rng.choice(["-", "–", "n/a"]) if rng.random() < 0.02 else text.KINDS[kinds[c]](rng)
                strong = ("bold" in self.cues and head) or (projected and rng.random() < 0.6)
                align = aligns[c] if not head or rng.random() < 0.6 else "c"
                if place.last_column > c:
                    align = rng.choice("lllc" if projected else "cccl")
                string = "".join(ch for ch in string if fonts.draws(self.path, ch)).strip()
                lines = [string] if string else []
                if " " in string and rng.random() < (0.25 if head else folded):
                    parts = string.split()
                    lines = [" ".join(parts[: len(parts) // 2]), " ".join(parts[len(parts) // 2 :])]
                cells[r, c] = Cell(place, lines, self.bold if strong else self.path, align)
        return cells

    def _width(self, cell: Cell) -> float:
        return max((fonts.width(cell.font, self.size, line) for line in cell.lines), default=0.0)

    def _measure(self) -> tuple[list[float], list[float]]:
        """The borders of columns and rows, from 0."""
        rng, size = self.rng, self.size
        widths, heights = [size * 1.2] * self.columns, [float(self.line_height)] * self.rows
        for (r, c), cell in self.cells.items():
            if cell.place.last_column == c:
                widths[c] = max(widths[c], self._width(cell))
            if cell.place.last_row == r:
                heights[r] = max(heights[r], self.line_height * len(cell.lines))
        if rng.random() < 0.2:
            widths = [max(widths)] * self.columns
        for cell in self.cells.values():
            p = cell.place
            has = sum(widths[p.column : p.last_column + 1]) + 2 * self.pad_x * (p.last_column - p.column)
            widths[p.last_column] += max(0, self._width(cell) - has)
        air = rng.choice([0, 0, 0, 0.3, 0.8]) * size * 3
        widths = [w + 2 * self.pad_x + air * rng.random() for w in widths]
        heights = [h + 2 * self.pad_y for h in heights]
        if rng.random() < 0.1:
            heights = [max(heights)] * self.rows
        if rng.random() < 0.15:
            every = rng.randint(2, 5)
            for r in range(self.heads, self.rows):
                heights[r] += size * 0.6 * ((r - self.heads) % every == every - 1)
        return [sum(widths[:c]) for c in range(self.columns + 1)], [sum(heights[:r]) for r in range(self.rows + 1)]

    def draw(self) -> Table:
        rng, whole = self.rng, self.on_page is None
        # zoo.apps.tables cuts a table out with 2.5 % of the page's long side; a detector's box is not exact.
        page = max(self.X[-1], self.Y[-1]) * rng.uniform(1, 2.2)
        shares = [rng.choice([0.025, 0.025, rng.uniform(0, 0.06)]) for _ in range(4)]
        around = [max(1.0, page * share + rng.uniform(-0.3, 0.8) * self.size) for share in shares]
        if not whole:
            around = [4.0] * 4
        left, top, right, bottom = around
        X, Y = [left + x for x in self.X], [top + y for y in self.Y]
        image = Image.new("RGB", (round(X[-1] + right), round(Y[-1] + bottom)), self.paper)
        pen = ImageDraw.Draw(image)
        light_on_dark = self._ground(pen, X, Y)
        self._rules(pen, X, Y)
        for cell in self.cells.values():
            self._write(pen, cell, X, Y, self.paper if light_on_dark and cell.place.row < self.heads else self.ink)
        font = fonts.load(self.path, self.size)
        beside = "".join(ch for ch in text.words(rng, 3, 9) if fonts.draws(self.path, ch))
        if whole and rng.random() < 0.3 and top > self.size * 1.2:
            pen.text((left, top - self.line_height * rng.uniform(1.1, 1.4)), beside, fill=self.ink, font=font)
        if whole and rng.random() < 0.3 and bottom > self.size * 1.2:
            pen.text((left, Y[-1] + self.line_height * 0.4), beside, fill=self.ink, font=font)
        boxes = self._boxes(X, Y)
        degrees = rng.uniform(-1, 1) if whole and rng.random() < 0.25 else 0.0
        if degrees:
            image = image.rotate(degrees, Image.Resampling.BILINEAR, fillcolor=self.paper)
            boxes[:, 1:] = _turned(boxes[:, 1:], degrees, image)
        cells = list(self.cells.values())
        return Table(image, boxes, cells, self.heads, self.rows, self.columns, self.size, degrees)

    def _mix(self, part: float) -> tuple[int, ...]:
        """The colour of ink mixed with paper."""
        return tuple(round(p + (i - p) * part) for p, i in zip(self.paper, self.ink, strict=True))

    def _ground(self, pen: ImageDraw.ImageDraw, X: list[float], Y: list[float]) -> bool:
        """Shaded rows and headers; whether the header's is dark."""
        rng = self.rng
        if self.style == "zebra" or rng.random() < 0.08:
            colour, odd = self._mix(rng.uniform(0.04, 0.2)), rng.randint(0, 1)
            if "fill" in self.cues or not self.heads:
                odd = self.heads  # or the first row would look like one of the header
            for r in range(self.heads, self.rows):
                if (r + odd) % 2:
                    pen.rectangle((X[0], Y[r], X[-1], Y[r + 1]), fill=colour)
        for r in self.projected:
            if rng.random() < 0.3:
                pen.rectangle((X[0], Y[r], X[-1], Y[r + 1]), fill=self._mix(rng.uniform(0.05, 0.2)))
        dark = "fill" in self.cues and rng.random() < 0.35
        if "fill" in self.cues:
            part = rng.uniform(0.6, 0.9) if dark else rng.uniform(0.08, 0.3)
            pen.rectangle((X[0], Y[0], X[-1], Y[self.heads]), fill=self._mix(part))
        return dark

    def _rules(self, pen: ImageDraw.ImageDraw, X: list[float], Y: list[float]) -> None:
        rng, style, rows, columns = self.rng, self.style, self.rows, self.columns
        colour, width = self._mix(rng.uniform(0.3, 1)), rng.choice([1, 1, 1, 2])

        def across(r: int, c: int = 0, last: int = columns) -> None:
            pen.line((X[c], Y[r], X[last], Y[r]), fill=colour, width=width)

        if style in ("horizontal", "grid"):
            for r in range(rows + 1):
                for c in range(columns):
                    if not (0 < r < rows and (r, c) in self.owner and self.owner.get((r - 1, c)) is self.owner[r, c]):
                        across(r, c, c + 1)
        if style == "dotted":
            for r in range(1, rows + 1):
                for x in range(int(X[0]), int(X[-1]), 4):
                    pen.line((x, Y[r], x + 1, Y[r]), fill=colour)
        if style in ("booktabs", "double", "frame"):
            across(0)
            across(rows)
        if style == "double":
            pen.line((X[0], Y[0] - 3, X[-1], Y[0] - 3), fill=colour)
            pen.line((X[0], Y[-1] + 3, X[-1], Y[-1] + 3), fill=colour)
        if style == "frame":
            pen.line((X[0], Y[0], X[0], Y[-1]), fill=colour)
            pen.line((X[-1], Y[0], X[-1], Y[-1]), fill=colour)
        if "rule" in self.cues:
            across(self.heads)
        if style == "booktabs" and rng.random() < 0.3:
            across(rows - 1)
        if style == "booktabs" or rng.random() < 0.2:
            for s in self.spans:
                if s.last_column > s.column and s.last_row < self.heads:
                    y = Y[s.last_row + 1]
                    pen.line((X[s.column] + self.pad_x / 2, y, X[s.last_column + 1] - self.pad_x / 2, y), fill=colour)
        if style in ("vertical", "grid"):
            outer = style == "grid" or rng.random() < 0.5
            for c in range(0 if outer else 1, columns + 1 if outer else columns):
                for r in range(rows):
                    s = self.owner.get((r, c))
                    if not (0 < c < columns and (r in self.projected or (s and s is self.owner.get((r, c - 1))))):
                        pen.line((X[c], Y[r], X[c], Y[r + 1]), fill=colour, width=width)

    def _write(
        self, pen: ImageDraw.ImageDraw, cell: Cell, X: list[float], Y: list[float], colour: tuple[int, ...]
    ) -> None:
        p, font = cell.place, fonts.load(cell.font, self.size)
        left, right = X[p.column] + self.pad_x, X[p.last_column + 1] - self.pad_x
        y = (Y[p.row] + Y[p.last_row + 1] - self.line_height * len(cell.lines)) / 2
        for line in cell.lines:
            width = fonts.width(cell.font, self.size, line)
            x = {"l": left, "r": right - width, "c": (left + right - width) / 2}[cell.align]
            pen.text((x, y), line, fill=colour, font=font)
            cell.boxes.append((x, y + self.line_height * 0.15, x + width, y + self.line_height * 0.9))
            y += self.line_height

    def _boxes(self, X: list[float], Y: list[float]) -> np.ndarray:
        """Borders between texts where nothing is drawn, and the table as its texts reach where it has no outer rule."""
        X, Y = X[:], Y[:]
        seen = [(c.place, box) for c in self.cells.values() for box in c.boxes]
        if self.style not in ("vertical", "grid"):
            _between(X, [(p.column, p.last_column, b[0], b[2]) for p, b in seen])
        if self.style not in ("horizontal", "grid", "dotted"):
            edge = Y[self.heads]
            _between(Y, [(p.row, p.last_row, b[1], b[3]) for p, b in seen])
            if "rule" in self.cues or "fill" in self.cues:
                Y[self.heads] = edge
        if self.style in ("none", "zebra", "headrule"):
            reach = np.array([box for _, box in seen])
            X[0], X[-1] = min(reach[:, 0].min(), X[1] - 3), max(reach[:, 2].max(), X[-2] + 3)
            Y[0], Y[-1] = min(reach[:, 1].min(), Y[1] - 2), max(reach[:, 3].max(), Y[-2] + 2)
        boxes = [(TABLE, X[0], Y[0], X[-1], Y[-1])]
        boxes += [(COLUMN, X[c], Y[0], X[c + 1], Y[-1]) for c in range(self.columns)]
        boxes += [(ROW, X[0], Y[r], X[-1], Y[r + 1]) for r in range(self.rows)]
        boxes += [(HEADER, X[0], Y[0], X[-1], Y[self.heads])] if self.heads else []
        boxes += [(PROJECTED, X[0], Y[r], X[-1], Y[r + 1]) for r in self.projected]
        boxes += [(SPAN, X[s.column], Y[s.row], X[s.last_column + 1], Y[s.last_row + 1]) for s in self.spans]
        return np.array(boxes, np.float32)


def _plain_and_bold(rng: random.Random, held_out: bool) -> tuple[str, str]:
    """A text font, and a bold one of its family: the same where it has none."""
    family = rng.choice(fonts.families(held_out))
    plain = [f for f in family if not _BOLD.search(f)]
    bold = [f for f in family if _BOLD.search(f) and not _SLANTED.search(f)]
    path = rng.choice(plain or family)
    return path, rng.choice(bold or [path])


def _between(borders: list[float], extents: list[tuple[int, int, float, float]]) -> None:
    """Moves each inner border midway between the texts before and after it, by half of a row or column at most."""
    drawn = borders[:]
    for i in range(1, len(borders) - 1):
        before = max((max(e[3], drawn[i - 1]) for e in extents if e[1] == i - 1), default=None)
        after = min((min(e[2], drawn[i + 1]) for e in extents if e[0] == i), default=None)
        if before is not None and after is not None and before < after:
            borders[i] = (before + after) / 2


def _turned(boxes: np.ndarray, degrees: float, image: Image.Image) -> np.ndarray:
    """Boxes (n, 4) whose centres turned with the picture, by a degree at most; they stay upright."""
    angle, half = math.radians(-degrees), np.array(image.size) / 2
    x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2 - half).T
    moved = np.stack([x * math.cos(angle) - y * math.sin(angle) - x, x * math.sin(angle) + y * math.cos(angle) - y], 1)
    return boxes + np.concatenate([moved, moved], 1)
