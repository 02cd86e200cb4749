"""The odds that a line of text is in a script that its reader does not know, which it would print as letters it knows.

A logistic regression on what the model makes of a line anyway: the mean of the encoder's states over the line, and the
log-probabilities of the characters.  Its weights come with the checkpoint, in scripts.json, which `training.scripts`
makes from drawn lines.  Shapes: S slices of the picture, E the width of their states, F = E + 4 features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError
from ..files.folder import CheckpointFolder
from ..images.lines import grey_of
from .line_texts import LineReading

FILE = "scripts.json"
INK_SHARE = 0.4  # the greatest distance from paper's share: what is farther is ink
MAX_CONFIDENCE = 0.5  # confidence of a text that is taken for another script: it is likelier wrong than right
MIN_CHARACTERS = 3  # characters: one or two are too little ink to be judged by


@dataclass(frozen=True, eq=False)
class ScriptCheck:
    """What scripts.json says: the scripts that a reader knows, and the weights of the regression.

    line_limit, mean_limit: the least log-odds of a line by itself, and the least mean of many lines, that speak of
    another script; marked_limit: the least of a line beside such others.
    """

    scripts: tuple[str, ...]
    weights: np.ndarray  # (F,)
    bias: float
    line_limit: float
    mean_limit: float
    marked_limit: float

    @classmethod
    def from_folder(cls, folder: CheckpointFolder, width: int) -> ScriptCheck | None:
        """The check of a checkpoint whose encoder has this width; None if it has no scripts.json."""
        if not folder.has(FILE):
            return None
        data, where = folder.json(FILE), folder.where(FILE)
        numbers = ("bias", "line_limit", "mean_limit", "marked_limit")
        try:
            weights = np.array(data["weights"], np.float64)
            found = cls(tuple(map(str, data["scripts"])), weights, *(float(data[name]) for name in numbers))
        except (KeyError, TypeError, ValueError) as e:
            raise ConfigError(f"{where}: a field is missing or wrong: {e}") from None
        if weights.shape != (width + 4,):
            raise ConfigError(f"{where}: weights has the shape {weights.shape}, expected ({width + 4},)")
        return found

    def log_odds(self, features: np.ndarray) -> float:
        """features: (F,), from `line_features`."""
        return float(self.weights @ features + self.bias)

    def find_unknown(self, lines: Sequence[LineReading]) -> list[bool]:
        """For each line of one document, True if it is taken for text in a script that is not known.

        Lines are judged together: one that speaks of another script may be odd print, most of them are none.  A line
        that was read without a letter, such as a number, is only judged alone.
        """
        odds = np.array([line.script_odds for line in lines])
        lettered = np.array([any(map(str.isalpha, line.text)) for line in lines], bool)
        long = np.array([len(line.text) >= MIN_CHARACTERS for line in lines], bool)
        alone = (odds >= self.line_limit) & long
        judged = odds[(lettered & long) | alone].clip(-self.line_limit, self.line_limit)
        if not len(judged):
            return [False] * len(lines)
        least = self.mean_limit + (self.line_limit - self.mean_limit) / len(judged)
        return (alone | ((judged.mean() >= least) & lettered & (odds >= self.marked_limit))).tolist()

    def warning(self, name: str) -> str:
        """The warning for a document with such lines; name: the reader's."""
        known = ", ".join(self.scripts)
        return (
            f"there is text in a script or a hand that {name} cannot read (it knows {known} print), which is doubtful: "
            "--ocr rapidocr (ocr='rapidocr') reads Chinese and Japanese, --ocr tesseract what ZOO_TESSERACT_LANG names"
        )


def line_features(line: np.ndarray, states: np.ndarray, share: float, logprobs: np.ndarray, text: str) -> np.ndarray:
    """The features (F,) of a line (h, w, 3) uint8, whose ink decides which slices count.

    states: (S + 1, E), a class token first; the line fills this share of the slices.  logprobs: of the characters that
    were read, and of the end.
    """
    (h, w), count = line.shape[:2], max(1, round(share * (len(states) - 1)))
    grey = grey_of(line)
    away = np.abs(grey - np.median(grey)).max(0)  # (w,)
    ink = np.logical_or.reduceat(away > away.max() * INK_SHARE, np.arange(count) * w // count)
    inner = states[1 : 1 + count][ink if ink.any() else slice(None)].mean(0, dtype=np.float64)
    marks = [logprobs.mean(), logprobs.min(), np.median(logprobs), len(text) * h / w]
    return np.concatenate([inner, np.array(marks, np.float64)])
