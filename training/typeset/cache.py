"""This module keeps rendered pages on disk, in shards that are written once and read one page at a time.

A shard is an .npz file: `png`, the pictures one after the other, `at`, where each ends, and `about`, JSON of the boxes.
"""

import functools
import io
import json
import os
import random
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from training.typeset.marks import Line
from zoo.errors import InputError

SHARD = 24  # pages
SHARES = {"chromium": 0.6, "journals": 0.6, "latex": 0.2, "office": 0.2}


class Sheet(NamedTuple):
    """A sheet holds a page's grey picture, its tables, and the lines of text outside of them.

    A table is a dict of heads (rows of the header), groups (rows that are headings), X and Y (borders in pixels) and
    cells (first and last row, first and last column, lines).  spoiled: not to be used.
    """

    image: Image.Image
    tables: list[dict[str, Any]]
    lines: list[Line]
    spoiled: bool = False


def write(path: Path, sheets: list[Sheet]) -> None:
    """Write a shard to a file beside its place and move it there, so that no half-written shard is ever seen."""
    pictures: list[bytes] = []
    for sheet in sheets:
        file = io.BytesIO()
        sheet.image.save(file, "PNG", compress_level=6)
        pictures.append(file.getvalue())
    about = [{"tables": _rounded(s.tables), "lines": _rounded(s.lines)} for s in sheets]
    packed = zlib.compress(json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode(), 6)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.part")
    with open(beside, "wb") as out:
        np.savez(
            out,
            png=np.frombuffer(b"".join(pictures), np.uint8),
            at=np.cumsum([0] + [len(p) for p in pictures]),
            about=np.frombuffer(packed, np.uint8),
        )
    beside.replace(path)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 1)
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return {k: _rounded(v) for k, v in value.items()} if isinstance(value, dict) else value


def read(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the pages of a shard, each as the bytes of a PNG and a dict of its tables and lines."""
    with np.load(path) as shard:
        at, png = shard["at"], shard["png"].tobytes()
        about = json.loads(zlib.decompress(shard["about"].tobytes()))
    return [(png[a:b], page) for a, b, page in zip(at, at[1:], about, strict=False)]


def _line(stored: list[Any]) -> Line:
    text, (x0, y0, x1, y1), ends = stored
    return Line(text, (x0, y0, x1, y1), ends)


def sheet(png: bytes, about: dict[str, Any]) -> Sheet:
    tables = [
        {**t, "cells": [(*place, [_line(line) for line in lines]) for *place, lines in t["cells"]]}
        for t in about["tables"]
    ]
    return Sheet(Image.open(io.BytesIO(png)).convert("L"), tables, [_line(line) for line in about["lines"]])


class Pages:
    """This class draws random pages from a folder; `SHARES` says how likely each engine's pages are.

    Shards that are written later are seen by the next run alone, so that a run can be repeated.
    """

    def __init__(self, folder: str | Path, held_out: bool = False):
        root = Path(folder) / ("held_out" if held_out else "train")
        found = {p.name: sorted(p.glob("*.npz")) for p in sorted(root.glob("*")) if p.is_dir()}
        self.shards = {engine: shards for engine, shards in found.items() if shards}
        if not self.shards:
            raise InputError(f"no pages lie in {root}: python -m training.typeset.render {folder}")
        self.weights = [SHARES.get(engine, 0.2) for engine in self.shards]
        self._read = functools.lru_cache(maxsize=160)(read)

    def __len__(self) -> int:
        return sum(map(len, self.shards.values())) * SHARD

    def draw(self, rng: random.Random) -> Sheet:
        shards = self.shards[rng.choices(list(self.shards), self.weights)[0]]
        return sheet(*rng.choice(self._read(rng.choice(shards))))

    def all(self, most: int) -> list[Sheet]:
        """Return the first pages in a fixed order, the same number of each engine."""
        out: list[Sheet] = []
        each = -(-most // len(self.shards))
        for shards in self.shards.values():
            pages = (page for shard in shards for page in read(shard))
            out += [sheet(*page) for page, _ in zip(pages, range(each), strict=False)]
        return out[:most]
