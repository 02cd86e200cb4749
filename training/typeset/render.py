"""This script renders pages: `python -m training.typeset.render FOLDER [--engine E] [--pages N] [--held-out]`.

Shard number n of an engine is a function of n alone. What is there already is left as it is, so that a run that was
stopped goes on; `--part 0/2` and `--part 1/2` share the work between two processes.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from training.typeset import html, journals
from training.typeset.cache import SHARD, Sheet, write

# The pages of shard number n, of training or held out.
Setter = Callable[[int, bool], list[Sheet]]


def seeded(engine: str, number: int, held_out: bool) -> random.Random:
    return random.Random(f"{engine}/{'held out' if held_out else 'train'}/{number}")


def chromium(name: str, make: Callable[[random.Random, bool], html.Page], stack: ExitStack) -> Setter:
    from training.typeset.chromium import started

    browser = stack.enter_context(started())

    def page(number: int, held_out: bool) -> Sheet:
        rng = seeded(name, number, held_out)
        for _ in range(20):  # where one is spoiled, the next that its seed gives
            made = browser.set(make(random.Random(rng.getrandbits(64)), held_out))
            if made is not None and not made.spoiled:
                return made
        raise RuntimeError(f"Chromium set none of 20 pages for number {number}")

    return lambda shard, held_out: [page(n, held_out) for n in range(shard * SHARD, (shard + 1) * SHARD)]


def latex(stack: ExitStack) -> Setter:
    from training.typeset.latex import shard

    return lambda number, held_out: shard(seeded("latex", number, held_out), held_out, SHARD)


def office(stack: ExitStack) -> Setter:
    from training.typeset.office import shard

    return lambda number, held_out: shard(seeded("office", number, held_out), held_out, SHARD)


ENGINES: dict[str, Callable[[ExitStack], Setter]] = {
    "chromium": partial(chromium, "chromium", html.page),
    "journals": partial(chromium, "journals", journals.page),
    "latex": latex,
    "office": office,
}


def shards(engine: str, folder: Path, pages: int, held_out: bool, part: tuple[int, int]) -> None:
    """Render every shard of `pages` pages that is not there yet and belongs to this part."""
    root = folder / ("held_out" if held_out else "train") / engine
    with ExitStack() as stack:
        setter = None
        for i in range(part[0], -(-pages // SHARD), part[1]):
            path, began = root / f"{i:05}.npz", time.time()
            if path.exists():
                continue
            setter = setter or ENGINES[engine](stack)
            write(path, setter(i, held_out))
            print(f"{path}  {(time.time() - began) / SHARD:.2f} s a page", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.typeset.render", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", choices=tuple(ENGINES), default="chromium")
    parser.add_argument("--pages", type=int, default=2400)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--part", default="0/1", help="which of how many processes this one is")
    args = parser.parse_args()
    part = tuple(map(int, args.part.split("/")))
    if len(part) != 2 or not 0 <= part[0] < part[1]:
        sys.exit(f"--part {args.part}: expected 0/2, say")
    shards(args.engine, args.folder, args.pages, args.held_out, (part[0], part[1]))


if __name__ == "__main__":
    main()
