"""This script sets the tables of papers anew: real texts, headers and spans, in layouts made from a seed.

`python -m training.grid.papers TABLES PAGES --pages N` writes shards, as `training.typeset.render` does.
TABLES has a line of JSON for each table: heads, shape, cells (first and last row, first and last column, text).
"""

from __future__ import annotations

import argparse
import json
import random
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from training.tables import Place
from training.typeset import journals, styles
from training.typeset.cache import SHARD, write
from training.typeset.content import Cell, Content
from training.typeset.html import Builder, Page, look_of, rows_of
from training.typeset.render import chromium
from training.typeset.tags import div

NUMBER = set("0123456789.,-–−±%()<>=*/ ")


def content(table: dict[str, Any], rng: random.Random) -> Content:
    """A paper's table, or a part of its rows, as the content of a page's."""
    (rows, columns), heads = table["shape"], table["heads"]
    most = rng.choice([12, 25, 40, 60])
    first, last = heads, rows
    if rows - heads > most:
        first = rng.randint(heads, rows - most)
        last = first + most
    kept = [*range(heads), *range(first, last)]
    at = {r: i for i, r in enumerate(kept)}
    cells, taken = [], set[int]()
    for r0, r1, c0, c1, text in table["cells"]:
        own = [at[r] for r in range(r0, r1 + 1) if r in at]
        if not own:
            continue
        kind = "number" if text and sum(ch in NUMBER for ch in text) > 0.7 * len(text) else "words"
        wide = c1 - c0 + 1 == columns and r0 >= heads
        role = "head" if r0 < heads else "group" if wide else "body"
        if wide:
            taken.add(own[0])
        cells.append(Cell(Place(own[0], own[-1], c0, c1), " ".join(_short(text).split()), role, kind))
    for r in range(heads, len(kept)):  # labels of rows that have nothing else
        own = [c for c in cells if c.place.row == r and c.text]
        if len(own) == 1 and own[0].place.column == 0 and own[0].role == "body":
            own[0].role = "section"
    cells.sort(key=lambda cell: (cell.place.row, cell.place.column))
    kinds = []
    for k in range(columns):
        own = [c.kind for c in cells if c.place.column == k and c.role != "head" and c.text]
        kinds.append("number" if own.count("number") > len(own) / 2 else "words")
    return Content(len(kept), columns, heads, cells, sorted(taken), kinds)


def _short(text: str) -> str:
    """A text whose characters have one unit of UTF-16 each, as the browser counts them."""
    return "".join(c if c <= "\uffff" else "x" for c in text)


def page(tables: list[dict[str, Any]], rng: random.Random, held_out: bool) -> Page:
    """A page of one to three tables, in the layout of a journal or in any other."""
    b = Builder(rng, held_out)
    size = rng.uniform(7.2, 11)
    width = round(size * rng.uniform(58, 84))
    blocks = []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        made = content(rng.choice(tables), rng)
        table = journals.element_of(b, made) if rng.random() < 0.7 else _plain(b, made)
        blocks += [b.captioned(table), rng.choice([b.paragraph, b.paragraph, b.heading])()]
    look = look_of(rng, held_out, size)
    margin = round(width * rng.uniform(0.02, 0.08))
    return b.page(div("".join(blocks), f"padding:{margin}px"), width, rng.choice([1, 1, 1.4, 1.4, 2, 2]), look, 2.5)


def _plain(b: Builder, made: Content) -> str:
    """The element of a table in any style, of a report or a web page."""
    rng, name = b.rng, f"t{len(b.tables)}"
    look = styles.style(rng, name, made.heads, b.held_out)
    css = [look.css, f"#{name}{{font-size:{rng.choice([0.75, 0.85, 0.95, 1]):.2f}em"]
    css[-1] += f";width:{rng.choice([100, 100, 90, 75])}%" if rng.random() < 0.6 else ""
    css[-1] += f";line-height:{rng.choice([1.1, 1.2, 1.3, 1.45])}}}"
    number, own = rng.choice(["right", "right", "center", "left"]), rng.random() < 0.6
    for c, kind in enumerate(made.kinds):
        align = number if kind == "number" else "left"
        css.append(f"#{name} .c{c}{{text-align:{align}}}" + (f"#{name} th.c{c}{{text-align:{align}}}" if own else ""))
    b.css += css
    b.tables.append((made, look.drawn))
    return f'<table id="{name}" class="folds">{rows_of(made)}</table>'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.grid.papers", description=__doc__)
    parser.add_argument("tables", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=2400)
    parser.add_argument("--held-out", action="store_true", help="other fonts, and papers that training leaves out")
    args = parser.parse_args()
    tables = [json.loads(line) for line in args.tables.read_text(encoding="utf-8").split("\n") if line]
    tables = [t for t in tables if (random.Random(t["doi"]).random() < 0.05) == args.held_out]
    root = args.folder / ("held_out" if args.held_out else "train") / "papers"
    with ExitStack() as stack:
        make = chromium("papers", partial(page, tables), stack)
        for i in range(-(-args.pages // SHARD)):
            path = root / f"{i:05}.npz"
            if not path.exists():
                write(path, make(i, args.held_out))
                print(path, flush=True)


if __name__ == "__main__":
    main()
