"""This module has the recipes of training on a mix of drawn examples and typeset ones."""

import random
from typing import Any

import numpy as np

from training.detector import Detector, Structure
from training.detr import Example, middles
from training.lines import Line
from training.loop import Logs
from training.reader import Reader, read
from training.text import score
from training.typeset import examples
from training.typeset.cache import Pages


class Mixed:
    """This class holds what the recipes below have in common: a part `share` of their examples is typeset."""

    def __init__(self, pages: Pages, held_out: Pages, share: float = 0.6, **options: Any):
        super().__init__(**options)
        self.pages, self.held_out_pages, self.share = pages, held_out, share
        self.typeset = False  # what scores are taken on
        self.scored_on: dict[bool, list[Any]] = {}

    def both(self, scores: Any) -> Logs:
        """Return the scores on drawn held-out examples and, with a prefix, those on typeset ones."""
        out: Logs = {}
        for self.typeset, prefix in ((False, ""), (True, "typeset_")):
            self._held_out = self.scored_on.get(self.typeset, [])
            out |= {prefix + k: v for k, v in scores().items()}
            self.scored_on[self.typeset] = self._held_out
        return out

    def set(self, rng: random.Random, held_out: bool) -> bool:
        """Decide if an example is to be a typeset one."""
        return self.typeset if held_out else rng.random() < self.share


class MixedDetector(Mixed, Detector):
    fresh, pool = 4, 1000

    def draw(self, rng: random.Random, stage: int, held_out: bool = False) -> Example:
        if not self.set(rng, held_out):
            return super().draw(rng, stage, held_out)
        sheet = (self.held_out_pages if held_out else self.pages).draw(rng)
        pixels, boxes = examples.square(*examples.seen(sheet, rng), self.side(stage))
        return Example(pixels, np.concatenate([np.zeros((len(boxes), 1), np.float32), middles(boxes)], 1))

    def evaluate(self, count: int, stage: int) -> Logs:
        return self.both(lambda: super(MixedDetector, self).evaluate(count, stage))


class MixedStructure(Mixed, Structure):
    fresh, pool = 4, 1000

    def draw(self, rng: random.Random, stage: int, held_out: bool = False) -> Example:
        if not self.set(rng, held_out):
            return super().draw(rng, stage, held_out)
        while not (sheet := (self.held_out_pages if held_out else self.pages).draw(rng)).tables:
            pass
        table = rng.choice(sheet.tables)
        image, parts = examples.structure(sheet, table, examples.window(table, rng), rng)
        pixels, boxes = examples.square(image, parts[:, 1:], self.side(stage))
        return Example(pixels, np.concatenate([parts[:, :1], middles(boxes)], 1))

    def evaluate(self, count: int, stage: int) -> Logs:
        return self.both(lambda: super(MixedStructure, self).evaluate(count, stage))


class MixedReader(Mixed, Reader):
    waiting: list[Line]

    def example(self, rng: random.Random, stage: int) -> Line:
        return self.line(rng, self.pages, 4 * stage) if self.set(rng, False) else super().example(rng, stage)

    def line(self, rng: random.Random, pages: Pages, most: int = 40, small: bool = True) -> Line:
        while True:
            sheet = pages.draw(rng)
            of = examples.lines_of(sheet)
            for _ in range(4 if of else 0):
                line = examples.reader_line(sheet, rng.choice(of), rng, most, small)
                if line is not None:
                    return line

    def evaluate(self, count: int, stage: int) -> Logs:
        out = super().evaluate(count, stage)
        kept = self.scored_on.setdefault(True, [])
        if len(kept) != count:
            kept[:] = [self.line(random.Random(f"held out/{i}"), self.held_out_pages) for i in range(count)]
        found: list[str] = []
        for i in range(0, count, 50):
            found += read(self.model, [e.pixels for e in kept[i : i + 50]])
        return out | {f"typeset_{k}": v for k, v in score(found, [e.text for e in kept]).items()}


RECIPES = {"detect": MixedDetector, "structure": MixedStructure, "reader": MixedReader}
