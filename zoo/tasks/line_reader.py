"""CtcReader: a reader of lines that gives each place's character, such as PP-OCR's.

Shapes: B lines of a batch, T places, V characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import ConfigError
from ..images.lines import is_blank, split_words
from ..images.text_lines import FILE, LineProcessor
from ..pretrained import Pretrained
from ..runner import runner_for
from ..text.ctc import CtcText, decode_best_path
from .image_task import floats
from .line_texts import LineReading
from .line_words import LineWord, words_of_characters
from .scripts import MAX_CONFIDENCE, MIN_CHARACTERS

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint
    from ..options import Options

BATCH_WIDTH = 2560  # pixels of all lines of a batch, whose outputs then have 25 MB with 18,710 characters
MAX_UNREAD = 0.2  # share of a line's ink: with more far from any letter, the line is in a script that is not known
UNKNOWN_SHARE = 0.5  # share of the lines with letters: with more in an unknown script, all of them are
REACH = 0.55  # heights of the line: ink that is so near to the middle of a character belongs to it
MIN_LETTER = 0.25  # heights of the line: ink that is lower is dots and dashes
SMALL_SIGNS = frozenset(".,;:'\"`´-–—_·•…~^°。、，．：；‘’“”～")  # signs whose ink may be taken for a letter's
INK_CONTRAST = 0.35  # share of the line's greatest contrast to its paper: what has more is ink
# Letters by which a script is known: a reader that has them all has the script.
SCRIPT_LETTERS = {
    "Latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "Greek": "αβγδεζηθικλμνξοπρστυφχψωάέήίόύώ",
    "Cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "Chinese": "的一是不了人我在有他这中大来上国",
    "Japanese": "あいうえおかきくけこさしすせそアイウエオカキクケコ",
    "Korean": "가나다라마바사아자차카타파하",
    "Arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "Hebrew": "אבגדהוזחטיכלמנסעפצקרשת",
    "Thai": "กขคงจฉชซดตถทธนบปผพฟภมยรลวสหอ",
    "Devanagari": "अआइईउऊएकखगघचछजटठडतथदधनपफबभमयरलवशसह",
}


class LineScripts(NamedTuple):
    """The scripts that a reader of lines has the letters of, as `ScriptCheck` says it of zoo-read."""

    scripts: tuple[str, ...]

    def find_unknown(self, lines: Sequence[LineReading]) -> list[bool]:
        """For each line of one document, True if it is taken for text in a script that is not known.

        Where that is true of half of the lines with letters, the others may be words whose letters look alike.
        """
        unknown = [line.script_odds > 0 for line in lines]
        lettered = [odd or any(map(str.isalpha, line.text)) for odd, line in zip(unknown, lines, strict=True)]
        return lettered if any(unknown) and sum(unknown) >= UNKNOWN_SHARE * sum(lettered) else unknown

    def warning(self, name: str) -> str:
        """The warning for a document with such lines; name: the reader's."""
        known = ", ".join(self.scripts)
        problem = f"there is text in a script or a hand that {name} cannot read (it has the letters of {known})"
        return f"{problem}, which is doubtful: --ocr tesseract reads what ZOO_TESSERACT_LANG names"


class _PartReading(NamedTuple):
    """The text of a line or of a part of one, the share of its ink that has no character, its width, and its words."""

    text: CtcText
    unread: float
    width: int
    words: list[LineWord]


