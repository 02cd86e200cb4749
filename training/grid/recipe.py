"""The recipe of the split network: its examples, its loss, its scores."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.grid import targets
from training.grid.examples import Example, Source, draw, opened, padded
from training.grid.network import Size, Split
from training.grid.pack import Packs
from training.grid.truth import Layout
from training.loop import Logs, Recipe

WEIGHTS = {"rows": (2.0, 0.5, 0.5, 0.3), "columns": (2.0, 0.5), "gaps": 0.5}


class Separators(Recipe):
    """Pictures of tables of all sizes; a batch has those of much the same size.

    real: tables of the training split; sets: others by name, which are scored, and never trained on.
    share: how many of the examples are real tables.
    """

    name = "separators"
    batch, fresh, pool, together = 8, 4, 1600, 16
    part = 4  # of a batch that are computed together
    rate, decay, clip = 2e-3, 1e-3, 5.0

    def __init__(
        self,
        typeset: Packs,
        held_out: Packs,
        real: Sequence[Source] = (),
        sets: dict[str, Sequence[Source]] | None = None,
        share: float = 0.3,
        steps: int = 40000,
        **size: Any,
    ):
        self.typeset, self.held_out, self.real, self.sets = typeset, held_out, list(real), dict(sets or {})
        self.share, self.steps = share if real else 0.0, steps
        sizes = Size(**size)
        self.config = sizes._asdict()
        self.model = Split(sizes).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.modules = nn.ModuleDict({"model": self.model})
        self._typeset: list[Example] = []

    def stage(self, step: int) -> int:
        return 0

    def side(self, stage: int) -> int:
        return 0

    def size(self, example: Example) -> float:
        """Like shapes stand together, and of these like areas, so that a batch pads little."""
        H, W = example.pixels.shape
        return 10.0 * round(2 * math.log2(H / W)) + math.log10(H * W)

    def example(self, rng: random.Random, stage: int) -> Example:
        source = rng.choice(self.real) if rng.random() < self.share else self.typeset.draw(rng)
        return draw(opened(source), source.layout, rng)

    def loss(self, examples: list[Example], rng: random.Random, step: int) -> tuple[Tensor, Logs]:
        parts = [self._loss(examples[i : i + self.part], step) for i in range(0, len(examples), self.part)]
        logs = {name: sum(found[name] for _, found in parts) / len(parts) for name in parts[0][1]}
        return torch.stack([loss for loss, _ in parts]).mean(), logs

    def _loss(self, batch: list[Example], step: int) -> tuple[Tensor, Logs]:
        high, wide = (-(-max(e.pixels.shape[k] for e in batch) // 32) * 32 for k in (0, 1))
        pixels = np.stack([padded(e.pixels, high, wide) for e in batch])
        out = self.model(scaled(pixels))
        logs: Logs = {}
        total = torch.zeros(())
        for axis, name in ((1, "rows"), (0, "columns")):
            made = [targets.lines(e.layout, axis, (high, wide)[1 - axis]) for e in batch]
            truth, weight = (torch.from_numpy(np.stack([m[k] for m in made])) for k in (0, 1))
            each = F.binary_cross_entropy_with_logits(out[name].float(), truth, reduction="none") * weight
            for k, of in enumerate(("separator", "inside", "header", "heading")[: truth.shape[-1]]):
                part = each[..., k].sum() / weight[..., k].sum().clamp(min=1)
                total = total + WEIGHTS[name][k] * part
                if k < 1:
                    logs[f"{name}_{of}"] = part.item()
        for axis, name in ((1, "row_gaps"), (0, "column_gaps")):
            maps = out[name].float()
            part, of = torch.zeros(()), 0.0
            for b, e in enumerate(batch):
                found = targets.edges(e.layout, axis, tuple(maps.shape[1:]), np.random.default_rng(step))  # type: ignore[arg-type]
                if len(found.places):
                    logits = mean_over(maps[b], torch.from_numpy(found.places))
                    w = torch.from_numpy(found.weights)
                    each = F.binary_cross_entropy_with_logits(logits, torch.from_numpy(found.apart), reduction="none")
                    part, of = part + (each * w).sum() / w.sum(), of + 1
            part = part / max(1.0, of)
            total = total + WEIGHTS["gaps"] * part
            logs[name] = float(part.detach())
        return total, logs

    def answer(self, example: Example) -> dict[str, np.ndarray]:
        with torch.no_grad():
            out = self.model(scaled(example.pixels[None]))
        return {name: value[0].float().numpy() for name, value in out.items()}

    def evaluate(self, count: int, stage: int) -> Logs:
        """Scores on held-out typeset tables and on the sets of real ones."""
        if len(self._typeset) != count:
            rngs = [random.Random(f"held out/{i}") for i in range(count)]
            sources = [self.held_out.draw(rng) for rng in rngs]
            self._typeset = [draw(opened(s), s.layout, rng) for s, rng in zip(sources, rngs, strict=True)]
        out = score((e, self.answer(e)) for e in self._typeset)
        logs = {f"typeset_{k}": v for k, v in out.items()}
        for name, sources in self.sets.items():
            real = (draw(opened(s), s.layout, random.Random(0), spoil=False) for s in sources)
            logs |= {f"{name}_{k}": v for k, v in score((e, self.answer(e)) for e in real).items()}
        return logs


def scaled(pixels: np.ndarray) -> Tensor:
    """(B, H, W) uint8 -> (B, 1, H, W), -1 ... 1."""
    x = torch.from_numpy(np.ascontiguousarray(pixels))[:, None].float().div_(127.5).sub_(1)
    return x.contiguous(memory_format=torch.channels_last)


def mean_over(grid: Tensor, places: Tensor) -> Tensor:
    """The means (n,) of a map (Y, X) over parts of it, n of (y0, y1, x0, x1)."""
    s = F.pad(grid, (1, 0, 1, 0)).double().cumsum(0).cumsum(1)
    y0, y1, x0, x1 = places.unbind(1)
    return ((s[y1, x1] - s[y0, x1] - s[y1, x0] + s[y0, x0]) / ((y1 - y0) * (x1 - x0))).float()


def hits(found: np.ndarray, bands: np.ndarray, near: float = 2.0) -> int:
    """How many bands have a separator, each separator in one band at most."""
    count, used = 0, set[int]()
    for low, high in bands:
        own = [i for i, at in enumerate(found) if low - near <= at <= high + near and i not in used]
        if own:
            used.add(own[0])
            count += 1
    return count


def score(answers: Any) -> Logs:
    """F1 of separators, both counts right, GriTS-Top of the grid; answers: pairs of an example and the network's."""
    total = {"rows": [0, 0, 0], "columns": [0, 0, 0]}
    right, top, gaps, n = np.zeros(4), 0.0, np.zeros(2), 0
    for example, out in answers:
        grid, layout = targets.decode(out), example.layout
        counts = []
        for name, axis, found in (("rows", 1, grid.rows), ("columns", 0, grid.columns)):
            bands = layout.bands(axis)
            k = hits(found, bands)
            total[name] = [a + b for a, b in zip(total[name], (k, len(found), len(bands)), strict=True)]
            counts.append(k == len(found) == len(bands))
        right += [*counts, all(counts), grid.heads == layout.heads]
        if all(counts):
            gaps += [sorted(grid.cells) == true_cells(layout), 1]
        top += grits_top(layout, grid)
        n += 1
    logs = {f"{name}_f1": 2 * k / max(1, f + t) for name, (k, f, t) in total.items()}
    names = "rows_right", "columns_right", "both_right", "heads_right"
    logs |= dict(zip(names, (right / max(1, n)).tolist(), strict=True))
    return {**logs, "cells_right": gaps[0] / max(1, gaps[1]), "top": top / max(1, n), "tables": n}


def true_cells(layout: Layout) -> list[tuple[int, int, int, int]]:
    owner = layout.owners()
    found = set()
    for r in range(layout.rows):
        for c in range(layout.columns):
            rows, columns = np.nonzero(owner == owner[r, c])
            found.add((int(rows[0]), int(columns[0]), int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1))
    return sorted(found)


def grits_top(layout: Layout, grid: targets.Grid) -> float:
    from zoo.apps.tables import Cell, Table
    from zoo.apps.tables.grits import grits

    nowhere = (0.0, 0.0, 0.0, 0.0)

    def table(cells: Any, R: int, C: int) -> Table:
        return Table(
            tuple(Cell(r, c, rs, cs, nowhere) for r, c, rs, cs in cells), (nowhere,) * R, (nowhere,) * C, nowhere
        )

    true = table(true_cells(layout), layout.rows, layout.columns)
    return grits(true, table(grid.cells, len(grid.rows) + 1, len(grid.columns) + 1), "top").f
