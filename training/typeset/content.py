"""This module makes up the contents of tables, cells with places, texts and roles, for every engine alike.

A text may hold raised and lowered parts: RAISED ... END and LOWERED ... END.
"""

import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field

from training import text
from training.tables import Place
from training.text import END, RAISED

_GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшыьэюя"
_UNITS = "kg mg mm km m² kWh MW °C % ms Hz GB € $ £ n days years mg/l µg/m³ USD/t pp"
_MARKS = ("*", "**", "***", "a", "b", "1", "2", "†")
Maker = Callable[[random.Random], str]


@dataclass
class Cell:
    """A cell of a table before it is set.

    role: head, body, group (a heading over all columns) or total; kind: words, number, date, code or measure.
    """

    place: Place
    text: str
    role: str
    kind: str


@dataclass
class Content:
    rows: int
    columns: int
    heads: int
    cells: list[Cell]
    groups: list[int] = field(default_factory=list)  # rows that are headings
    kinds: list[str] = field(default_factory=list)  # by column


class Words:
    """This class makes the texts of one page, with one alphabet and one way of writing numbers."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        k = rng.random()
        self.letters = _GREEK if k < 0.03 else _CYRILLIC if k < 0.06 else ""
        # The mark between thousands, and that before decimals.
        self.marks = rng.choice([(",", "."), (",", "."), (",", "."), (".", ","), (" ", ","), ("", "."), ("’", ".")])
        self.minus = rng.choice("--−−–")

    def some(self, least: int = 1, most: int = 4) -> str:
        if self.letters:
            count = self.rng.randint(least, most)
            return " ".join("".join(self.rng.choices(self.letters, k=self.rng.randint(2, 9))) for _ in range(count))
        return text.words(self.rng, least, most)

    def sentence(self) -> str:
        """Return a sentence with commas, now and then with a number or a raised mark."""
        rng, parts = self.rng, [self.some(3, 9).capitalize()]
        while rng.random() < 0.5:
            k = rng.random()
            parts[-1] += rng.choice([",", ",", ";", ":", " –", " (" + self.some(1, 2) + ")"])
            parts.append(self.number(3, 1) if k < 0.2 else self.some(2, 7))
        end = rng.choice(["."] * 8 + ["?", "!", f".{RAISED}{rng.randint(1, 40)}{END}"])
        return " ".join(parts) + end

    def paragraph(self, least: int = 1, most: int = 7) -> str:
        return " ".join(self.sentence() for _ in range(self.rng.randint(least, most)))

    def number(self, digits: int, decimals: int) -> str:
        value = self.rng.randrange(10 ** self.rng.randint(max(1, digits - 2), digits)) / 10**decimals
        thousands, point = self.marks
        return f"{value:,.{decimals}f}".replace(",", "\0").replace(".", point).replace("\0", thousands)

    def maker(self, kind: str) -> Maker:
        """Return a function that makes the texts of one column, which are alike."""
        rng = self.rng
        if kind == "words":
            most = rng.choice([1, 2, 2, 3, 5])
            return lambda r: self.some(1, most)
        if kind in ("date", "code"):
            return text.KINDS[kind]
        if kind == "measure":
            decimals, digits, form = rng.randint(0, 3), rng.randint(2, 5), rng.randrange(6)
            if form == 5:
                return text.measure
            return lambda r: self._measure(digits, decimals, form)
        decimals, digits = rng.choice([0, 0, 0, 1, 1, 2, 2, 2, 3]), rng.choice([1, 2, 3, 4, 5, 6, 7, 9])
        before, after = rng.choice(
            [("", "")] * 8 + [("$", ""), ("€ ", ""), ("£", ""), ("", " €"), ("", "%"), ("", " %")]
        )
        below = rng.choice([0, 0, 0.1, 0.3])  # how many are negative
        stars = rng.choice([0, 0, 0, 0.15, 0.5])
        brackets = rng.random() < 0.3

        def make(r: random.Random) -> str:
            s = f"{before}{self.number(digits + decimals, decimals)}{after}"
            if r.random() < below:
                s = f"({s})" if brackets else f"{self.minus}{s}"
            if r.random() < stars:
                s += r.choice(["*", "**", "***", f"{RAISED}{r.choice(_MARKS)}{END}"])
            return s

        return make

    def _measure(self, digits: int, decimals: int, form: int) -> str:
        a, b = self.number(digits, decimals), self.number(max(1, digits - 1), decimals)
        return (f"{a} ± {b}", f"{a} ({b})", f"[{b}; {a}]", f"{b}–{a}", f"{a} × 10{RAISED}{self.minus}{len(b)}{END}")[
            form
        ]


def table(words: Words, columns: int, rows: int, leaders: bool = False) -> Content:
    """Make up a table of so many columns and rows; with leaders, dots follow the texts of its first column."""
    rng = words.rng
    heads = min(rng.choice([0, 1, 1, 1, 1, 1, 1, 2, 2, 3]), rows - 1)
    kinds = [rng.choice(["words", "words", "words", "code", "date", "number"])]
    much = ["number", "number", "words", "date", "code", "measure"] if rng.random() < 0.5 else ["number"]
    kinds += [rng.choice(much) for _ in range(columns - 1)]
    if rng.random() < 0.08:
        kinds = ["words"] * columns
    makers = [words.maker(kind) for kind in kinds]
    owner = _spans(rng, columns, rows, heads)
    groups = _groups(rng, columns, rows, heads, owner)
    blank = rng.choice([0, 0, 0, 0.05, 0.15, 0.3])
    total = rng.random() < 0.3 and rows - heads > 2 and rows - 1 not in groups and (rows - 1, 0) not in owner
    upper = rng.random() < 0.12
    cells: list[Cell] = []
    for r in range(rows):
        never = rng.sample(range(columns), min(2, columns))  # what stays, so that no row is empty
        for c in range(columns):
            place = owner.get((r, c), Place(r, r, c, c))
            if r in groups:
                place = Place(r, r, 0, columns - 1)
            if (r, c) != (place.row, place.column):
                continue
            role = "head" if r < heads else "group" if r in groups else "total" if total and r == rows - 1 else "body"
            if role == "head":
                string_ = _head(words, kinds[c], place)
                string_ = string_.upper() if upper and RAISED not in string_ else string_
                string_ = "" if c == 0 and rng.random() < 0.12 and columns > 2 else string_
            elif role == "group":
                string_ = words.some(1, 4)
            elif rng.random() < (blank if c else blank / 4) and c not in never and r != heads:
                string_ = rng.choice(["", "", "-", "–", "n/a", "..."])
            elif role == "total" and c == 0:
                string_ = rng.choice(["Total", "Sum", "Total " + words.some(1, 1), "Average"])
            else:
                string_ = makers[c](rng)
            if leaders and c == 0 and role in ("body", "total"):
                string_ += " " + rng.choice([". ", "."]) * rng.randint(4, 26)
            cells.append(Cell(place, " ".join(string_.split()), role, kinds[c] if role != "head" else "words"))
    return Content(rows, columns, heads, cells, groups, kinds)


def _head(words: Words, kind: str, place: Place) -> str:
    rng = words.rng
    k = rng.random()
    if kind == "number" and k < 0.25:
        return rng.choice(
            [
                str(rng.randint(1960, 2035)),
                f"Q{rng.randint(1, 4)}",
                f"{rng.choice(string.ascii_uppercase)}{rng.randint(1, 9)}",
            ]
        )
    if k < 0.4:
        return f"{words.some(1, 2)} ({rng.choice(_UNITS.split())})"
    if k < 0.46:
        return f"{words.some(1, 1)}{RAISED}{rng.choice(_MARKS)}{END}"
    return words.some(1, 3 if place.last_column > place.column else 2)


def _spans(rng: random.Random, columns: int, rows: int, heads: int) -> dict[tuple[int, int], Place]:
    """Return the place of the spanning cell that covers each position, for the positions that one covers."""
    spans: list[Place] = []
    for r in range(heads - 1):
        c = rng.choice([0, 1])
        while c < columns:
            n = min(rng.randint(1, 4), columns - c)
            if n > 1 and rng.random() < 0.85:
                spans.append(Place(r, r, c, c + n - 1))
            elif n == 1 and heads > 1 and r == 0 and rng.random() < 0.5:
                spans.append(Place(0, heads - 1, c, c))
            c += n
    taken = {(r, s.column) for s in spans for r in range(s.row, s.last_row + 1) if s.last_row > s.row}
    spans = [
        s
        for s in spans
        if s.last_row > s.row or not any((s.row, c) in taken for c in range(s.column, s.last_column + 1))
    ]
    if heads > 1 and rng.random() < 0.5 and all(s.column for s in spans):
        spans.append(Place(0, heads - 1, 0, 0))
    k = rng.random()
    if rows - heads > 3 and k < 0.15:
        r = heads
        while r < rows:
            n = min(rng.randint(1, 4), rows - r)
            if n > 1:
                spans.append(Place(r, r + n - 1, 0, 0))
            r += n
    elif columns > 2 and k < 0.22 and rows > heads + 1:
        r, c = rng.randrange(heads, rows), rng.randint(1, columns - 2)
        spans.append(Place(r, r, c, rng.randint(c + 1, columns - 1)))
    return {(r, c): s for s in spans for r in range(s.row, s.last_row + 1) for c in range(s.column, s.last_column + 1)}


def _groups(rng: random.Random, columns: int, rows: int, heads: int, owner: dict[tuple[int, int], Place]) -> list[int]:
    free = [r for r in range(heads, rows - 1) if all((r, c) not in owner for c in range(columns))]
    if len(free) < 4 or len(free) < rows - heads - 1 or rng.random() < 0.75 or columns < 3:
        return []
    return sorted(rng.sample(free, rng.randint(1, max(1, len(free) // 4))))
