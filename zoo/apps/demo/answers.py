"""The functions behind the demo's tabs, without Gradio: uploaded paths and texts in, pictures and texts out.

Inputs are untrusted: sizes are limited here, and bad input raises a ZooError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from ...errors import InputError
from ...files.leftovers import temporary_folder
from ...images import open_image
from ...task_kinds import TaskKind
from ...tasks.image_task import ImageTask
from ...tasks.segment import Area, palette
from ..documents import open_document
from ..documents.limits import MAX_PIXELS, chosen_pages
from ..tables.flat import unique_names
from ..tables.pages import page_tables
from ..tables.review import ReviewWriter
from .models import Models

MAX_CHARACTERS = 20_000  # in a text
MAX_LINES = 500  # to compare a text with
SHOWN_PIXELS = 1600  # longer side of a picture on the page


def find_tables(
    models: Models,
    path: str | None,
    pages: str = "",
    threshold: float = 0.5,
    whole: bool = False,
    password: str | None = None,
) -> str:
    """The review page (HTML) of the tables of a document's pages.  whole: each page is one table.

    password: of an encrypted PDF, in place of the one that the demo was started with.
    """
    path = _require_file(path, "a PDF or a picture of a page")
    config, extractor = models.config, models.extractor().replace(threshold=threshold, whole=whole)
    options = {"dpi": config.dpi, "password": password or config.password, "max_pixels": MAX_PIXELS}
    with (
        temporary_folder() as folder,
        open_document(path, name=os.path.basename(path), **options) as document,
    ):
        numbers = chosen_pages(document, pages.strip() or None)
        review, count = ReviewWriter(folder / "review.html", config), 0
        for number in numbers:
            page = document.page(number)
            result = page_tables(extractor, page, document.sha256)
            review.add(result, page)
            count += len(result.tables)
        if not count:
            hint = "" if whole else ", or tick 'The whole page is one table' for a picture of one table"
            raise InputError(f"{document.name}: no table found: try a score below {threshold:g}{hint}")
        return review.close()[0].read_text(encoding="utf-8")


def classify(models: Models, path: str | None, text: str = "") -> tuple[np.ndarray | None, dict[str, float]]:
    """The picture to show, and label -> score for the picture or the text, whichever the checkpoint reads."""
    task, name = models.task("classify"), models.names["classify"]
    if isinstance(task, ImageTask):
        image = _picture(path, f"a picture, since {name} reads pictures")
        shown, labels = _thumbnail(image), task(image, top_k=5)
    else:
        shown, labels = None, task(_text(text, f"a text, since {name} reads texts"), top_k=5)
    return shown, dict(zip(unique_names([one.label for one in labels]), [one.score for one in labels], strict=True))


def segment(models: Models, path: str | None) -> tuple[np.ndarray, list[tuple[Area, tuple[int, int, int]]]]:
    """The picture under the colours of its labels, and the colour of each label, the largest area first."""
    image = _picture(path)
    found = models.task("segment")(image)
    colours = palette(max((area.id for area in found.labels), default=0) + 1).tolist()
    return _thumbnail(np.asarray(found.overlay())), [(area, tuple(colours[area.id])) for area in found.labels]


def read(models: Models, path: str | None, lines: bool = True) -> tuple[np.ndarray, str, float]:
    """The picture, its text, and the confidence of the text (0 ... 1)."""
    image = _picture(path, "a picture of a line of text, or of several")
    reading = models.task("read")(image, lines=lines)
    return _thumbnail(image), reading.text, reading.confidence


def neighbours(models: Models, text: str, lines: str) -> list[tuple[float, str]]:
    """Cosines to a text and the lines they belong to, the most similar first."""
    text, lines = _text(text, "a text"), _text(lines, "lines to compare it with")
    among = [line.strip() for line in lines.splitlines() if line.strip()]
    if len(among) > MAX_LINES:
        raise InputError(f"{len(among)} lines, at most {MAX_LINES} at once")
    embed = models.task("embed")
    if isinstance(embed, ImageTask):
        raise InputError(f"{models.names['embed']} reads pictures, and this tab compares texts")
    cosines = embed.similarity(text, among)[0].tolist()
    return sorted(zip(cosines, among, strict=True), key=lambda one: -one[0])


def text_fields(kind: TaskKind) -> list[str]:
    """The names of the texts that a task's tab asks for: its arguments, unless they are files, and required options."""
    required = [option.name for option in kind.options if option.required and option.name not in kind.arguments]
    return [*(kind.arguments if kind.reads == "text" else ()), *required]


