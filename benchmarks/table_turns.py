"""Tables of pictures that are tilted or turned, beside the same pictures upright.

    python -m benchmarks.table_material      # once
    python -m benchmarks.table_turns              # some 40 minutes; --count 10 for a part

The pictures: those of tests/data/tables; of the material of `benchmarks.tables` the half that may be looked at, without
ICDAR's drawn pages; and pages that `training.pages` draws in fonts that training never shows.  Each is turned as a
scanner would, resampled once, and given to a `TableExtractor` as it is.  What counts are the rows whose texts are all
right, as in `benchmarks.tables`; the last line divides them by those of the upright pictures.  With --skip it
is told that pages are upright.  The angles that were found are compared with those by which pictures were turned.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from zoo.apps.tables import Table, TableExtractor

from . import harness, table_samples
from .table_material import material, material_folder
from .table_scores import matched, right_rows

ANGLES = (0.3, 0.6, 1.0, 2.0, -5.0, 90.0, 180.0, 270.0)
DRAWN = 20  # pages


class Picture(NamedTuple):
    """A picture with the tables on it."""

    set: str
    name: str
    pixels: np.ndarray  # (H, W, 3) uint8
    tables: Sequence[Table]


def pictures(folder: Path) -> Iterator[Picture]:
    """All of them, upright."""
    from zoo.images import open_pixels

    for sample in table_samples.samples():
        if sample.picture is not None:
            yield Picture("tests", sample.name, open_pixels(sample.picture), [sample.true])
    for one in material(folder):
        if one.half == "look" and one.file.suffix != ".pdf" and one.file.is_file():
            yield Picture(one.set, one.path, open_pixels(one.file), one.answer[1])
    for number in range(DRAWN):
        yield _draw_page(number)


def _draw_page(number: int) -> Picture:
    from training import evaluate, pages

    page = pages.page(random.Random(f"turned {number}"), held_out=True, columns=8, rows=15, least=1)
    return Picture("drawn", str(number), np.asarray(page.image), [evaluate.truth(one.table) for one in page.placed])


def turn_picture(pixels: np.ndarray, angle: float) -> np.ndarray:
    """The picture (H, W, 3) turned clockwise, by quarters without resampling; its corners get the edge's colour."""
    from PIL import Image

    quarters = round(angle / 90)
    pixels = np.ascontiguousarray(np.rot90(pixels, -quarters))
    if tilt := angle - 90 * quarters:
        edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        paper = tuple(np.median(edges, 0).astype(int).tolist())
        image = Image.fromarray(pixels).rotate(-tilt, Image.Resampling.BICUBIC, expand=True, fillcolor=paper)
        pixels = np.asarray(image)
    return pixels


def score(extract: TableExtractor, picture: Picture, angle: float) -> tuple[int, float | None]:
    """How many rows are right, and the angle that was found, None without a table."""
    found = extract(turn_picture(picture.pixels, angle))
    pairs = matched(picture.tables, found)
    rows = sum(len(right_rows(picture.tables[i], found[k])) for i, k in pairs.items())
    return rows, found[0].angle if found else None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.table_turns",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--material", type=Path, default=material_folder(), metavar="FOLDER", help="default: %(default)s"
    )
    parser.add_argument("--angles", type=float, nargs="+", default=ANGLES)
    parser.add_argument("--sets", nargs="+", help="of tests, pubtabnet, gmft, pages, more, validation, drawn")
    parser.add_argument("--count", type=int, help="pictures of each set, at most")
    parser.add_argument("--skip", action="store_true", help="do not look for a turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the right rows of each picture")
    args = parser.parse_args(argv)
    extract = TableExtractor(straighten=not args.skip)
    found: list[dict[str, object]] = []
    seen: dict[str, int] = {}
    angles = [0.0, *args.angles]
    rows, errors = dict.fromkeys(angles, 0), {angle: [] for angle in angles}
    true = 0
    for picture in pictures(args.material):
        seen[picture.set] = seen.get(picture.set, 0) + 1
        if (args.sets and picture.set not in args.sets) or (args.count and seen[picture.set] > args.count):
            continue
        own = {}
        for angle in angles:
            own[angle], said = score(extract, picture, angle)
            rows[angle] += own[angle]
            if said is not None:
                errors[angle].append(abs((said - angle + 180) % 360 - 180))
        true += (of := sum(table.shape[0] for table in picture.tables))
        found.append({"set": picture.set, "name": picture.name, "rows": of, "right": own})
        print(f"{picture.set} {picture.name}: {' '.join(map(str, own.values()))} of {of}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(report(rows, errors, true))
    return 0


def report(rows: dict[float, int], errors: dict[float, list[float]], true: int) -> str:
    """A table with a line for each angle."""
    head = ["turned by", f"right of {true} rows", "of those upright", "angle off by, median", "90 %", "most"]
    lines = []
    for angle, right in rows.items():
        off = [f"{np.percentile(errors[angle], part):.2f}" for part in (50, 90, 100)] if errors[angle] else ["", "", ""]
        lines.append([f"{angle:g}", str(right), f"{right / max(1, rows[0.0]):.3f}", *off])
    return harness.table(head, lines)


if __name__ == "__main__":
    raise SystemExit(main())
