"""Documents read by a model of images and texts: an answer about each page, and the document that it says."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...checkpoint.names import mmproj_hint
from ...errors import InputError, ZooError
from ...tasks.image_text import DOCTAG, ImageText, user_messages
from ...tasks.progress import Progress
from ...warning import warn
from ..documents import Pages, open_document
from ..documents.files import DPI, DocumentFile
from .doctags import read_doctags
from .document import Block, Document
from .donut import has_donut_tags, read_donut
from .markdown import read_markdown
from .otsl import HAS_CELLS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ...keywords import LoadOptions

# What a model is asked about a page: that of DocTags, and those of other families, or of what answers in Markdown.
DOCTAGS_PROMPT = "Convert this page to docling."
MARKDOWN_PROMPT = (
    "Convert this page to Markdown: headings, paragraphs and lists as they are, each table in HTML, each formula in "
    "LaTeX. Answer with the text of the page alone."
)
PROMPTS = {"glm_ocr": "Text Recognition:", "got_ocr2": "OCR with format: ", "lighton_ocr": "", "paddleocr_vl": "OCR:"}
PROMPTS |= {"paligemma": "ocr", "vision-encoder-decoder": "", "florence2": "<OCR>"}
MAX_TOKENS = 8192  # tokens of the answer about a page, where the context has room for them
NO_ANSWER = "the model answered nothing"
_DOCTAGS = re.compile(
    r"<(?:doctag|otsl|section_header_level_\d|text|list_item|(?:un)?ordered_list|page_(?:header|footer)|loc_\d+)>"
)


class Answer(NamedTuple):
    """What a model wrote about a page.  is_whole: False if it was stopped by the number of tokens."""

    text: str
    tokens: int
    is_whole: bool


def read_document(
    file: DocumentFile,
    model: str | os.PathLike[str] | ImageText,
    *,
    pages: Pages | None = None,
    prompt: str | None = None,
    max_new_tokens: int | None = None,
    dpi: float = DPI,
    password: str | None = None,
    progress: bool | None = None,
    **options: Unpack[LoadOptions],
) -> Document:
    """Read a PDF or an image file with a model of images and texts, page by page, to a `Document`.

    file, dpi, password: as for `open_document`.  model: the name or the folder of a checkpoint, such as
    "ibm-granite/granite-docling-258M", with the options of `zoo.load`; or its loaded task.
    pages: such as "3-7,9" or "5-"; by default all.  prompt: what is asked about each page; by default to convert it, to
    DocTags where the checkpoint has their tokens, otherwise to Markdown.  The answer's markup is told by its tags.
    max_new_tokens: of the answer about a page; by default 8,192, or what the context has room for.

    What an answer lacks of its markup, and one that was cut off, is a doubt of the document.  A page that cannot be
    read is left out, with a warning, and is one of `Document.errors`; if it is the only page, that is an InputError.
    """
    task = load_reader(model, **options)
    with open_document(file, dpi=dpi, password=password) as document:
        numbers = document.numbers(pages)
        blocks, doubts, errors = list[Block](), list[str](), list[str]()
        for i, number in enumerate(numbers, 1):
            what = f"{document.name}, page {i} of {len(numbers)}"
            try:
                page = document.page(number)
                with Progress(None, progress, "tokens", what) as advance:
                    found = read_page(task, page.image, prompt, max_new_tokens, advance)
            except ZooError as e:
                if len(numbers) == 1:
                    raise
                errors.append(f"page {number}: {e}")
                warn(f"{document.name}, page {number}: {e}")
            else:
                where = f"page {number}: " if len(document) > 1 else ""
                doubts += [f"{where}{doubt}" for doubt in found.doubts]
                blocks += [_of_page(block, document.name, number) for block in found.blocks]
        return Document(tuple(blocks), tuple(doubts), document.name, tuple(errors))


def load_reader(model: str | os.PathLike[str] | ImageText, **options: Unpack[LoadOptions]) -> ImageText:
    """The task of a checkpoint of images and texts; InputError for a checkpoint of another kind."""
    if isinstance(model, str | os.PathLike):
        from ...tasks import load_task

        found: Any = load_task(model, None, **options)
        name = os.fspath(model)
    elif options:
        raise InputError(f"{', '.join(options)}: the model is loaded, and these are options of zoo.load")
    else:
        found, name = model, "model"
    if not isinstance(found, ImageText):
        kind = getattr(found, "name", type(found).__name__)
        raise InputError(
            f"{name} is a checkpoint for {kind}, expected one for {ImageText.name}, such as "
            f"ibm-granite/granite-docling-258M; zoo ocr reads text with other models{mmproj_hint(name)}"
        )
    return found


def read_page(
    task: ImageText,
    image: np.ndarray,
    prompt: str | None = None,
    max_new_tokens: int | None = None,
    advance: Callable[[int], object] | None = None,
) -> Document:
    """The document of the picture of a page (H, W, 3) uint8; options as for `read_document` and `answer_about`."""
    answer = answer_about(task, image, prompt, max_new_tokens, advance)
    found = read_markup(answer.text)
    doubts = list(found.doubts)
    if not answer.is_whole:
        doubts.insert(0, f"the answer was cut off after {answer.tokens:,} tokens")
    if not found.blocks:
        doubts.append(NO_ANSWER)
    return replace(found, doubts=tuple(doubts))


def answer_about(
    task: ImageText,
    image: np.ndarray,
    prompt: str | None = None,
    max_new_tokens: int | None = None,
    advance: Callable[[int], object] | None = None,
) -> Answer:
    """What a model answers about the picture of a page (H, W, 3) uint8.  advance: is told of each token."""
    asked = prompt_for(task) if prompt is None else prompt
    ids, config = task.chat_ids(user_messages([image], asked), {})
    count = min(MAX_TOKENS, task.max_tokens - len(ids)) if max_new_tokens is None else max_new_tokens
    config, taken, pieces, told = config.replace(max_new_tokens=count), list[int](), list[str](), 0
    for piece in task.stream_ids(ids, config, taken=taken):
        pieces.append(piece)
        if advance is not None:
            advance(len(taken) - told)
            told = len(taken)
    is_whole = len(taken) < count or taken[-1] in config.eos_token_id
    return Answer("".join(pieces), len(taken), is_whole)


def prompt_for(task: ImageText) -> str:
    """What a checkpoint is asked to convert a page."""
    default = DOCTAGS_PROMPT if DOCTAG in task.tokenizer.added_tokens() else MARKDOWN_PROMPT
    return PROMPTS.get(task.config.model_type, default)


def read_markup(text: str) -> Document:
    """The document of an answer in DocTags, OTSL, Donut's tags, HTML or Markdown, as its tags say."""
    if _DOCTAGS.search(text):
        return read_doctags(text)
    if HAS_CELLS.search(text):
        return read_doctags(f"<otsl>{text}</otsl>")
    return read_donut(text) if has_donut_tags(text) else read_markdown(text)


def _of_page(block: Block, source: str, number: int) -> Block:
    """The block with its page, and its table with its page and document."""
    table = None if block.table is None else replace(block.table, source=source, page=number)
    return replace(block, page=number, table=table)
