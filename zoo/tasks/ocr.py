"""Ocr: the lines of text of a page, with their places.

Shapes: H, W of a page in pixels.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..checkpoint.installed import is_installed
from ..images import MAX_PIXELS, ImageInput, open_pixels
from ..images.lines import is_blank, split_lines
from ..images.reading_order import reading_order
from ..images.text_regions import cut_quad
from ..options import DEFAULTS, Options
from ..peer_names import with_keys
from ..registry import family_of
from ..warning import warn
from .arguments import collect_results, result_or_error
from .auto_reader import AUTO_READER, AutoReader, load_auto_reader
from .base import Progress, Task
from .image_task import as_images
from .line_reader import CtcReader
from .line_texts import LineReading
from .line_words import words_of_text
from .results import Lines, ResultFormat
from .scripts import MAX_CONFIDENCE
from .text_detector import TextDetector

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..checkpoint.files import Checkpoint
    from ..files.folder import CheckpointFolder
    from .read import Read

DETECTOR, LINES_DETECTOR = "pp-ocrv6-small-det", "lines"
UPRIGHT_RATIO = 1.5  # height over width: a line that is higher is turned before it is read
MIN_CONFIDENCE = 0.8  # the confidence below which a line is read upside down too
REVERSED_CONFIDENCE = 0.9  # the confidence that such a reading must have to count
LINES_AT_ONCE = 64
UNKNOWN_SCRIPT = "in a script or a hand that the reader does not know"
UNREADABLE = "[?]"  # stands for such a line where its confidence is not written beside it


Quad: TypeAlias = tuple[tuple[float, float], ...]  # corners (x, y), clockwise from where the text begins


@with_keys()
class OcrWord(NamedTuple):
    """A word of a line, without spaces: as wide as its ink, as high as the line.  quad: as of `OcrLine`."""

    text: str
    confidence: float
    quad: Quad


@with_keys()
class OcrLine(NamedTuple):
    """A line of text.  quad: its corners (x, y) in pixels of the page, clockwise from where the text begins.

    angle: of the text, in degrees clockwise from left to right, so that 90 is downwards.  doubt: why the text is likely
    wrong, or None.  words: those between spaces; Chinese and Japanese have none, so that a line of theirs is one word.
    """

    text: str
    confidence: float
    quad: Quad
    angle: float
    doubt: str | None = None
    words: tuple[OcrWord, ...] = ()


class OcrPage(NamedTuple):
    """The lines of a page of width x height pixels, in reading order."""

    lines: list[OcrLine]
    width: int
    height: int

    @property
    def text(self) -> str:
        """A line of text for each line, "[?]" for one in a script that the reader does not know."""
        return "\n".join(UNREADABLE if line.doubt else line.text for line in self.lines)


class OcrPages(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {
        "text": "string",
        "lines": [
            {
                "text": "string",
                "confidence": "double",
                "quad": [["double"]],
                "angle": "double",
                "doubt": "string",
                "words": [{"text": "string", "confidence": "double", "quad": [["double"]]}],
            }
        ],
    }

    def row(self, result: OcrPage, top_k: bool = False) -> dict[str, Any]:
        return {"text": result.text, "lines": [_as_row(line) for line in result.lines]}

    def json(self, result: OcrPage) -> Any:
        return {"width": result.width, "height": result.height, **self.row(result)}

    def lines(self, result: OcrPage) -> Lines:
        return [(f"{line.confidence:.4f}", UNREADABLE if line.doubt else line.text) for line in result.lines]


class LinesReader(Protocol):
    """What `Ocr` needs of a reader: zoo-read, a TrOCR, PP-OCR, or two of them."""

    @property
    def model(self) -> Any: ...

    @property
    def source(self) -> str: ...

    @property
    def scripts(self) -> Any: ...

    def read_lines(self, images: Sequence[np.ndarray]) -> list[LineReading]: ...


class Ocr(Task):
    """Pages to the lines of text on them.

    >>> ocr = zoo.load("pp-ocrv6-small")
    >>> page = ocr("page.png")
    >>> print(page.text)
    >>> page.lines[0]
    OcrLine(text='...', confidence=0.9..., quad=((70.0, 52.0), (912.0, 52.0), ...), angle=0.0, doubt=None, words=...)

    `reader` reads the lines that `detector` finds; with None the ink of the page is cut into lines
    (`zoo.images.lines`), which suits one column of text.
    """

    name = "ocr"
    reads = "image"
    results = OcrPages()

    def __init__(self, reader: LinesReader, detector: TextDetector | None, checkpoint: Checkpoint | None = None):
        super().__init__(reader.model, checkpoint)
        self.reader, self.detector = reader, detector

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, head: str | None = None, options: Options = DEFAULTS) -> Self:
        """The task of a reader's checkpoint, with the detector that is installed."""
        task = cls(_reader_of(checkpoint, head, options), load_detector(None, options), checkpoint)
        task.options = options
        return task

    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """An OcrPage for one image, a list of them for several.

        A page without text has no lines.  Text in a script that the reader does not know, as far as it can tell, is
        warned of, and has a `doubt` and a confidence of at most 0.5.  data_format, max_pixels: as in `open_image`.
        """
        given, single = as_images(images, "images")
        opened = partial(open_pixels, data_format=data_format, max_pixels=max_pixels)
        found: list[Any] = []
        with Progress(len(given), progress, "images") as advance:
            for i, image in enumerate(given):
                found.append(result_or_error(lambda one: self.read_page(opened(one)), image, i, len(given)))
                advance(1)
        if any(line.doubt for page in found if isinstance(page, OcrPage) for line in page.lines):
            warn(self.reader.scripts.warning(self.reader.source))
        return collect_results(found, single)

    def read_page(self, page: np.ndarray) -> OcrPage:
        """The lines of a page (H, W, 3) uint8, without a warning."""
        quads = self._find_lines(page)
        read: list[tuple[LineReading, bool]] = []
        for start in range(0, len(quads), LINES_AT_ONCE):
            read += self._read([_cut_line(page, quad) for quad in quads[start : start + LINES_AT_ONCE]])
        check = self.reader.scripts
        unknown = [False] * len(read) if check is None else check.find_unknown([line for line, _ in read])
        lines = [
            _line(quad, line, is_reversed, is_unknown)
            for quad, (line, is_reversed), is_unknown in zip(quads, read, unknown, strict=True)
        ]
        H, W = page.shape[:2]
        return OcrPage([line for line in lines if line.text or line.doubt], W, H)

    def _find_lines(self, page: np.ndarray) -> np.ndarray:
        """The quadrilaterals (N, 4, 2) of the page's lines, in reading order."""
        if is_blank(page):
            return np.zeros((0, 4, 2))
        if self.detector is None:
            boxes = np.array(split_lines(page), np.float64).reshape(-1, 4)
            return boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]
        quads = self.detector(page).quads
        boxes = np.concatenate([quads.min(1), quads.max(1)], 1) if len(quads) else np.zeros((0, 4))
        return quads[reading_order(boxes)]

    def _read(self, images: Sequence[np.ndarray]) -> list[tuple[LineReading, bool]]:
        """What each line says, with its words, and True if it was upside down."""
        found = self._read_words(images)
        unsure = [i for i, line in enumerate(found) if line.confidence < MIN_CONFIDENCE]
        turned = self._read_words([np.ascontiguousarray(images[i][::-1, ::-1]) for i in unsure]) if unsure else []
        out = [(line, False) for line in found]
        for i, line in zip(unsure, turned, strict=True):
            if line.text.strip() and line.script_odds <= 0 and line.confidence >= REVERSED_CONFIDENCE:
                out[i] = line, True
        return out

    def _read_words(self, images: Sequence[np.ndarray]) -> list[LineReading]:
        """What each line says, with its words, by the gaps in its ink where the reader has no places for them."""
        return [
            line if line.words else line._replace(words=tuple(words_of_text(line.text, line.confidence, image)))
            for line, image in zip(self.reader.read_lines(images), images, strict=True)
        ]

    def copied_files(self) -> list[tuple[CheckpointFolder, str]]:
        if not isinstance(self.reader, CtcReader):
            return self.reader.copied_files()  # type: ignore[attr-defined]
        return [] if self.checkpoint is None else [(self.checkpoint.contents, "preprocessor_config.json")]


