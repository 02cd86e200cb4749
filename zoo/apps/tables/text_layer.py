"""Words of a PDF's text layer that may not be what is seen (`Word.doubt`), compared with the picture of their page.

Boxes are (x0, y0, x1, y1) in pixels of the page.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial

import numpy as np

from ...images.boxes import Box
from ...warning import warn
from ..documents import Word
from ..documents.text_layer import OTHER_LETTERS
from .boxes import HALF_SHARE, bounding_box, inside, shared_height
from .context import MIN_OTHERS
from .doubts import PlacedWords, add_doubts
from .ocr import OcrEngine
from .reading import GuessedWord, LineReader, read_boxes
from .table import Table
from .text_lines import WORD_GAP
from .words import join

# A call (boxes) -> the words that the page's picture has in them.
Reading = Callable[[Sequence[Box]], Sequence[Word]]

MAX_SIGNS = 0.1  # the share of words, each of one letter, that are bullets, ticks and the like of a font of signs
SAMPLE_SIZE = 12  # pieces of text, the longest: they decide for all
MIN_ALIKE = 0.7  # the share of letters that a text and its reading have in common, if it is the text on the page
# Median confidence of readings in a script that the reader knows: 1.0 in Latin, 0.7 in Cyrillic.
KNOWN_CONFIDENCE = 0.95
MIN_CONFIDENCE = 0.5  # confidence of a reading that is taken
MAX_PIECES = 1000  # pieces of text of a page


def read_doubted_words(words: Sequence[Word], read: Reading | None) -> list[Word] | None:
    """The words of a page, those with a doubt as its picture has them; None if all are to be read there.

    A font that has the letters that are seen loses its doubt.  What cannot be read in the picture, as in a script that
    the reader does not know, stays as it is, with its doubt; so do all without a reader, and a few lone signs.
    """
    doubted = [i for i, word in enumerate(words) if word.doubt]
    if len(doubted) <= MAX_SIGNS * len(words) and all(len(words[i].text) == 1 for i in doubted):
        return list(words)
    what = f"{len(doubted)} of {len(words)} words of the text layer may not be what is seen"
    if read is None:
        warn(f"{what}: {_reasons(words, doubted)}")
        return list(words)
    pieces = _pieces(words, doubted)[:MAX_PIECES]
    longest = sorted(pieces, key=lambda piece: -len(_text(words, piece)))[:SAMPLE_SIZE]
    sample = _readings(words, longest, read)
    if statistics.median(one.confidence for one in sample) < KNOWN_CONFIDENCE:
        warn(f"{what}, and their letters are not known in the picture (--ocr chooses a reader that knows them)")
        return list(words)
    found: list[Word | None] = list(words)
    alike = [
        _similarity(_text(words, piece), one.text)
        for piece, one in zip(longest, sample, strict=True)
        if words[piece[0]].doubt == OTHER_LETTERS
    ]
    if alike and statistics.median(alike) >= MIN_ALIKE:
        found[:] = [replace(word, doubt=None) if word.doubt == OTHER_LETTERS else word for word in words]
        pieces = [piece for piece in pieces if words[piece[0]].doubt != OTHER_LETTERS]
        doubted = [i for piece in pieces for i in piece]
    letters = [len(word.text) for word in words]
    if sum(letters[i] for i in doubted) >= HALF_SHARE * sum(letters):
        warn(f"{what}, and the page is read in its picture: {_reasons(words, doubted)}")
        return None
    for piece, one in zip(pieces, _readings(words, pieces, read), strict=True):
        if one.confidence >= MIN_CONFIDENCE:
            found[piece[0]] = one
            found[piece[0] + 1 : piece[-1] + 1] = [None] * (len(piece) - 1)
    if pieces:
        warn(f"{what}, and are read in the picture: {_reasons(words, doubted)}")
    return [word for word in found if word is not None]


def page_reading(page: np.ndarray, reader: LineReader | None, ocr: OcrEngine | None) -> Reading | None:
    """What reads places of a page (H, W, 3), None without a reader and an engine."""
    if reader is not None:
        return partial(read_boxes, page, reader=reader)
    return None if ocr is None else lambda _: ocr(page)


def add_text_doubts(table: Table, words: Sequence[Word]) -> Table:
    """The table with a doubt for each cell that has one of its `words` with a doubt."""
    found: dict[str, list[int]] = {}
    for word in words:
        if word.doubt:
            of_cells = [inside(word.box, cell.box) for cell in table.cells]
            if of_cells and max(of_cells) > 0:
                found.setdefault(word.doubt, []).append(of_cells.index(max(of_cells)))
    return add_doubts(table, found)


def doubt_other_readings(tables: Sequence[Table], words: Sequence[Word]) -> list[Table]:
    """The tables of a page with a doubt for each cell with a letter that is read otherwise than in most places.

    words: of the text layer, as it was.  A font whose letters stand for others, or for none, has one for each that is
    seen, so those of its words with a doubt show what each letter is mostly read as.
    """
    if not (layer := [word for word in words if word.doubt]):
        return list(tables)
    readings: list[tuple[int, int, str, str]] = []  # table, cell, its letters in the layer and as they were read
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for t, table in enumerate(tables):
        placed = PlacedWords(table, [[word.box] for word in layer])
        of_cells: dict[int, list[Word]] = defaultdict(list)
        for i, cell in zip(placed.line.tolist(), placed.cell.tolist(), strict=True):
            of_cells[cell].append(layer[i])
        for cell, own in of_cells.items():
            said, read = ("".join(text.split()) for text in (join(own), table.cells[cell].text))
            if len(said) == len(read):
                readings.append((t, cell, said, read))
                for letter, other in zip(said, read, strict=True):
                    seen[letter][other] += 1
    found: list[dict[str, list[int]]] = [defaultdict(list) for _ in tables]
    for t, cell, said, read in readings:
        usual = "".join(_usual_reading(seen[letter], other) for letter, other in zip(said, read, strict=True))
        if usual != read:
            found[t][f'perhaps "{usual}", as its letters are read in other places'].append(cell)
    return [add_doubts(table, of_cells) for table, of_cells in zip(tables, found, strict=True)]


def _usual_reading(readings: Counter[str], here: str) -> str:
    """What a letter is mostly read as, or as it is read here where nothing is usual."""
    usual, count = readings.most_common(1)[0]
    return usual if count >= MIN_OTHERS and count > HALF_SHARE * readings.total() else here


def _pieces(words: Sequence[Word], numbers: Sequence[int]) -> list[list[int]]:
    """The numbers of words that follow one another in a line and have the same doubt."""
    pieces: list[list[int]] = []
    for i in numbers:
        if pieces and pieces[-1][-1] == i - 1 and _go_on(words[i - 1], words[i]):
            pieces[-1].append(i)
        else:
            pieces.append([i])
    return pieces


def _go_on(a: Word, b: Word) -> bool:
    height = a.box[3] - a.box[1]
    is_next = 0 <= b.box[0] - a.box[2] <= WORD_GAP * height and shared_height(a.box, b.box) >= HALF_SHARE
    return is_next and a.doubt == b.doubt


def _readings(words: Sequence[Word], pieces: Sequence[Sequence[int]], read: Reading) -> list[Word]:
    """What is read at the place of each piece, in its box; without text, of confidence 0, where nothing is."""
    boxes = [bounding_box([words[i].box for i in piece]) for piece in pieces]
    found: list[list[Word]] = [[] for _ in boxes]
    for word in read(boxes):
        of_boxes = [inside(word.box, box) for box in boxes]
        if max(of_boxes) >= HALF_SHARE:
            found[of_boxes.index(max(of_boxes))].append(word)
    return [
        Word(join(of), box, min((_confidence(word) for word in of), default=0.0), 0.0)
        for of, box in zip(found, boxes, strict=True)
    ]


def _confidence(word: Word) -> float:
    return 0.0 if isinstance(word, GuessedWord) else word.confidence


def _text(words: Sequence[Word], piece: Sequence[int]) -> str:
    return " ".join(words[i].text for i in piece)


def _similarity(a: str, b: str) -> float:
    """The share of letters and figures that two texts have in common, in their order."""
    one, other = ([c for c in text.casefold() if c.isalnum()] for text in (a, b))
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _reasons(words: Sequence[Word], numbers: Sequence[int]) -> str:
    return ", ".join(dict.fromkeys(words[i].doubt or "" for i in numbers))
