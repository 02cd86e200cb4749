"""What an encoder-decoder is asked about an image: what its decoder goes on from, or what its encoder reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .florence_tasks import question_of


class ImageQuestion(NamedTuple):
    """decoder: the text that the decoder goes on from; "": it begins with its start token.  encoder: the text that the
    encoder reads beside the image; None: it reads none.  has_start: whether the start token is before what the
    decoder goes on from.
    """

    decoder: str = ""
    encoder: str | None = None
    has_start: bool = False


# model_type of config.json -> what a prompt is.
QUESTIONS: dict[str, Callable[[str], ImageQuestion]] = {
    "blip": lambda text: ImageQuestion(text, has_start=True),
    "florence2": lambda text: ImageQuestion(encoder=f"<s>{question_of(text)}</s>"),
    "vision-encoder-decoder": ImageQuestion,  # Donut's
}
