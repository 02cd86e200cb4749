"""zoo-table-structure and zoo-table-detect: Table Transformers (https://arxiv.org/abs/2110.00061) of 1 M parameters."""

import random

import numpy as np
from scipy.optimize import linear_sum_assignment

from training import pages, tables
from training.detr import Detr, Example, Group, Size, iou, middles
from training.loop import Logs
from training.tables import COLUMN, HEADER, LABELS, PROJECTED, ROW, SPAN, TABLE


def best_along(boxes: np.ndarray, scores: np.ndarray, axis: int) -> list[int]:
    """The boxes that overlap no better one by half of the shorter along the axis, as in `zoo.apps.tables`."""
    low, high = boxes[:, axis] - boxes[:, axis + 2] / 2, boxes[:, axis] + boxes[:, axis + 2] / 2
    kept: list[int] = []
    for i in np.argsort(-scores):
        shared = [min(high[i], high[j]) - max(low[i], low[j]) for j in kept]
        if all(s < 0.5 * min(high[i] - low[i], high[j] - low[j]) for s, j in zip(shared, kept, strict=True)):
            kept.append(int(i))
    return kept


class Structure(Detr):
    name, labels, fresh = "structure", LABELS, 2
    # A part that is missed costs more than one too many, which suppression takes away. Tables and headers have a query
    # each, to be as sure of none, and dozens for rows would outweigh it.
    groups = Group(ROW, 1, 64, 0.2), Group(COLUMN, 32, 1, 0.2), Group(TABLE, 1, 1, 1, 3), Group(HEADER, 1, 1, 1, 5)
    groups += Group(PROJECTED, 1, 24, 0.2, 2), Group(SPAN, 6, 4, 0.2, 2)
    stages = ((0, 128, 4, 6), (800, 192, 6, 10), (1400, 256, 8, 15), (2000, 320, 12, 25))
    default = Size(128, 24, [24, 48, 96], [1, 1, 2], layers=2, decoder_layers=3, feed_forward=256)

    def draw(self, rng: random.Random, stage: int, held_out: bool = False) -> Example:
        _, side, columns, rows = self.stages[stage]
        pixels, boxes = tables.square(tables.table(rng, columns, rows, held_out), side, rng)
        return Example(pixels, np.concatenate([boxes[:, :1], middles(boxes[:, 1:])], 1))

    def evaluate(self, count: int, stage: int) -> Logs:
        """Parts of the held-out tables with all columns, all rows, both, and the right number of header rows."""
        columns = rows = both = heads = 0
        for labels, boxes, e in self.found(count, stage):
            kept = {}
            for label, axis in ((COLUMN, 0), (ROW, 1)):
                at = np.flatnonzero(labels[:, 0] == label)
                kept[label] = boxes[at][best_along(boxes[at], labels[at, 1], axis)]
            right = {k: len(kept[k]) == (e.boxes[:, 0] == k).sum() for k in kept}
            columns, rows, both = columns + right[COLUMN], rows + right[ROW], both + (right[COLUMN] and right[ROW])
            heads += header_rows(kept[ROW], boxes[labels[:, 0] == HEADER]) == header_rows(
                e.boxes[e.boxes[:, 0] == ROW, 1:], e.boxes[e.boxes[:, 0] == HEADER, 1:]
            )
        return {
            "columns": columns / count,
            "rows": rows / count,
            "both": both / count,
            "header_rows": heads / count,
            "tables": count,
        }


def header_rows(rows: np.ndarray, header: np.ndarray) -> int:
    """The number of rows whose middle is in the header."""
    return int((np.abs(rows[:, 1] - header[0, 1]) < header[0, 3] / 2).sum()) if len(header) else 0


class Detector(Detr):
    name, labels, fresh = "detect", ("table",), 1
    groups = (Group(0, 4, 8, 0.4),)
    stages = ((0, 256, 0, 0), (4500, 384, 0, 0))
    default = Size(96, 16, [16, 32, 64], [1, 1, 1], layers=1, decoder_layers=2, feed_forward=192)

    overlap = 5.0  # to tell a table of three rows from one of four

    def draw(self, rng: random.Random, stage: int, held_out: bool = False) -> Example:
        least = 0 if held_out else rng.choice([0, 1, 2, 2])  # a page without a table teaches little
        pixels, boxes = pages.square(pages.page(rng, held_out, least=least), self.side(stage), rng)
        return Example(pixels, np.concatenate([np.zeros((len(boxes), 1), np.float32), middles(boxes)], 1))

    def evaluate(self, count: int, stage: int) -> Logs:
        """Recall and precision at an IoU of 0.8, over all tables of the held-out pages."""
        hit = true = found = 0
        for _, boxes, e in self.found(count, stage):
            true, found = true + len(e.boxes), found + len(boxes)
            pairs = iou(boxes, e.boxes[:, 1:]) >= 0.8
            rows, columns = linear_sum_assignment(-pairs.astype(float))
            hit += int(pairs[rows, columns].sum())
        return {"recall": hit / max(1, true), "precision": hit / max(1, found), "pages": count}
