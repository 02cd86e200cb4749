"""This script cuts the tables out of typeset pages, for the training of the split network.

`python -m training.grid.pack PAGES FOLDER` writes a file of tables for each shard of pages that has none yet.

A pack is a file of pickled sources, one after the other, and beside it where each begins (.npy): a table is read by
itself, so that hundreds of thousands need no memory.
"""

from __future__ import annotations

import argparse
import io
import pickle
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from training.grid.examples import Source, typeset
from training.typeset.cache import SHARES, read, sheet
from zoo.errors import InputError

AROUND = 6.0  # heights of a text: how much of the page is kept around a table
HIGHEST = 26.0  # pixels: larger texts are made smaller


def write(path: Path, sources: Iterable[Source]) -> int:
    """Write a pack beside its place, and move it there."""
    begins, beside = [], path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(beside, "wb") as out:
        for source in sources:
            begins.append(out.tell())
            out.write(pickle.dumps(source))
        begins.append(out.tell())
    np.save(path.with_suffix(".npy"), np.array(begins))
    beside.replace(path)
    return len(begins) - 1


class Packs:
    """The tables of packs, drawn at random: folders by `weights`, all tables of a folder alike."""

    def __init__(self, folder: Path, weights: dict[str, float] | None = None):
        self.files: dict[str, list[tuple[Path, np.ndarray]]] = {}
        for path in sorted(folder.rglob("*.pack")):
            self.files.setdefault(path.parent.name, []).append((path, np.load(path.with_suffix(".npy"))))
        if not self.files:
            raise InputError(f"{folder} has no packs: python -m training.grid.pack PAGES {folder}")
        self.ends = {name: np.cumsum([len(b) - 1 for _, b in of]) for name, of in self.files.items()}
        self.weights = [(weights or SHARES).get(name, 0.2) for name in self.files]

    def __len__(self) -> int:
        return sum(int(ends[-1]) for ends in self.ends.values())

    def draw(self, rng: random.Random) -> Source:
        name = rng.choices(list(self.files), self.weights)[0]
        return self.read(name, rng.randrange(int(self.ends[name][-1])))

    def read(self, name: str, n: int) -> Source:
        file = int(np.searchsorted(self.ends[name], n, "right"))
        path, begins = self.files[name][file]
        i = n - (int(self.ends[name][file - 1]) if file else 0)
        with open(path, "rb") as of:
            of.seek(int(begins[i]))
            return pickle.loads(of.read(int(begins[i + 1] - begins[i])))

    def all(self) -> Iterator[Source]:
        for name, ends in self.ends.items():
            for n in range(int(ends[-1])):
                yield self.read(name, n)


def png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=6)
    return file.getvalue()


def tables(shard: Path) -> Iterator[Source]:
    """The tables of a shard of pages, with what is around them."""
    for n, page in enumerate(read(shard)):
        made = sheet(*page)
        for k, table in enumerate(made.tables):
            layout = typeset(table)
            if min(layout.rows, layout.columns) < 2 or not len(layout.texts()):
                continue
            h, box = layout.height(), layout.extent()
            x0, y0 = (max(0, round(v - AROUND * h)) for v in box[:2])
            x1, y1 = (min(m, round(v + AROUND * h)) for m, v in zip(made.image.size, box[2:], strict=True))
            part, layout = made.image.crop((x0, y0, x1, y1)), layout.moved(-x0, -y0)
            if h > HIGHEST:
                size = max(16, round(part.width * HIGHEST / h)), max(16, round(part.height * HIGHEST / h))
                scale = size[0] / part.width, size[1] / part.height
                part, layout = part.resize(size, Image.Resampling.BILINEAR), layout.moved(0, 0, scale)
            yield Source(png(part), layout, f"{shard.parent.name}-{shard.stem}-{n}-{k}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.grid.pack", description=__doc__)
    parser.add_argument("pages", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    for shard in sorted(args.pages.glob("*/*/*.npz")):
        path = (args.folder / shard.relative_to(args.pages)).with_suffix(".pack")
        if not path.exists():
            print(path, write(path, tables(shard)), flush=True)


if __name__ == "__main__":
    main()
