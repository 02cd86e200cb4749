"""From the image of a page to its tables: detected, cropped, turned upright, recognised and read.

Boxes are (x0, y0, x1, y1) in pixels of the page, x to the right and y down.  Shapes: H, W of the page.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from ...errors import InputError
from ...images import MAX_PIXELS, ImageInput, open_pixels
from ...images.boxes import Box, Detection, check_fraction
from ...options import Options
from ...peer_names import TABLE_OPTIONS, check_options
from ...tasks.notebook import as_rows
from ...tasks.ocr import load_reader
from ...tasks.scripts import MAX_CONFIDENCE
from ...warning import warn
from ..documents import Pages, Rules, open_document
from .boxes import HALF_SHARE, bounding_box, inside
from .charts import has_curve, is_diagram
from .column_gaps import with_gaps
from .context import other_readings
from .crop import TableCrop, crop_table
from .direction import text_direction
from .doubts import add_doubts, doubts_of_words, find_doubts
from .finding import (
    ROTATED_TABLE,
    Detector,
    find_tables,
    ink_of,
    ink_words,
    load_detector,
    reading_order,
    share_of_ink,
)
from .gaps import has_no_grid
from .ink_rules import page_rules
from .lattice import Lattice
from .ocr import OcrEngine, load_ocr, reader_and_engine
from .reading import GuessedWord, LineReader, is_legible, read_cells
from .ruled import ruled_places, ruled_table
from .side_by_side import part_repeated_header, rules_across
from .spanners import with_ruled_header
from .structure import COLUMN, ROW, TABLE, build_table
from .surrounding import fit_to_ink, has_lines, why_no_table, without_titles_and_notes
from .table import Table, Word
from .text_layer import add_text_doubts, doubt_other_readings, page_reading, read_doubted_words
from .text_lines import text_lines, without_leader_dots, without_leaders
from .turned_words import split_directions, with_turned_lines
from .upright import upright_page
from .values import uncertain_numbers
from .windows import find_objects, with_unsure
from .words import check_words, words_outside

UPWARD_ANGLE = 270.0  # degrees clockwise: such text mostly runs upwards
DETECTION, STRUCTURE = "zoo-table-detect", "zoo-table-structure"  # these come with zoo
# Margin of a crop, as a share of the page's long side: structure models were trained on crops with 20 to 30 pixels
# around the table, on pages whose long side has 1000.
PADDING = 25 / 1000
MAX_ASPECT = 8  # a longer page (a web page as one picture) has the margin of one of this aspect

ILLEGIBLE_REASON = (
    "can hardly be read, as if it were a chart or a drawing: it is left out (with detection=None, --no-detection, the "
    "whole picture is taken as a table)"
)
SCRIPT_REASON = "seems to be text in a script that the reader does not know: it is left out"
MIN_GUESSES = 3  # cells that are guesses: fewer may be odd print, and are no reason to warn of a script
UNKNOWN_SCRIPT = "a script that the reader does not know: its text is a guess"


class TableExtractor:
    """Extracts the tables of documents and images; made once, called for each.

    structure, detection: names or folders of checkpoints, or their loaded tasks (on another device, say), or any
    `Detector`.  By default the small ones that come with zoo.  For detection a model of a page's layout will do, of
    whose labels "table" is taken (docling-project/docling-layout-heron).  With detection=None each image is one table.
    reader: reads lines of text for pages without words: by default "auto", which is "zoo-read" and, where the package
    with its weights is installed, "pp-ocrv6-small" for what that is not sure of; or the name or
    folder of another TrOCR checkpoint, its task, or a callable (see `reading.LineReader`).
    ocr: reads the words of a whole page, in place of a reader: "rapidocr", "tesseract" or an `ocr.OcrEngine`; the names
    "zoo-read" and "trocr" choose readers, and with "none" the cells of a page without words have the text "".
    threshold: only tables and parts with a score above it count; 0.5 is Microsoft's.
    padding: margin around a table in pixels; by default 25 for a page whose long side has 1000, as structure models
    were trained.  Beyond the image the margin is white.
    straighten: a page that is tilted, on its side or upside down is first turned upright.
    size: for structure's image processor in place of the checkpoint's.  The v1.1 checkpoints say 800, but were trained
    with {"longest_edge": 1000}.
    lock, device, dtype, local_files_only: as for `zoo.load`, for every checkpoint that is given by name or folder.
    """

    @check_options(TABLE_OPTIONS)
    def __init__(
        self,
        structure: str | os.PathLike[str] | Detector = STRUCTURE,
        detection: str | os.PathLike[str] | Detector | None = DETECTION,
        *,
        reader: str | os.PathLike[str] | LineReader | None = None,
        ocr: str | OcrEngine | None = None,
        threshold: float = 0.5,
        padding: int | None = None,
        straighten: bool = True,
        size: Mapping[str, int] | None = None,
        lock: str | os.PathLike[str] | None = None,
        device: str | None = None,
        dtype: str | None = None,
        local_files_only: bool = False,
    ):
        check_fraction(threshold, "threshold")
        reader, ocr = reader_and_engine(reader, ocr)
        if padding is not None and (isinstance(padding, bool) or not isinstance(padding, int) or padding < 0):
            raise InputError(f"padding is {padding!r}, expected a number of pixels from 0")
        lock = None if lock is None else os.fspath(lock)
        loading = {"lock": lock, "device": device, "dtype": dtype, "local_files_only": local_files_only}
        if not any(isinstance(n, str | os.PathLike) for n in (structure, detection, reader)):
            for option, value in loading.items():
                if value not in (None, False):
                    raise InputError(
                        f"{option} is {value!r}, but no checkpoint is loaded by name: {option}= where it is loaded"
                    )
        self.structure = load_detector(structure, "structure", (ROW, COLUMN), loading)
        self.detection = None if detection is None else load_detector(detection, "detection", (TABLE,), loading)
        self.reader = reader if not isinstance(reader, str | os.PathLike) else load_reader(reader, Options(**loading))
        self.ocr = load_ocr(ocr) if isinstance(ocr, str) else ocr
        self.threshold, self.padding, self.straighten = threshold, padding, straighten
        self.options = {} if size is None else {"size": size}

    @check_options(TABLE_OPTIONS)
    def __call__(
        self,
        image: ImageInput,
        words: Sequence[Word] | None = None,
        *,
        pages: Pages | None = None,
        rules: Rules | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> list[Table]:
        """The tables of an image, or of all pages of a document, from the top down and from left to right.

        image: a path, bytes or an open file, which may be a PDF, or a TIFF, GIF or WebP of several pages; a PIL image;
        or an array.  The list, which may be empty, has the tables of all pages, in their order; tables of a file have
        its path as their `source`, and their `page`.  `open_document` has options for PDFs (dpi, a password), and
        `extract_document` joins tables that continue on the next page.
        pages: of a file, such as "3-7,9" or "5-"; by default all.
        words: the words of the one page, in pixels of the upright page; they go into the cells, and rows and columns
        without words are dropped.  By default those of a PDF's text layer, and without them the reader reads the cells.
        rules: the lines of a PDF's page (`Page.rules`); of a picture they are looked for.
        data_format, max_pixels: as in `open_image`.

        Where lines that cross one another hold three quarters of a place's words, or ink, they are the borders of its
        cells, and `structure` is not asked for its rows (`Cell.origin`).
        A page is first turned so that most of its text runs from left to right (`upright_page`), and so is a table that
        lies otherwise: by the angles of its words or, for words without angles, by a tilt of their lines of up to 10
        degrees.  Without words, a table that detection calls rotated is read from the bottom of the page up: its rows
        are upright on the page, the first on the left.  All boxes are on the page; the box of a tilted row is the
        upright box around it, and `Table.angle` the direction of its text.
        A detected table in which no row and no column is found, or that has no gap between columns of text and no
        cells of rules (a photo, code, a paragraph), is left out, with a warning; ruled tables in its place are taken.
        """
        if words is not None:
            check_words(words)
        notes: list[str] = []
        if isinstance(image, str | os.PathLike | bytes | bytearray | memoryview) or hasattr(image, "read"):
            tables = self._file_tables(image, words, pages, rules, max_pixels, notes)
        elif pages is not None:
            raise InputError(f"pages is {pages!r}, but an image in memory is one page")
        else:
            pixels = open_pixels(image, data_format=data_format, max_pixels=max_pixels)
            tables = self._page_tables(pixels, words, rules, notes)
        for note in dict.fromkeys(notes):  # once for a file
            warn(note)
        return as_rows(tables)

    def replace(self, *, threshold: float, whole: bool = False) -> TableExtractor:
        """The same extractor with another threshold; whole: each page is the image of one table."""
        check_fraction(threshold, "threshold")
        other = copy.copy(self)
        other.threshold, other.detection = threshold, None if whole else self.detection
        return other

    def _file_tables(
        self,
        file: Any,
        words: Sequence[Word] | None,
        pages: Pages | None,
        rules: Rules | None,
        max_pixels: int,
        notes: list[str],
    ) -> list[Table]:
        """The tables of the pages of a file; what is to be said of it is added to the notes."""
        source = os.fspath(file) if isinstance(file, str | os.PathLike) else None
        tables: list[Table] = []
        with open_document(file, max_pixels=max_pixels, name=source or "image") as document:
            if words is not None and (count := len(document.numbers(pages))) != 1:
                raise InputError(f"words are of one page, but {document.name} has {count}: choose one with pages=")
            for page in document.pages(pages):
                own = page.words if words is None else words
                found = self._page_tables(page.image, own, page.rules if rules is None else rules, notes)
                tables += [replace(table, source=source, page=page.number) for table in found]
        return tables

    def _page_tables(
        self, page: np.ndarray, words: Sequence[Word] | None, rules: Rules | None, notes: list[str]
    ) -> list[Table]:
        """The tables of the pixels of a page (H, W, 3), at their places on it."""
        upright = upright_page(page, words, rules) if self.straighten else None
        if upright is None:
            return self.upright_tables(page, words, rules, notes)
        tables = self.upright_tables(upright.crop.pixels, upright.words, upright.rules, notes)
        return [upright.to_page(table) for table in tables]

    def upright_tables(
        self, page: np.ndarray, words: Sequence[Word] | None, rules: Rules | None, notes: list[str]
    ) -> list[Table]:
        """The tables of the pixels of a page (H, W, 3) that is upright, but for some of its tables.

        What is to be said of its file is added to the notes.
        """
        layer = words or ()
        if words is not None:
            words = read_doubted_words(words, page_reading(page, self.reader, self.ocr))
        is_read = words is None
        drawn = None if self.detection is None else page_rules(page)
        places = self.places(page)
        if words is None and self.ocr is not None:
            words = self._ocr_words(self.ocr, page, places)
        if words is not None:
            words = without_leaders(words)
        near: Callable[[Box], Sequence[Word]] = cache(lambda box: ink_words(page, box) if words is None else words)
        lattices, ruled_within = ruled_places(page, places, words, near, rules, self.detection is not None, drawn)
        ink: Callable[[], np.ndarray] = cache(lambda: ink_of(page))
        tables, rest = [], list(reading_order(list(lattices)))
        while rest:
            found = rest.pop(0)
            table = self._table_at(page, ink, found, words, lattices[found])
            guessed = [] if isinstance(table, str) else [c for c in table.cells if UNKNOWN_SCRIPT in c.doubts]
            if table == SCRIPT_REASON or len(guessed) >= MIN_GUESSES:
                reader: Any = self.reader
                notes.append(reader.scripts.warning(reader.source))
            if isinstance(table, str):
                if self.detection is not None:
                    warn(f"what was found at ({', '.join(f'{v:.0f}' for v in found.box)}) {table}")
                    within = ruled_within(found) if lattices[found] is None else {}
                    lattices |= within
                    rest[:0] = reading_order(list(within))
                continue
            left_out = [word for word in words_outside(table, words or ()) if inside(word.box, found.box) >= HALF_SHARE]
            score = table.score if self.detection is None else found.score
            parts = [table] if self.detection is None else part_repeated_header(table, page)
            tables += [replace(one, score=score, outside=() if i else tuple(left_out)) for i, one in enumerate(parts)]
        tables = [add_doubts(table, other_readings(table)) for table in tables] if is_read else tables
        return doubt_other_readings(tables, layer)

    def _table_at(
        self,
        page: np.ndarray,
        ink: Callable[[], np.ndarray],
        found: Detection,
        words: Sequence[Word] | None,
        lattice: Lattice | None,
    ) -> Table | str:
        """The table at a place of a page (H, W, 3) with its ink, or the reason for which there is none."""
        crop, judged = self.crop(page, found, words or ()), self.detection is not None and lattice is None
        place = crop.from_page(found.box)
        if judged and has_no_grid(crop.pixels, place):
            return "has no columns and no ruled cells: it is not a table, and is left out"
        if judged and is_diagram(page, found.box):
            return "has boxes apart from each other, as a diagram: it is not a table, and is left out"
        if judged and has_curve(page, found.box):
            return "has a curve, as a chart: it is not a table, and is left out"
        table = self._table(crop, words, lattice, place)
        if isinstance(table, str):
            return table
        if not table.cells:
            return "has no rows and no columns: it is left out"
        if self.detection is not None and (words is not None or self.reader is not None):
            held = _share(words, found.box) if words else share_of_ink(ink(), [found.box])
            across = rules_across(page, table.box)
            is_ruled, is_drawn = lattice is not None, has_lines(crop.pixels, place)
            if reason := why_no_table(table, held, across, is_ruled=is_ruled, is_drawn=is_drawn, is_read=words is None):
                guessed = sum(UNKNOWN_SCRIPT in cell.doubts for cell in table.cells)
                if guessed and guessed >= HALF_SHARE * sum(bool(cell.text) for cell in table.cells):
                    return SCRIPT_REASON
                return f"{reason}: it is not a table, and is left out"
        return table

    def places(self, page: np.ndarray) -> list[Detection]:
        """The places of the tables of a page (H, W, 3), clipped to it, as `finding.find_tables` says."""
        H, W = page.shape[:2]
        if self.detection is None:
            return [Detection(TABLE, 1.0, (0.0, 0.0, float(W), float(H)))]
        return find_tables(self.detection, page, self.threshold)

    def crop(self, page: np.ndarray, found: Detection, words: Sequence[Word] = ()) -> TableCrop:
        """A table of a page (H, W, 3) with its margin, upright by its words or else by the label of detection."""
        long = min(max(page.shape[:2]), MAX_ASPECT * min(page.shape[:2]))
        margin = round(PADDING * long) if self.padding is None else self.padding
        own = [word for word in words if inside(word.box, found.box) >= HALF_SHARE]
        return crop_table(
            page, found.box, margin, text_direction(own, UPWARD_ANGLE if found.label == ROTATED_TABLE else 0.0)
        )

    def _ocr_words(self, ocr: OcrEngine, page: np.ndarray, places: Sequence[Detection]) -> list[Word]:
        """The words of the page; those of a rotated table are read from its upright crop."""
        rotated = [found for found in places if found.label == ROTATED_TABLE]
        words: list[Word] = []
        if len(rotated) < len(places):
            words += ocr(page)
            check_words(words)
        for found in rotated:
            crop = self.crop(page, found)
            read = list(ocr(crop.pixels))
            check_words(read)
            words = [word for word in words if inside(word.box, found.box) < HALF_SHARE]
            words += [replace(w, box=crop.to_page(w.box), angle=crop.angle + (w.angle or 0.0)) for w in read]
        return words

    def _table(self, crop: TableCrop, words: Sequence[Word] | None, lattice: Lattice | None, place: Box) -> Table | str:
        """The table of a place of a crop, of the lattice or else of the network's objects, its boxes on the page.

        A text: a detector found it, and its words cannot be read, which is the reason to leave it out.
        """
        own, on_side = (None, []) if words is None else split_directions(crop.words(words))
        if own is None:
            crop = replace(crop, pixels=without_leader_dots(crop.pixels))
        elif lattice is not None:
            own, on_side = [*own, *on_side], []  # rules say which cells they are in
        elif on_side:  # headings may begin beyond the crop
            on_side = split_directions(crop.all_words(words or ()))[1]
        lines = text_lines(crop.pixels, own)
        build: Callable[[Sequence[Word]], Table]
        objects = None
        if lattice is None:
            objects = find_objects(self.structure, crop.pixels, lines, self.threshold, self.options)
            objects = with_unsure(objects, lines, self.threshold)
            objects = with_gaps(objects, lines, self.threshold)
            objects = with_ruled_header(objects, crop.pixels, lines, self.threshold)
            whole = [one.box for one in objects if one.label == TABLE and one.score > self.threshold]
            # The network's "table" may leave out rows that the detector saw.
            box = bounding_box([place, *whole]) if whole and self.detection is not None else None
            build = partial(build_table, objects, box=box, thresholds=self.threshold, check_spans=True)
        else:
            look = partial(self.structure, threshold=self.threshold, **self.options)
            build = partial(ruled_table, lattice.map_boxes(crop.from_page), crop.pixels, look)
        if own is None and lattice is None:  # the ink of words shows what the network missed, before they are read
            own = [Word("x" * (1 + i % 8), box) for i, box in enumerate(itertools.chain(*lines))]
        table = build(own or [])
        if words is None and self.reader is not None:
            own = without_leaders(read_cells(crop.pixels, table, self.reader))
            if self.detection is not None and lattice is None and not is_legible(own):
                return ILLEGIBLE_REASON
        if words is not None or self.reader is not None:
            kept = own or []
            if lattice is None:
                kept = without_titles_and_notes(kept, table, next(iter(rules_across(crop.pixels, table.box)), None))
            table = build(kept)
        else:
            table = replace(table, cells=tuple(replace(cell, text="") for cell in table.cells))
        if lattice is None and self.detection is not None:
            table = fit_to_ink(table, place, crop.pixels, own or [])
        table = with_turned_lines(table, on_side, own or [])
        table = find_doubts(table, lines, objects, None if words is None else crop.pixels)
        table = add_text_doubts(table, own or ())
        table = add_doubts(table, uncertain_numbers(table))
        if guessed := [word for word in own or () if isinstance(word, GuessedWord)]:
            table = doubts_of_words(table, guessed, UNKNOWN_SCRIPT, MAX_CONFIDENCE)
        return replace(
            table,
            cells=tuple(replace(cell, box=crop.to_page(cell.box)) for cell in table.cells),
            row_boxes=tuple(map(crop.to_page, table.row_boxes)),
            column_boxes=tuple(map(crop.to_page, table.column_boxes)),
            box=crop.to_page(table.box),
            angle=crop.angle,
        )


def _share(words: Sequence[Word], box: Box) -> float:
    return sum(inside(word.box, box) >= HALF_SHARE for word in words) / max(1, len(words))


def extract_tables(
    image: ImageInput,
    words: Sequence[Word] | None = None,
    *,
    pages: Pages | None = None,
    **options: Any,
) -> list[Table]:
    """The tables of an image or of a document's pages; options as for `TableExtractor`, which serves several of them.

    >>> for table in zoo.extract_tables("report.pdf"):
    ...     print(table.page, table.to_markdown())
    """
    return TableExtractor(**options)(image, words, pages=pages)
