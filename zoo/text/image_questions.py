"""What an encoder-decoder is asked about an image: what its decoder goes on from, or what its encoder reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class ImageQuestion(NamedTuple):
    """decoder: the text that the decoder goes on from; "": it begins with its start token.  encoder: the text that the
    encoder reads beside the image; None: it reads none.
    """

    decoder: str = ""
    encoder: str | None = None


# model_type of config.json -> what a prompt is.
QUESTIONS: dict[str, Callable[[str], ImageQuestion]] = {
    "vision-encoder-decoder": ImageQuestion,  # Donut's
}
