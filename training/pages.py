"""Pictures of pages with the boxes of their tables: paragraphs, headings, figures, and tables among them."""

import random
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from training import fonts, tables, text
from training.lines import colours, degrade


class Placed(NamedTuple):
    """A table on a page, and how far something is drawn of it: x0 y0 x1 y1."""

    table: tables.Table
    box: tuple[int, int, int, int]


class Page(NamedTuple):
    image: Image.Image
    placed: list[Placed]


def page(rng: random.Random, held_out: bool = False, columns: int = 12, rows: int = 25, least: int = 0) -> Page:
    """A page of one or two columns of blocks, with `least` tables or more where they fit."""
    width = rng.randint(650, 1000)
    height = round(width * rng.choice([1.294, 1.414, 1.414, 0.75, rng.uniform(0.6, 1.6)]))
    paper, ink = colours(rng) if rng.random() < 0.4 else ((255, 255, 255), (0, 0, 0))
    image = Image.new("RGB", (width, height), paper)
    margin, gap = round(width * rng.uniform(0.04, 0.12)), round(width * rng.uniform(0.02, 0.05))
    strips = 2 if width < height and rng.random() < 0.4 else 1
    strip = (width - 2 * margin - gap * (strips - 1)) // strips
    path, size = fonts.choose(rng, held_out), rng.randint(9, 14)
    share = rng.choice([0.0, 0.2, 0.4, 0.8])  # of blocks that are tables
    placed: list[Placed] = []
    for s in range(strips):
        left, y, bottom, after_table = margin + s * (strip + gap), margin, height - margin, False
        while y < bottom - 3 * size:
            k = rng.random()
            if (k < share and not after_table) or (len(placed) < least and rng.random() < 0.5):
                before, y = y, y + round(size * rng.uniform(0.6, 1.5)) * (y > margin)
                y = _table(rng, image, (left, y, strip, bottom - y), (paper, ink), held_out, columns, rows, placed)
                after_table = y > before
                y += round(size * rng.uniform(0.6, 1.5))
            elif k < share + 0.07:
                y = _figure(rng, image, (left, y, strip, min(bottom - y, strip)), ink)
                after_table = False
            else:
                y = _paragraph(rng, image, (left, y, strip, bottom - y), ink, path, size)
                after_table = False
            y += round(size * rng.uniform(0.6, 2.5))
    if len(placed) < least:
        return page(rng, held_out, columns, rows, least)
    return Page(image, placed)


def square(page: Page, side: int, rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
    """As the detector sees it: (side, side) uint8 grey; boxes (n, 4), x0 y0 x1 y1 as parts of the picture."""
    boxes = np.array([p.box for p in page.placed], np.float32).reshape(-1, 4)
    boxes[:, ::2] /= page.image.width
    boxes[:, 1::2] /= page.image.height
    image = degrade(page.image, rng).resize((side, side), Image.Resampling.BILINEAR).convert("L")
    return np.asarray(image), boxes.clip(0, 1)


def _table(rng, image, room, on_page, held_out, columns, rows, placed) -> int:  # type: ignore[no-untyped-def]
    """Puts a table into the room (left, top, width, height) if it fits there; where it ends."""
    left, top, width, height = room
    for _ in range(4):
        drawing = tables.Drawing(rng, rng.randint(2, columns), rng.randint(2, rows), held_out, on_page)
        scale = min(1.0, width / (drawing.X[-1] + 8))
        if scale > 0.55 and (drawing.Y[-1] + 8) * scale < height - 1:
            table = drawing.draw()
            w, h = min(width, round(table.image.width * scale)), round(table.image.height * scale)
            drawn = table.image if scale == 1 else table.image.resize((w, h), Image.Resampling.LANCZOS)
            at = left + round((width - w) * rng.choice([0, 0.5, 0.5, rng.random()]))
            image.paste(drawn, (at, top))
            x0, y0, x1, y1 = _drawn(drawn, on_page[0])
            placed.append(Placed(table, (at + x0, top + y0, at + x1, top + y1)))
            return top + h
        columns, rows = max(2, columns - 3), max(2, rows // 2)
    return top


def _drawn(image: Image.Image, paper: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The box of what is not paper."""
    unlike = ImageChops.difference(image, Image.new("RGB", image.size, paper)).convert("L")
    return unlike.point([255 * (v > 8) for v in range(256)]).getbbox() or (0, 0, *image.size)


def _paragraph(rng, image, room, ink, path, size) -> int:  # type: ignore[no-untyped-def]
    left, top, width, height = room
    heading = rng.random() < 0.2
    font = fonts.load(path, round(size * (rng.uniform(1.2, 2) if heading else 1)))
    step, pen = round(sum(font.getmetrics()) * rng.uniform(1, 1.3)), ImageDraw.Draw(image)
    for _ in range(1 if heading else rng.randint(1, 12)):
        if step > height:
            break
        line = "".join(c for c in text.words(rng, 2, 7 if heading else 24) if fonts.draws(path, c))
        line = line[: int(0.97 * len(line) * width / max(width, font.getlength(line)))]
        pen.text((left, top), line, fill=ink, font=font)
        top, height = top + step, height - step
    return top


def _figure(rng, image, room, ink) -> int:  # type: ignore[no-untyped-def]
    """Bars or a curve in a frame: lines that are no table."""
    left, top, width, height = room
    w, h = round(width * rng.uniform(0.4, 1)), round(height * rng.uniform(0.2, 0.6))
    pen, colour = ImageDraw.Draw(image), tuple(rng.randint(0, 255) for _ in "rgb")
    if rng.random() < 0.7:
        pen.rectangle((left, top, left + w, top + h), outline=ink)
    xs = [left + w * i / 12 for i in range(13)]
    ys = [top + h * rng.uniform(0.1, 0.9) for _ in xs]
    if rng.random() < 0.5:
        for x, y in zip(xs[1:-1], ys[1:-1], strict=True):
            pen.rectangle((x, y, x + w / 20, top + h), fill=colour)
    else:
        pen.line(list(zip(xs, ys, strict=True)), fill=colour, width=2)
    return top + h