class CtcReader:
    """Images of lines to what they say.

    `scripts.scripts` are those whose letters its alphabet has.  Text in another one comes out as spaces and signs that
    look sure: where a good part of a line's ink has no character, its confidence is at most 0.5, and its `script_odds`
    are above 0.
    """

    def __init__(self, model: Pretrained, processor: LineProcessor, source: str = "the model"):
        self.model, self.processor, self.runner, self.source = model, processor, runner_for(model), source

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, options: Options) -> CtcReader:
        from ..loading import model_of

        processor = LineProcessor.from_folder(checkpoint.contents)
        count, wanted = len(processor.characters), getattr(checkpoint.config, "head_out_channels", 0)
        if count != wanted:
            where = checkpoint.contents.where(FILE)
            raise ConfigError(f"{where}: character_list has {count} characters, expected {wanted}, as the head gives")
        return cls(model_of(checkpoint, options, head="ForTextRecognition"), processor, checkpoint.name)

    @cached_property
    def scripts(self) -> LineScripts:
        known = frozenset(self.processor.characters)
        return LineScripts(tuple(name for name, letters in SCRIPT_LETTERS.items() if known.issuperset(letters)))

    def __call__(self, images: Sequence[np.ndarray]) -> list[LineReading]:
        return self.read_lines(images)

    def read_lines(self, images: Sequence[np.ndarray]) -> list[LineReading]:
        """What the images (h, w, 3) uint8 of single lines say; of one colour: "", with confidence 0."""
        parts: list[np.ndarray] = []
        owners: list[int] = []
        for i, image in enumerate(images):
            if not is_blank(image):
                cuts = split_words(image, self.processor.max_ratio)
                parts += [image[:, x0:x1] for x0, x1 in cuts]
                owners += [i] * len(cuts)
        read: list[list[_PartReading]] = [[] for _ in images]
        for i, one in zip(owners, self._read(parts), strict=True):
            read[i].append(one)
        return [_join_parts(of_line) for of_line in read]

    def _read(self, lines: Sequence[np.ndarray]) -> list[_PartReading]:
        found: list[_PartReading | None] = [None] * len(lines)
        widths = [self.processor.widths(line.shape) for line in lines]
        order = sorted(range(len(lines)), key=lambda i: widths[i])
        while order:
            padded = widths[order[0]][1]
            count = min(sum(widths[i][1] == padded for i in order), max(1, BATCH_WIDTH // padded))
            batch, order = order[:count], order[count:]
            pixels = self.processor([lines[i] for i in batch])
            probabilities = floats(self.runner(self.model, pixels).last_hidden_state)  # (B, T, V)
            for i, one, of_line in zip(batch, probabilities, pixels, strict=True):
                text = decode_best_path(one, self.processor.characters)
                unread = unread_ink(of_line[:, : widths[i][0]], text, len(one) / padded)
                unread = max(unread, self._partial_share(text.characters))
                middles = (text.places + 0.5) * (padded / len(one)) * (lines[i].shape[1] / widths[i][0])
                words = words_of_characters(text, middles, lines[i])
                found[i] = _PartReading(text, unread, lines[i].shape[1], words)
        return [one for one in found if one is not None]

    def _partial_share(self, characters: Sequence[str]) -> float:
        """The share of letters in scripts of which the alphabet lacks some: Greek without accents loses the others."""
        letters = [c.lower() for c in characters if c.isalpha()]
        partial = "".join(of for name, of in SCRIPT_LETTERS.items() if name not in self.scripts.scripts)
        return sum(c in partial for c in letters) / len(letters) if len(letters) >= MIN_CHARACTERS else 0.0


def unread_ink(line: np.ndarray, text: CtcText, places: float) -> float:
    """The share of the ink of a line (h, w, 3) that is far from the middle of every character that can be seen.

    places: per pixel.
    """
    grey = line.mean(-1)
    contrast = np.abs(grey - np.median(np.concatenate([grey[0], grey[-1]])))
    inked, rows = contrast > INK_CONTRAST * contrast.max(), np.arange(len(line))[:, None]
    extent = np.where(inked, rows, 0).max(0) - np.where(inked, rows, len(line)).min(0) + 1
    ink = inked.sum(0) * (extent >= MIN_LETTER * len(line))  # (w,)
    if not ink.any():
        return 0.0
    seen = [not c.isspace() and c not in SMALL_SIGNS for c in text.characters]
    middles = (text.places[seen] + 0.5) / places
    if not len(middles):
        return 1.0
    distance = np.abs(np.arange(line.shape[1])[:, None] + 0.5 - middles).min(1)
    return float(ink[distance > REACH * len(line)].sum() / ink.sum())


def _join_parts(parts: Sequence[_PartReading]) -> LineReading:
    if not parts:
        return LineReading("", 0.0, -MAX_UNREAD)
    text = " ".join(one.text.text.strip() for one in parts) if len(parts) > 1 else parts[0].text.text
    weights = np.array([max(1, len(one.text.characters)) for one in parts])
    confidence = float(np.average([one.text.confidence for one in parts], weights=weights))
    odds = float(np.average([one.unread for one in parts], weights=weights)) - MAX_UNREAD
    words, before, whole = [], 0, sum(one.width for one in parts)
    for one in parts:
        places = ((before + one.width * at) / whole for word in one.words for at in (word.start, word.end))
        words += [word._replace(start=next(places), end=next(places)) for word in one.words]
        before += one.width
    return LineReading(text, min(confidence, MAX_CONFIDENCE) if odds > 0 else confidence, odds, tuple(words))
