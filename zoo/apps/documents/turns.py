"""Whether the lines of a page stand upright, upside down or on their side, by the shapes of their letters.

Pieces of lines are cut out of the page, WINDOW pixels each, and a small network (zoo/data/line-turns.safetensors, made
by `training.turns`) says of each how likely it is of an upright page, of one upside down, or of one on its side.

Shapes: H, W of the picture, h, w of what it is reduced to, N pieces.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from ... import ops
from .tilt import reduce_image

WEIGHTS = Path(__file__).parents[2] / "data" / "line-turns.safetensors"
NOT_TURNED, UPSIDE_DOWN, SIDEWAYS = range(3)
NAMES = ("upright", "upside down", "sideways")

WINDOW = 32, 96  # pixels of a piece of a line, three times as wide as high
WINDOW_HEIGHT = 1.5  # heights of the line's ink are that of a piece
MAX_WINDOWS = 24  # the most that are looked at in a page
STRIP = 64  # columns of the reduced picture: as wide as a piece of a line of small print
STROKE = 24  # grey levels from a pixel to the next: the side of a letter's stroke
MIN_STROKES = 3  # sides of strokes in a row of pixels of a strip with text
RULE_ROWS = 32  # rows in which a rule has a side without a break, and letters have not; a power of two
MIN_ROWS, MAX_ROWS = 4, 64  # rows of a line
MIN_GAP = 0.15  # least gap between two lines, in heights of the lower one
INK_QUANTILE = 0.97  # the share of pixels that are no farther from paper than ink is
MIN_INK = 16  # grey levels between ink and paper, at least

MIN_WINDOWS = 3  # pieces that say anything
MIN_LOG_CHANCE = -4.0  # nats: no piece speaks more against a turn
MAX_EVIDENCE = 8  # pieces of a page are not independent: more count as these


def turn_chances(grey: np.ndarray) -> np.ndarray:
    """(3,) nats for each of NOT_TURNED, UPSIDE_DOWN and SIDEWAYS: how well a level picture (H, W) uint8 fits it.

    The differences count; they are 0.0 where there is hardly any text.
    """
    windows = text_windows(grey)
    if len(windows) < MIN_WINDOWS:
        return np.zeros(3)
    return log_chances(windows).clip(MIN_LOG_CHANCE).mean(0) * min(len(windows), MAX_EVIDENCE)


def log_chances(windows: np.ndarray) -> np.ndarray:
    """The logarithm of the probability of NOT_TURNED, UPSIDE_DOWN and SIDEWAYS for pieces (N, *WINDOW): (N, 3)."""
    weights = _weights()
    x: Any = windows[..., None]
    for name, stride, padding in (("conv1", 2, 2), ("conv2", 2, 1), ("conv3", 2, 1), ("conv4", 1, (0, 1))):
        x = ops.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], stride, padding, act="relu")
    logits = x.mean((1, 2)) @ weights["head.weight"].T + weights["head.bias"]
    return logits - np.logaddexp.reduce(logits, 1, keepdims=True)


@functools.cache
def _weights() -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return {name: value.astype(np.float32) for name, value in load_file(WEIGHTS).items()}


def text_windows(grey: np.ndarray, most: int = MAX_WINDOWS) -> np.ndarray:
    """Pieces of the lines of text of a level picture (H, W) uint8, from all over it: (N, *WINDOW) float32.

    0 is paper and 1 ink, whichever of the two is darker; N is `most` at most.
    """
    from PIL import Image

    small = reduce_image(grey)
    found = _lines(small) * (grey.shape[0] // max(1, len(small)))
    found = found[np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)]
    windows = np.zeros((len(found), *WINDOW), np.uint8)
    for window, (x, top, bottom) in zip(windows, found.tolist(), strict=True):
        high = WINDOW_HEIGHT * (bottom - top)
        wide, y = high * WINDOW[1] / WINDOW[0], (top + bottom) / 2
        y0, y1 = max(round(y - high / 2), 0), min(round(y + high / 2), grey.shape[0])
        x0, x1 = max(round(x - wide / 2), 0), min(round(x + wide / 2), grey.shape[1])
        width = max(1, min(WINDOW[1], round((x1 - x0) * WINDOW[0] / (y1 - y0))))
        part = Image.fromarray(grey[y0:y1, x0:x1]).resize((width, WINDOW[0]), Image.Resampling.BILINEAR)
        left = (WINDOW[1] - width) // 2
        window[:, left : left + width] = np.asarray(part)
        window[:, :left], window[:, left + width :] = window[:, [left]], window[:, [left + width - 1]]
    return np.stack([_ink_of(window) for window in windows]) if len(windows) else np.zeros((0, *WINDOW), np.float32)


def _ink_of(window: np.ndarray) -> np.ndarray:
    """How far the pixels of a piece, uint8, are from paper, their median, on the way to ink: float32, 0 to 1."""
    counts = np.bincount(window.ravel(), minlength=256)
    away = np.abs(np.arange(256) - np.searchsorted(counts.cumsum(), window.size / 2))
    ink = np.searchsorted(np.bincount(away, counts).cumsum(), INK_QUANTILE * window.size)
    return np.minimum(away / max(int(ink), MIN_INK), 1).astype(np.float32)[window]


def _lines(small: np.ndarray) -> np.ndarray:
    """(N, 3): x of the middle, top and bottom of the text of each line in each strip of a picture (h, w) int16."""
    sides = np.abs(np.diff(small, axis=1)) > STROKE
    h, w = sides.shape
    if h < MIN_ROWS or not w:
        return np.zeros((0, 3))
    sides &= ~_rules(sides)
    n = -(-w // STRIP)
    strips = np.zeros((h, n * STRIP), np.uint8)
    strips[:, :w] = sides
    strips = strips.reshape(h, n, STRIP).swapaxes(0, 1)  # (n, h, STRIP)
    some = np.zeros((n, h + 2), np.int8)
    some[:, 1:-1] = strips.sum(2, dtype=np.uint8) >= MIN_STROKES
    (strip, top), (_, bottom) = (
        edges.reshape(-1, 2, 2)[:, i].T for edges in [np.argwhere(np.diff(some))] for i in (0, 1)
    )
    high = bottom - top
    near = (strip[1:] == strip[:-1]) & (
        top[1:] - bottom[:-1] < np.maximum(2, MIN_GAP * np.minimum(high[1:], high[:-1]))
    )
    good = (high >= MIN_ROWS) & (high <= MAX_ROWS) & (top > 0) & (bottom < h)
    good[1:] &= ~near
    good[:-1] &= ~near
    found, columns = [], np.arange(STRIP) + 0.5
    for s, a, b in zip(*(of[good].tolist() for of in (strip, top, bottom)), strict=True):
        ink = strips[s, a:b].sum(0, dtype=np.int32)
        found.append((s * STRIP + float(ink @ columns) / float(ink.sum()), a, b))
    return np.array(found).reshape(-1, 3)


def _rules(sides: np.ndarray) -> np.ndarray:
    """Where columns have a side in RULE_ROWS rows or more without a break: (h, w) bool."""
    whole, steps = sides, [1 << i for i in range(RULE_ROWS.bit_length() - 1)]
    for step in steps:  # from each row on over twice as many rows
        whole = whole[:-step] & whole[step:]
    for step in steps:
        longer = np.zeros((len(whole) + step, *whole.shape[1:]), bool)
        longer[:-step] = whole
        longer[step:] |= whole
        whole = longer
    return whole if len(sides) >= RULE_ROWS else np.zeros_like(sides)
