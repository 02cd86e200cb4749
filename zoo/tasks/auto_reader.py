"""AutoReader: two readers of lines, the second of which reads what the first is not sure of."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..checkpoint.installed import is_installed
from ..options import DEFAULTS, Options
from .line_reader import CtcReader, LineScripts
from .line_texts import LineReading
from .scripts import MAX_CONFIDENCE

if TYPE_CHECKING:
    from .read import Read

AUTO_READER = "auto"  # the name that stands for both of these
FIRST_NAME, SECOND_NAME = "zoo-read", "pp-ocrv6-small"
SURE_CONFIDENCE = 0.95  # the confidence from which on a line is not read again


class AutoReader:
    """zoo-read, and PP-OCR for lines that zoo-read is unsure of, or that are in a script that it does not know.

    Of two readings of a line the one with the higher confidence counts, unless its reader does not know the script.
    Where the package with the second reader is not installed, the first reads alone.
    """

    def __init__(self, first: Read, second: CtcReader):
        self.first, self.second = first, second
        self.model, self.source = first.model, f"{first.source} or {second.source}"
        known = first.scripts.scripts if first.scripts is not None else ()
        self.scripts = LineScripts(tuple(dict.fromkeys((*known, *second.scripts.scripts))))

    def __call__(self, images: Sequence[np.ndarray]) -> list[LineReading]:
        return self.read_lines(images)

    def read_lines(self, images: Sequence[np.ndarray]) -> list[LineReading]:
        """What the images (h, w, 3) uint8 of single lines say; script_odds above 0: neither reader knows the script."""
        found = self.first.read_lines(images)
        check = self.first.scripts
        foreign = [False] * len(found) if check is None else check.find_unknown(found)
        unsure = [i for i, line in enumerate(found) if foreign[i] or line.confidence < SURE_CONFIDENCE]
        again = dict(zip(unsure, self.second.read_lines([images[i] for i in unsure]), strict=True))
        known = () if check is None else check.scripts
        return [_choose_reading(line, foreign[i], again.get(i), known) for i, line in enumerate(found)]


def _choose_reading(
    first: LineReading, is_foreign: bool, second: LineReading | None, scripts: Sequence[str]
) -> LineReading:
    """scripts: those of the first reader; a line foreign to it is in none of them, whatever the second says."""
    known, unknown = -math.inf, math.inf
    knows = second is not None and second.script_odds <= 0 and second.text.strip()
    if is_foreign and second is not None:
        letters = [c for c in second.text if c.isalpha()]
        knows = knows and (not letters or any(_script_of(c) not in scripts for c in letters))
    if second is not None and knows and (is_foreign or second.confidence > first.confidence):
        return second._replace(script_odds=known)
    if is_foreign:
        return first._replace(confidence=min(first.confidence, MAX_CONFIDENCE), script_odds=unknown)
    return first._replace(script_odds=known)


def _script_of(letter: str) -> str:
    """The first word of its name in Unicode: "Latin", "Greek", "Cjk"."""
    return unicodedata.name(letter, "").partition(" ")[0].title()


def load_auto_reader(options: Options = DEFAULTS) -> AutoReader | Read:
    """The two readers, or zoo-read alone: where the package with the second is not installed, and with a lock."""
    from ..hub import find
    from . import load_task

    first: Read = load_task(FIRST_NAME, "read", options)  # type: ignore[assignment]
    if not is_installed(SECOND_NAME) or options.lock is not None:
        return first
    return AutoReader(first, CtcReader.from_checkpoint(find(SECOND_NAME, options), options))
