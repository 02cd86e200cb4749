"""This script sets the tables of companies' reports (HTML) with Chromium: real tables of sums, with signs apart.

`python -m training.grid.filings FOLDER PACK` reads FOLDER/*.htm* and writes a pack.

Their HTML has columns for signs, brackets and white space.  A sign belongs to the number beside it; a column is what
rows with the most texts have; a text over several of these spans them.  Rows of the header are not marked in it.
"""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from training.grid.examples import Source
from training.grid.pack import png, write
from training.grid.truth import Layout
from training.typeset.chromium import started

BEFORE, AFTER = {"$", "€", "£", "(", "($", "US$"}, {"%", ")", ")%", "%)", "x", "*", "bps"}
MOST = 12  # tables of one report
# Tables with texts in at least three rows, each with what stands before and after it.
TABLES = """() => {
  const out = [];
  for (const table of document.querySelectorAll('table')) {
    if (table.querySelector('table')) continue;
    const rows = [...table.rows].filter(r => r.innerText.trim());
    if (rows.length < 3 || rows.length > 60) continue;
    const near = (e, step) => {
      let s = '', n = 0;
      for (let x = e; x && x !== document.body && !x[step]; x = x.parentElement) e = x.parentElement;
      for (let x = e[step]; x && n < 2; x = x[step]) {
        if (!x.innerText || !x.innerText.trim() || x.querySelector('table')) continue;
        const p = document.createElement('p');
        p.textContent = x.innerText.trim().slice(0, 500); n += 1;
        s = step[0] === 'p' ? p.outerHTML + s : s + p.outerHTML; }
      return s;
    };
    out.push([near(table, 'previousElementSibling'), table.outerHTML, near(table, 'nextElementSibling')]);
  }
  return out;
}"""
CELLS = """() => {
  const table = document.querySelector('#it table'), taken = [], out = [];
  [...table.rows].forEach((row, r) => {
    taken[r] = taken[r] || [];
    let c = 0;
    for (const cell of row.cells) {
      while (taken[r][c]) c += 1;
      for (let i = r; i < r + cell.rowSpan; i++) {
        taken[i] = taken[i] || [];
        for (let j = c; j < c + cell.colSpan; j++) taken[i][j] = 1;
      }
      const range = document.createRange(); range.selectNodeContents(cell);
      const text = cell.innerText.trim();
      const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), rects = [];
      for (let node; (node = walk.nextNode());) {
        const data = node.data; if (!data.trim()) continue;
        range.setStart(node, data.length - data.trimStart().length); range.setEnd(node, data.trimEnd().length);
        for (const b of range.getClientRects()) if (b.width > 1) rects.push([b.left, b.top, b.right, b.bottom]);
      }
      if (text && rects.length) out.push([r, r + cell.rowSpan - 1, c, c + cell.colSpan - 1, text, rects]);
      c += cell.colSpan;
    }
  });
  return out;
}"""


def layout_of(cells: list[list[Any]]) -> Layout | None:
    """The layout of a table's cells, as CELLS measures them; None if it is no grid of 3 x 2 at least."""
    rows: dict[int, list[list[Any]]] = {}
    for cell in sorted(cells, key=lambda c: (c[0], c[2])):
        own = rows.setdefault(cell[0], [])
        r0, r1, c0, c1, text, boxes = cell
        before = own[-1] if own else None
        if before and (before[4] in BEFORE or text in AFTER) and c0 - before[3] <= 3:
            before[3], before[4] = c1, before[4] + text
            before[5] = before[5] + boxes
        else:
            own.append([r0, r1, c0, c1, text, boxes])
    groups: list[list[int]] = []
    for own in sorted(rows.values(), key=lambda own: -len(own)):
        for _, _, c0, c1, *_ in own:
            near = [g for g in groups if c0 <= g[1] and g[0] <= c1]
            if not near:
                groups.append([c0, c1])
            elif len(near) == 1:
                g = near[0]
                low, high = min(g[0], c0), max(g[1], c1)
                if not any(o is not g and low <= o[1] and o[0] <= high for o in groups):
                    g[:] = [low, high]
    groups.sort()
    if len(groups) < 2 or len(rows) < 3:
        return None
    at = {r: i for i, r in enumerate(sorted(rows))}
    out = []
    for own in rows.values():
        for r0, r1, c0, c1, _, boxes in own:
            over = [i for i, g in enumerate(groups) if c0 <= g[1] and g[0] <= c1]
            last = max(at[r] for r in range(r0, r1 + 1) if r in at)
            lines = np.array(boxes, float).reshape(-1, 4)
            high = lines[:, 3] - lines[:, 1]
            lines[:, 1] += 0.15 * high
            lines[:, 3] -= 0.1 * high
            out.append((at[r0], last, over[0], over[-1], lines))
    return Layout(len(rows), len(groups), out, -1)


def fits(layout: Layout) -> bool:
    """Return True if no texts of two columns, or rows, are in each other's way."""
    h = layout.height()
    for axis in (0, 1):
        for i in range(1, layout.rows if axis else layout.columns):
            k = 0 if axis else 2
            before = [b[:, axis + 2] for *p, b in layout.cells if p[k + 1] < i]
            after = [b[:, axis] for *p, b in layout.cells if p[k] >= i]
            if not before or not after or np.concatenate(before).max() - np.concatenate(after).min() > 0.3 * h:
                return False
    return True


def sources(browser: Any, path: Path, rng: random.Random) -> Iterator[Source]:
    """Some of the tables of a report."""
    scale = rng.choice([1, 1, 1.5, 2])
    window = browser.window(scale)
    window.set_viewport_size({"width": rng.choice([760, 900, 1000]), "height": 200})
    window.set_content(path.read_text(encoding="utf-8", errors="replace"), wait_until="domcontentloaded")
    found = window.evaluate(TABLES)
    for n in sorted(rng.sample(range(len(found)), min(MOST, len(found)))):
        before, table, after = found[n]
        body = f"<body style='margin:12px 30px;background:#fff'>{before}<div id=it>{table}</div>{after}</body>"
        window.set_viewport_size({"width": rng.choice([760, 900, 1000]), "height": 200})
        window.set_content(body, wait_until="domcontentloaded")
        box = window.evaluate("() => { const e = document.documentElement; return [e.scrollWidth, e.scrollHeight]; }")
        if box[0] > 1600 or box[1] > 2400:
            continue
        window.set_viewport_size({"width": box[0], "height": max(60, box[1])})
        layout = layout_of(window.evaluate(CELLS))
        if layout is None or not fits(layout):
            continue
        image = Image.open(io.BytesIO(window.screenshot(type="png"))).convert("L")
        layout = layout.moved(0, 0, (scale, scale))
        h, extent = layout.height(), layout.extent()
        x0, y0 = (max(0, round(v - 6 * h)) for v in extent[:2])
        x1, y1 = (min(m, round(v + 6 * h)) for m, v in zip(image.size, extent[2:], strict=True))
        yield Source(png(image.crop((x0, y0, x1, y1))), layout.moved(-x0, -y0), f"{path.stem}-{n}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.grid.filings", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pack", type=Path)
    args = parser.parse_args()
    with started() as browser:

        def all_of() -> Iterator[Source]:
            for path in sorted(args.folder.glob("*.htm*")):
                made = list(sources(browser, path, random.Random(path.name)))
                print(path.name, len(made), flush=True)
                yield from made

        print(write(args.pack, all_of()))


if __name__ == "__main__":
    main()