def load_ocr(reader: str = AUTO_READER, detector: str | None = None, options: Options = DEFAULTS) -> Ocr:
    """A reader with a detector: see `load_reader` and `load_detector`."""
    return Ocr(load_reader(reader, options), load_detector(detector, options))


def load_reader(name: str | os.PathLike[str], options: Options = DEFAULTS) -> CtcReader | Read | AutoReader:
    """The reader of lines of a checkpoint; name: "auto" is zoo-read, and PP-OCR for what that is not sure of."""
    from ..checkpoint.task import task_of
    from ..hub import find

    if name == AUTO_READER:
        return load_auto_reader(options)
    found = task_of(find(name, options), Ocr.name)
    return _reader_of(found.checkpoint, found.head, options)


def load_detector(name: str | None, options: Options = DEFAULTS) -> TextDetector | None:
    """The detector of a checkpoint; None for "lines".  name: None is PP-OCR's where it is installed, else "lines"."""
    from ..hub import find

    if name == LINES_DETECTOR or (name is None and not is_installed(DETECTOR)):
        return None
    return TextDetector.from_checkpoint(find(name or DETECTOR, options), options)


def _reader_of(checkpoint: Checkpoint, head: str | None, options: Options) -> CtcReader | Read | AutoReader:
    if head in (family := family_of(checkpoint.config.model_type)).heads_for(Ocr.name):
        return CtcReader.from_checkpoint(checkpoint, options)
    from .read import Read

    return Read.from_checkpoint(checkpoint, head or family.heads_for("read")[0], options)


