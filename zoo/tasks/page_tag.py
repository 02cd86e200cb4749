"""PageTag: a label for each word of a page, by the words, their places, and the page's picture."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from ..errors import InputError, ZooError, quantity
from ..files.json_file import parse_json_list, read_bounded
from ..images import MAX_PIXELS, ImageInput, ImageProcessor
from ..peer_names import with_keys
from ..pretrained import Pretrained
from ..text.given import check_text, kind_of
from ..text.tokenizer import Tokenizer
from .arguments import as_list, collect_results, result_or_error
from .base import check_vocabulary, softmax
from .image_task import ImageTask, as_images, floats
from .results import LABEL, Lines, ResultFormat

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint

Box = tuple[float, ...]  # left, top, right, bottom in pixels
MAX_WORDS = 16 << 20  # bytes of a file of words


@with_keys(word="text")
class TaggedWord(NamedTuple):
    label: str
    score: float
    text: str
    box: Box


class TaggedWords(ResultFormat):
    columns: ClassVar[dict[str, Any]] = {"words": [{**LABEL, "text": "string", "box": ["double"]}]}

    def lines(self, result: list[TaggedWord]) -> Lines:
        return [(one.label, f"{one.score:.4f}", ", ".join(f"{v:g}" for v in one.box), one.text) for one in result]


class PageTag(ImageTask):
    """The words of pages with labels, as of receipts and forms.

    >>> tag = zoo.load("nielsr/layoutlmv3-finetuned-funsd")
    >>> tag("form.png", words=["Date:", "12 May"], boxes=[(50, 20, 90, 32), (95, 20, 150, 32)])
    [TaggedWord(label='B-QUESTION', score=0.9..., text='Date:', box=(50, 20, 90, 32)), ...]
    """

    name = "tag-page"
    results = TaggedWords()
    tokenizer: Tokenizer

    def __init__(
        self, model: Pretrained, processor: ImageProcessor, tokenizer: Tokenizer, checkpoint: Checkpoint | None = None
    ):
        super().__init__(model, processor, checkpoint)
        check_vocabulary(tokenizer, self.config.vocab_size)
        self.tokenizer = tokenizer

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        return {**super().parts_of(checkpoint), "tokenizer": Tokenizer.from_folder(checkpoint.contents)}

    def __call__(
        self,
        images: ImageInput | Sequence[ImageInput],
        words: Any,
        boxes: Sequence[Any] | None = None,
        *,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> list[Any]:
        """A list of TaggedWord, one for each word, for one image; a list of such lists for several.

        words, boxes: of one image a list of words and one of their boxes (left, top, right, bottom, in pixels), as text
        recognition finds them; of several images a list of such lists for each.  Instead of both, words may be the path
        of a JSON file, a list of {"text": "Date:", "box": [50, 20, 90, 32]}, or that list.
        A word gets the label of its first token.  A page of more than `model.max_positions` tokens is read in parts.
        data_format, max_pixels: as in `open_image`.
        """
        given, single = as_images(images, "images")
        lists = [words] if single else as_list(words, "words")
        places = [boxes] if single else [None] * len(lists) if boxes is None else as_list(boxes, "boxes")
        if not len(given) == len(lists) == len(places):
            raise InputError(f"{len(given)} images, {len(lists)} lists of words, {len(places)} lists of boxes")

        def read_page(i: int) -> tuple[list[str], list[Box]]:
            """The words and boxes of an image that is no error."""
            if isinstance(given[i], ZooError):
                raise given[i]
            page = read_words(lists[i]) if places[i] is None else (lists[i], places[i])
            return check_page(*page, None if single else i)

        pages = [result_or_error(read_page, i, i, len(given), "words") for i in range(len(given))]
        prepared = self.rows(
            [page if isinstance(page, ZooError) else image for page, image in zip(pages, given, strict=True)],
            lambda pixel_values, sizes: list(zip(pixel_values, sizes, strict=True)),
            progress=progress,
            data_format=data_format,
            max_pixels=max_pixels,
        )

        def tag_page(i: int) -> list[TaggedWord]:
            if isinstance(prepared[i], ZooError):
                raise prepared[i]
            (pixels, size), page = prepared[i], cast("tuple[list[str], list[Box]]", pages[i])
            return self._page(pixels[None], size, *page, None if single else i)

        return collect_results([result_or_error(tag_page, i, i, len(given)) for i in range(len(given))], single)

    def _page(
        self, pixels: np.ndarray, size: tuple[int, int], words: Sequence[str], boxes: Sequence[Box], index: int | None
    ) -> list[TaggedWord]:
        height, width = size
        extents = np.array([width, height, width, height])
        thousandths = (1000 * (np.asarray(boxes, np.float64) / extents)).astype(np.int64)
        if (thousandths < 0).any() or (thousandths > 1000).any():
            problem = f": a box is outside of the image of {height} x {width} pixels"
            raise InputError(problem, argument="boxes", index=index)
        labels = self.config.id2label
        found: list[TaggedWord] = []
        for ids, of in self._parts(words):
            at = np.flatnonzero(of >= 0)
            bbox = np.zeros((1, len(ids), 4), np.int64)
            bbox[0, at] = thousandths[of[at]]
            logits = floats(self.runner(self.model, ids[None], bbox=bbox, pixel_values=pixels))
            scores = softmax(logits)[0]
            for word in range(int(of[at[0]]), int(of[at[-1]]) + 1):
                best = scores[int(np.argmax(of == word))]
                name = labels[int(best.argmax())]
                found.append(TaggedWord(name, float(best.max()), words[word], boxes[word]))
        return found

    def _parts(self, words: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(ids, the word of each token, -1 for special ones) of as many words at a time as the model takes."""
        row = self.tokenizer.encode_batch([" ".join(words)], truncation=False).rows[0]
        special = np.array(row.special_tokens_mask, bool)
        begins = np.cumsum([-1, *(len(word) + 1 for word in words[:-1])])  # at the space before each word
        ids, at = np.array(row.ids), np.array([start for start, _ in row.offsets])
        of = np.where(special, -1, np.searchsorted(begins, at, side="right") - 1)
        inner = np.flatnonzero(~special)
        before, after = slice(0, inner[0]), slice(inner[-1] + 1, None)
        room = self.base_model.max_positions - int(special.sum())
        counts = np.bincount(of[inner], minlength=len(words))
        first = 0
        while first < len(words):
            last = first + 1
            while last < len(words) and counts[first : last + 1].sum() <= room:
                last += 1
            chosen = inner[(of[inner] >= first) & (of[inner] < last)][:room]
            kept = np.concatenate([np.arange(len(ids))[before], chosen, np.arange(len(ids))[after]])
            yield ids[kept], of[kept]
            first = last


