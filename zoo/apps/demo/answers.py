"""What the demo does with what it is given: paths and texts in, pictures, numbers and texts out; no web in it.

All of it comes from strangers: sizes are bounded here, and what cannot be used is a ZooError.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...images import open_image
from ...tasks.classify import Label
from ...tasks.image_task import ImageTask
from ...tasks.segment import palette
from ..documents import open_document
from ..tables import TableExtractor
from ..tables.batch import PageTables, page_tables
from ..tables.review import Review
from .models import Models

MAX_PAGES = 20  # of a document, at once
MAX_PIXELS = 40_000_000
MAX_TEXT = 20_000  # characters
MAX_LINES = 500  # to compare a text with
SIDE = 1600  # pixels of a picture's longer side, as it is shown


class Found(NamedTuple):
    """The tables of a document."""

    tables: int
    pages: int
    html: str  # a page of its own: see `zoo.apps.tables.review`


class Legend(NamedTuple):
    """A label in a segmented picture."""

    label: str
    share: float  # of the pixels
    colour: tuple[int, int, int]


def find_tables(
    models: Models, path: str | None, pages: str = "", threshold: float = 0.5, whole: bool = False
) -> Found:
    """The tables of a document's pages, on a page to check, edit and save them.  whole: each page is one table."""
    path = _given(path, "a PDF or a picture of a page")
    recipe, loaded = models.recipe, models.extractor()
    extractor = TableExtractor(
        loaded.structure,
        None if whole else loaded.detection,
        reader=loaded.reader,
        ocr=loaded.ocr,
        threshold=threshold,
        padding=recipe.padding,
    )
    count = 0
    with (
        tempfile.TemporaryDirectory(prefix="zoo-") as folder,
        open_document(
            path, dpi=recipe.dpi, password=recipe.password, max_pixels=MAX_PIXELS, name=os.path.basename(path)
        ) as document,
    ):
        numbers = document.numbers(pages.strip() or None)
        if len(numbers) > MAX_PAGES:
            first = f"{numbers[0]}-{numbers[MAX_PAGES - 1]}"
            raise InputError(f"{document.name}: {len(numbers)} pages, at most {MAX_PAGES} at once: say pages {first}")
        review = Review(Path(folder) / "review.html", recipe)
        for number in numbers:
            page = document.page(number)
            tables = page_tables(extractor, page)
            review.add(PageTables(page.source, document.sha256, page.number, page.count, tables), page)
            count += len(tables)
        if not count:
            hint = "" if whole else ", and one picture of a table alone can be taken whole"
            raise InputError(f"{document.name}: no table found; a threshold below {threshold:g} finds more{hint}")
        (written,) = review.close()
        return Found(count, len(numbers), written.read_text(encoding="utf-8"))


def classify(models: Models, path: str | None, text: str = "") -> tuple[np.ndarray | None, list[Label]]:
    """The picture as it is shown, and the labels of the picture or the text, whichever the checkpoint takes."""
    task = models.task("classify")
    if isinstance(task, ImageTask):
        image = _picture(path, f"a picture, which is what {models.names['classify']} reads")
        return _shown(image), _unlike(task(image, top_k=5))
    text = _text(text, f"a text, which is what {models.names['classify']} reads")
    return None, _unlike(task(text, top_k=5))


def segment(models: Models, path: str | None) -> tuple[np.ndarray, list[Legend]]:
    """The picture with the colours of its labels laid over it, and what they mean, the largest first."""
    image = _picture(path)
    found = models.task("segment")(image)
    colours = palette(max(area.id for area in found.labels) + 1)
    legend = [Legend(area.label, area.share, tuple(colours[area.id].tolist())) for area in found.labels]
    return _shown(np.asarray(found.overlay())), legend


def read(models: Models, path: str | None, lines: bool = True) -> tuple[np.ndarray, str, float]:
    """The picture, what it says, and how sure that is (0 ... 1)."""
    image = _picture(path, "a picture of a line of text, or of several")
    reading = models.task("read")(image, lines=lines)
    return _shown(image), reading.text, reading.confidence


def neighbours(models: Models, text: str, lines: str) -> list[tuple[str, float]]:
    """Lines and their cosines to a text, the most alike first."""
    text, lines = _text(text, "a text"), _text(lines, "lines to compare it with")
    among = [line.strip() for line in lines.splitlines() if line.strip()]
    if len(among) > MAX_LINES:
        raise InputError(f"{len(among)} lines, at most {MAX_LINES} at once")
    embed = models.task("embed")
    if isinstance(embed, ImageTask):
        raise InputError(f"{models.names['embed']} reads pictures, and this tab compares texts")
    (cosines,) = embed.similarity(text, among)
    order = np.argsort(-cosines, kind="stable").tolist()
    return [(among[i], float(cosines[i])) for i in order]


class Talk:
    """The chat tab: one conversation's keys and values are kept, those of the last that was spoken to."""

    def __init__(self, models: Models):
        self.models = models
        self._last: Any = None

    def say(
        self, text: str, before: Sequence[Mapping[str, str]], max_new_tokens: int = 200, temperature: float = 0.7
    ) -> Iterator[str]:
        """The answer in pieces.  before: what was said, {"role", "content"} each.

        A checkpoint without a chat template goes on from the text alone.
        """
        text = _text(text, "a text")
        llm = self.models.task("chat")
        options: dict[str, Any] = {"max_new_tokens": max_new_tokens, "do_sample": temperature > 0}
        if temperature > 0:
            options["temperature"] = temperature
        if llm.template is None:
            yield from llm.stream(text, **options)
            return
        said = [{"role": message["role"], "content": message["content"]} for message in before]
        if self._last is None or self._last.messages != said:
            self._last = llm.conversation()
            self._last.messages = said
        self._last.options = options
        with closing(self._last.say(text)) as pieces:
            yield from pieces


def _given(path: str | None, what: str) -> str:
    if not path:
        raise InputError(f"nothing to look at: drop {what}")
    return path


def _picture(path: str | None, what: str = "a picture") -> np.ndarray:
    """(H, W, 3) uint8, upright."""
    path = _given(path, what)
    with open(path, "rb") as file:
        return np.asarray(open_image(file, max_pixels=MAX_PIXELS, name=os.path.basename(path)))


def _text(text: str, what: str) -> str:
    if not text.strip():
        raise InputError(f"nothing to work on: write {what}")
    if len(text) > MAX_TEXT:
        raise InputError(f"a text of {len(text)} characters, at most {MAX_TEXT} are taken")
    return text


def _shown(image: np.ndarray) -> np.ndarray:
    """As large as a screen needs it."""
    from PIL import Image

    small = Image.fromarray(image)
    small.thumbnail((SIDE, SIDE))
    return np.asarray(small)


def _unlike(labels: Sequence[Label]) -> list[Label]:
    """Labels that have one name are told apart by number."""
    seen: Counter[str] = Counter()
    out = []
    for label, score in labels:
        seen[label] += 1
        out.append(Label(label if seen[label] == 1 else f"{label} ({seen[label]})", score))
    return out