def _cut_line(page: np.ndarray, quad: np.ndarray) -> np.ndarray:
    """The pixels of a line; one that is higher than wide is turned a quarter, as if it were written downwards."""
    line = cut_quad(page, quad)
    return np.ascontiguousarray(np.rot90(line)) if _is_upright(line.shape) else line


def _is_upright(shape: Sequence[float]) -> bool:
    """True for a height and a width of which the first is much greater."""
    return shape[0] >= UPRIGHT_RATIO * shape[1]


def _line(quad: np.ndarray, line: LineReading, is_reversed: bool, is_unknown: bool) -> OcrLine:
    (x0, y0), (x1, y1), _, (x3, y3) = quad.tolist()
    first = 0
    if _is_upright((math.hypot(x3 - x0, y3 - y0), math.hypot(x1 - x0, y1 - y0))):
        first = 1  # its text begins at the upper corner on the right
    corners = np.roll(quad, -((first + 2 * is_reversed) % 4), 0)
    (ax, ay), (bx, by) = corners[0], corners[1]
    angle = round(math.degrees(math.atan2(by - ay, bx - ax)), 2) + 0.0
    highest = MAX_CONFIDENCE if is_unknown else 1.0

    def part(start: float, end: float) -> Quad:
        sides = (corners[:2], corners[:1:-1])  # above and below the text
        (a, b), (d, c) = ([first + at * (last - first) for at in (start, end)] for first, last in sides)
        return tuple((float(x), float(y)) for x, y in (a, b, c, d))

    words = tuple(OcrWord(one.text, min(one.confidence, highest), part(one.start, one.end)) for one in line.words)
    doubt = UNKNOWN_SCRIPT if is_unknown else None
    return OcrLine(line.text.strip(), float(min(line.confidence, highest)), part(0, 1), angle, doubt, words)


def _as_row(line: OcrLine | OcrWord) -> dict[str, Any]:
    row = line._asdict() | {"quad": [list(corner) for corner in line.quad]}
    return row | {"words": [_as_row(word) for word in line.words]} if isinstance(line, OcrLine) else row
