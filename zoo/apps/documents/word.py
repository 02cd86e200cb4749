"""A word with its place on a page, and the checks of its fields, which a table's cells share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...errors import TableError
from ...images.boxes import Box


@dataclass(frozen=True)
class Word:
    """A piece of text with its place in the image, from OCR or from a PDF's text layer."""

    text: str
    box: Box
    confidence: float = 1.0
    # The direction of the text: degrees clockwise from left to right, so that 90 is downwards and -90 upwards; it is
    # brought into -180 ... 180.  None where the direction is not known.
    angle: float | None = None
    # Why the text may not be what is seen, for a word of a PDF's text layer (`text_layer`); None if nothing says so.
    doubt: str | None = None

    def __post_init__(self) -> None:
        set_fields(self, box=check_box(self.box, "a word's box"))
        set_fields(self, confidence=check_number(self.confidence, "a word's confidence"))
        if self.angle is not None:
            set_fields(self, angle=180 - (180 - check_number(self.angle, "a word's angle")) % 360)
        check_text(self.text, "a word")


def set_fields(instance: Any, **values: Any) -> None:
    """Replace fields of a frozen dataclass, which only its own `__post_init__` may do."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def check_box(value: Any, what: str) -> Box:
    """Four finite floats in order, whichever number types they had."""
    try:
        x0, y0, x1, y1 = (check_number(v, what) for v in value)
    except (TypeError, ValueError):
        raise TableError(f"{what} is {value!r}, expected four finite numbers (x0, y0, x1, y1)") from None
    if x1 < x0 or y1 < y0:
        raise TableError(f"{what} is {(x0, y0, x1, y1)}, expected x0 <= x1 and y0 <= y1")
    return x0, y0, x1, y1


def check_number(value: Any, what: str) -> float:
    """A finite float."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise TableError(f"{what} is {value!r}, expected a finite number")
    return number


def check_text(text: Any, where: str) -> None:
    """Refuse a lone surrogate, which no file could hold."""
    if not isinstance(text, str):
        raise TableError(f"the text of {where} is {text!r}, expected a str")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise TableError(
            f"the text of {where} has a lone surrogate, U+{ord(text[e.start]):04X}, at {e.start}"
        ) from None
