"""PhraseDetect: the objects in an image that labels, given in words, name, by a model that reads all labels at once.

Shapes: T tokens, D width of tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..images import MAX_PIXELS, ImageInput
from ..images.boxes import Detection, check_fraction
from ..images.phrases import post_process_phrases
from .zero_shot import sentences
from .zero_shot_detect import ZeroShotDetect

if TYPE_CHECKING:
    from ..inputs.phrases import PhraseDetector
    from ..text.tokenizer import Tokenizer

STOPS = ".?"  # what ends a phrase, of which a label is one


class PhraseDetect(ZeroShotDetect):
    """Images and labels in words to the objects that the labels name.

    >>> detector = zoo.load("IDEA-Research/grounding-dino-tiny")
    >>> found = detector("cats.png", ["a cat", "a remote control"])
    >>> found[0]
    Detection(label='a cat', score=0.4..., box=(344.6..., 23.1..., 637.1..., 374.2...))
    >>> found.draw("boxes.png")
    """

    def __call__(  # type: ignore[override]
        self,
        images: ImageInput | Iterable[ImageInput],
        candidate_labels: str | Sequence[str],
        *,
        threshold: float = 0.25,
        text_threshold: float | None = None,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> Any:
        """Detections for one image, which is a list of Detection, best first; a list of them for several images.

        candidate_labels: a list, or one text with full stops or commas between them; the model reads "a cat. a remote
        control.", as transformers' processor makes it of a list.  threshold: objects whose best token has a score
        above it, 0 ... 1, which is the object's score.  text_threshold: None for the label with the best token; a
        number, 0 ... 1, for the words whose tokens have a score above it, as transformers' processor gives them: they
        need be none of the labels.  data_format, max_pixels: as in `open_image`.
        """
        check_fraction(threshold, "threshold")
        if text_threshold is not None:
            check_fraction(text_threshold, "text_threshold")
        if isinstance(candidate_labels, str) and "." in candidate_labels:
            candidate_labels = [part.strip() for part in candidate_labels.split(".") if part.strip()]
        labels, _ = sentences(candidate_labels, "{}")
        model: PhraseDetector = self.model  # type: ignore[assignment]
        ids = prompt_of(labels, self.tokenizer, model.text_model.max_positions)
        tokens = tokens_of(labels, ids, model.delimiters)
        states: list[Any] = []

        def see(pixel_values: Any, *masks: Any) -> Any:
            text = model.text_model.tokens(ids[None])
            if not states:  # once there is an image
                states.append(self.runner.run(model.text_states, text))
            p = model.vision_model.pixels(pixel_values, *masks)
            return self.runner.run(model.detect, p, model.phrases(text, states[0], len(pixel_values)))

        def decode(places: np.ndarray) -> str:
            return self.tokenizer.decode(ids[places], skip_special_tokens=False)

        def name(logits: Any, boxes: Any, size: tuple[int, int]) -> list[Detection]:
            given = {"threshold": threshold, "text_threshold": text_threshold, "decode": decode}
            return post_process_phrases(logits, boxes, [size], labels, tokens, **given)[0]

        options: Any = {"progress": progress, "data_format": data_format, "max_pixels": max_pixels}
        return self.detections(images, labels, see, name, **options)


def prompt_of(labels: Sequence[str], tokenizer: Tokenizer, most: int) -> np.ndarray:
    """The ids (T,) of the text of all labels, `most` tokens or fewer."""
    for label in labels:
        if found := next((mark for mark in STOPS if mark in label), None):
            raise InputError(f"candidate_labels has {label!r:.100}: a label ends at {found!r}, expected it without")
    text = ". ".join(label.strip().lower() for label in labels) + "."
    ids = np.array(tokenizer.encode_batch(text, truncation=False).rows[0].ids, np.int64)
    if len(ids) > most:
        raise InputError(
            f"candidate_labels are a text of {len(ids)} tokens, and the checkpoint reads {most}: ask for fewer labels "
            "at a time"
        )
    return ids


def tokens_of(labels: Sequence[str], ids: np.ndarray, delimiters: tuple[int, ...]) -> list[np.ndarray]:
    """The places of each label's tokens among ids (T,)."""
    is_end = np.isin(ids, delimiters)
    ends = np.flatnonzero(is_end)
    if len(ends) != len(labels) + 2:  # and those of the text's first token and of its last
        raise InputError(
            f"candidate_labels are {len(labels)}, but the tokenizer makes {max(len(ends) - 2, 0)} phrases of "
            f"them, by the tokens {', '.join(map(str, delimiters))}, which end one"
        )
    found = [np.arange(a + 1, b) for a, b in pairwise(ends[:-1])]
    if empty := next((label for label, places in zip(labels, found, strict=True) if not len(places)), None):
        raise InputError(f"candidate_labels has {empty!r:.100}, of which the tokenizer makes no token")
    return found