def read_words(path: Any) -> tuple[list[Any], list[Any]]:
    """The words and the boxes of a JSON file, or of the list that it has."""
    if isinstance(path, list) and all(isinstance(one, dict) for one in path):
        found, name = path, "words"
    elif isinstance(path, str | os.PathLike):
        name = os.fspath(path)
        found = parse_json_list(read_bounded(name, MAX_WORDS, InputError), name, InputError)
    else:
        raise InputError(f"words are {kind_of(path)} without boxes, expected boxes, too, or the path of a JSON file")
    for i, one in enumerate(found):
        if not isinstance(one, dict) or not {"text", "box"} <= one.keys():
            raise InputError(f'{name}: item {i} is not an object with a "text" and a "box"')
    return [one["text"] for one in found], [one["box"] for one in found]


def check_page(words: Any, boxes: Any, index: int | None) -> tuple[list[str], list[Box]]:
    """The words and boxes of a page as lists; InputError if they do not belong together."""
    for name, value in (("words", words), ("boxes", boxes)):
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
            problem = f"is {'one text' if isinstance(value, str) else kind_of(value)}, expected a list"
            raise InputError(problem, argument=name, index=index)
    if not len(words) or len(words) != len(boxes):
        problem = (
            f": {quantity(len(words), 'word')} and {len(boxes)} boxes, expected a box for each of at least one word"
        )
        raise InputError(problem, argument="words", index=index)
    for word in words:
        if not isinstance(word, str) or not word or word != "".join(word.split()):
            raise InputError(f": {word!r} is not a word, which has no spaces", argument="words", index=index)
        check_text(word, "words", index)
    try:
        places = np.asarray(boxes)
    except ValueError:  # boxes of unequal length
        places = np.zeros(0)
    if places.shape != (len(words), 4) or places.dtype.kind not in "iuf" or not np.isfinite(places).all():
        raise InputError(": expected four finite numbers for each box", argument="boxes", index=index)
    return list(words), [tuple(box) for box in places.tolist()]