def run_task(
    models: Models, kind: TaskKind, path: str | None, texts: Sequence[str]
) -> tuple[np.ndarray | None, list[list[str]]]:
    """The picture of a task's result, if it draws one, and its lines in columns.

    path: of an image or a recording, for tasks that read one.  texts: the values of `text_fields`.
    """
    arguments: dict[str, Any] = {}
    if kind.reads == "image":
        arguments[kind.arguments[0]] = _picture(path)
    elif kind.reads == "audio":
        arguments[kind.arguments[0]] = _require_file(path, "a recording")
    for name, text in zip(text_fields(kind), texts, strict=True):
        option, value = kind.option(name), _text(text, name.replace("_", " "))
        if is_list(kind, name):
            parts = value.split("," if option else "\n")
            arguments[name] = [part.strip() for part in parts if part.strip()][:MAX_LINES]
        else:
            arguments[name] = value
    task = models.task(kind.name)
    result = task(**arguments)
    found = task.results.lines(result)
    rows = [(found,)] if isinstance(found, str) else found
    shown = _thumbnail(np.asarray(task.results.picture(result))) if kind.draws else None
    return shown, [[f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]


def is_list(kind: TaskKind, name: str) -> bool:
    """True for a field that takes several texts: labels with commas between them, or a document in each line."""
    option = kind.option(name)
    return (kind.ranks and name == kind.arguments[-1]) or (option is not None and option.metavar == "A,B,C")


class Talk:
    """The chat tab; the cache of keys and values is kept for the latest conversation only."""

    def __init__(self, models: Models):
        self.models = models
        self._last: Any = None

    def say(
        self, text: str, before: Sequence[Mapping[str, str]], max_new_tokens: int = 200, temperature: float = 0.7
    ) -> Iterator[str]:
        """The answer in pieces.  before: earlier messages.  Without a chat template only the text is continued."""
        text, llm = _text(text, "a text"), self.models.task("chat")
        options: dict[str, Any] = {"max_new_tokens": max_new_tokens, "do_sample": temperature > 0}
        if temperature > 0:
            options["temperature"] = temperature
        if llm.template is None:
            yield from llm.stream(text, **options)
            return
        if self._last is None or self._last.messages != before:
            self._last = llm.conversation()
            self._last.messages = list(before)
        self._last.options = options
        with closing(self._last.say(text)) as pieces:
            yield from pieces


def _require_file(path: str | None, what: str) -> str:
    if not path:
        raise InputError(f"no file: upload {what}")
    return path


def _picture(path: str | None, what: str = "a picture") -> np.ndarray:
    """(H, W, 3) uint8, upright."""
    path = _require_file(path, what)
    with open(path, "rb") as file:
        return np.asarray(open_image(file, max_pixels=MAX_PIXELS, name=os.path.basename(path)))


def _text(text: str, what: str) -> str:
    if not text.strip():
        raise InputError(f"no text: enter {what}")
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"a text of {len(text)} characters, at most {MAX_CHARACTERS} are allowed")
    return text


def _thumbnail(image: np.ndarray) -> np.ndarray:
    from PIL import Image

    small = Image.fromarray(image)
    small.thumbnail((SHOWN_PIXELS, SHOWN_PIXELS))
    return np.asarray(small)
