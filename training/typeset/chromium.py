"""This module renders HTML with Chromium, through Playwright, and measures the boxes of cells and of lines of text."""

import contextlib
import io
import itertools
import shutil
from collections.abc import Iterator
from typing import Any

from PIL import Image

from training.tables import Place
from training.typeset.cache import Sheet
from training.typeset.html import Page
from training.typeset.marks import Line, borders
from zoo.errors import InputError

NAMES = "chromium", "chromium-browser", "google-chrome"
# What the browser computes: of each table its cells, of each cell its box and lines; and the lines of other text.
MEASURE = """() => {
  const r1 = v => Math.round(v * 10) / 10;
  function lines(element) {
    const out = []; let now = null; const range = document.createRange();
    const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode());) {
      const tag = node.parentElement.tagName, raised = tag === 'SUP' ? 1 : tag === 'SUB' ? 2 : 0;
      for (let i = 0; i < node.data.length; i++) {
        range.setStart(node, i); range.setEnd(node, i + 1);
        const rects = range.getClientRects(), b = rects[rects.length - 1];
        if (!b || b.width === 0) continue;
        const shared = now ? Math.min(now.b, b.bottom) - Math.max(now.t, b.top) : -1;
        if (!now || shared < 0.3 * b.height || b.left < now.x[now.x.length - 1] - 3) {
          now = {s: '', k: '', l: b.left, t: b.top, b: b.bottom, x: []}; out.push(now);
        }
        now.s += node.data[i]; now.k += raised; now.x.push(b.right);
        if (!raised) { now.t = Math.min(now.t, b.top); now.b = Math.max(now.b, b.bottom); }
      }
    }
    return out.map(o => [o.s, o.k, r1(o.l), r1(o.t + scrollY), r1(o.b + scrollY), o.x.map(r1)]);
  }
  const tables = [];
  for (let n = 0; ; n++) {
    const table = document.getElementById('t' + n);
    if (!table) break;
    const cells = [...table.querySelectorAll('[data-p]')].map(cell => {
      const b = cell.getBoundingClientRect();
      return [cell.dataset.p, r1(b.left), r1(b.top + scrollY), r1(b.right), r1(b.bottom + scrollY), lines(cell)];
    });
    const b = table.getBoundingClientRect();
    tables.push([b.left, b.top + scrollY, b.right, b.bottom + scrollY, cells]);
  }
  const says = [...document.querySelectorAll('.say')].flatMap(lines);
  const e = document.documentElement;
  return {tables, says, width: Math.max(e.scrollWidth, ...tables.map(t => t[2])), height: e.scrollHeight};
}"""
# Tables that are wider than their room get smaller letters.
FIT = """() => {
  for (let n = 0; ; n++) {
    const table = document.getElementById('t' + n);
    if (!table) break;
    const room = Math.min(table.parentElement.clientWidth, innerWidth);
    for (let i = 0; i < 6 && table.offsetWidth > room + 1; i++) {
      const size = parseFloat(getComputedStyle(table).fontSize);
      if (size < 7.5) break;
      table.style.fontSize = Math.max(7.4, size * Math.max(0.7, room / table.offsetWidth)) + 'px';
    }
  }
}"""


def executable() -> str | None:
    """Return the path of the installed Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    """This class wraps a running browser with one window for each scale."""

    def __init__(self, browser: Any):
        self.browser, self.windows = browser, {}

    def window(self, scale: float) -> Any:
        if scale not in self.windows:
            context = self.browser.new_context(device_scale_factor=scale, java_script_enabled=True)
            self.windows[scale] = context.new_page()
        return self.windows[scale]

    def set(self, page: Page) -> Sheet | None:
        """Render a page and measure its boxes; the result is None where hardly anything is left of it."""
        window = self.window(page.scale)
        window.set_viewport_size({"width": page.width, "height": 64})
        window.set_content(page.html, wait_until="load")
        window.evaluate(FIT)
        seen = window.evaluate(MEASURE)
        width, height = min(2400, round(seen["width"])), seen["height"]
        most = round(page.most * width)
        if height > most:  # cut between blocks, so that a table is whole or not there
            height = most
            for _, top, _, bottom, _ in sorted(seen["tables"], key=lambda table: -table[3]):
                if top - 30 < height < bottom + 8:
                    height = int(top) - 30
        if height < 24 or width < 24:
            return None
        if width != page.width:
            window.set_viewport_size({"width": width, "height": 64})
            window.evaluate("w => document.body.style.width = w + 'px'", page.width)
            seen = window.evaluate(MEASURE)
        height = min(height, seen["height"])
        window.set_viewport_size({"width": width, "height": height})  # a larger picture than the window takes longer
        png = window.screenshot(type="png")
        image = Image.open(io.BytesIO(png)).convert("L")
        return _sheet(image, page, seen, height)


def _sheet(image: Image.Image, page: Page, seen: dict[str, Any], height: float) -> Sheet:
    tables, s = [], page.scale
    for (made, drawn), (_, _, _, bottom, measured) in zip(page.tables, seen["tables"], strict=True):
        if bottom > height + 2:
            continue
        cells = []
        for place, x0, y0, x1, y1, found in measured:
            lines = [line for one in found if (line := _line(one, s))]
            cells.append((Place(*map(int, place.split(","))), (x0 * s, y0 * s, x1 * s, y1 * s), lines))
        X, Y = borders(cells, made.rows, made.columns, made.heads, drawn)
        # Columns that do not have a width of their own, of rows that the browser left out: nobody could see these.
        if min(b - a for line in (X, Y) for a, b in itertools.pairwise(line)) < 2:
            return Sheet(image, [], [], spoiled=True)
        rows = [(*place, lines) for place, _, lines in cells]
        tables.append({"heads": made.heads, "groups": made.groups, "X": X, "Y": Y, "cells": rows})
    says = [line for one in seen["says"] if one[4] < height and (line := _line(one, s))]
    return Sheet(image, tables, says)


def _line(measured: list[Any], scale: float) -> Line | None:
    """Return a line without white space around it, with raised figures as such, or None where nothing is left."""
    string, kinds, left, top, bottom, ends = measured
    raised = {"2": "²", "3": "³"}
    pairs: Iterator[tuple[str, str]] = zip(string, kinds, strict=True)
    string = "".join(raised.get(c, c) if kind == "1" else c for c, kind in pairs)
    string = string.replace("\xa0", " ").replace("\n", " ")
    first = len(string) - len(string.lstrip())
    last = len(string.rstrip())
    if first >= last:
        return None
    x0 = ends[first - 1] if first else left
    box = (x0 * scale, top * scale, ends[last - 1] * scale, bottom * scale)
    return Line(string[first:last], box, [round((e - x0) * scale, 1) for e in ends[first:last]])


@contextlib.contextmanager
def started() -> Iterator[Chromium]:
    """Run a browser for the time of a `with`."""
    path = executable()
    if path is None:
        raise InputError(f"none of {', '.join(NAMES)} is installed: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        try:
            yield Chromium(browser)
        finally:
            browser.close()
