"""The text that stands for an image in a prompt: a token for each of its vectors, and what marks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Grid = tuple[int, int]  # rows and columns of an image's tiles; (0, 0): it is one


class ImagePlaces(NamedTuple):
    """What a family's chat templates write for an image, and the function that makes a text of its tiles.

    expand: of the grid of tiles, and of the vectors of a tile.
    """

    token: str
    expand: Callable[[Grid, int], str]
    repeated: str  # the token of each place, image_token_id
    # How a model without a chat template has its one text, whose special tokens are then all in it.
    prompt: Callable[[str], str] | None = None
    by_rows: bool = False  # True if the grid is that of an image's vectors


def _between_marks(begin: str, token: str, end: str) -> Callable[[Grid, int], str]:
    """Gemma 3's: the whole image, and the crops of one that is no square, each with marks and empty lines around it."""

    def expand(grid: Grid, count: int) -> str:
        one, crops = f"\n\n{begin}{token * count}{end}\n\n", grid[0] * grid[1]
        if not crops:
            return one
        return f"Here is the original image {one} and here are some crops to help you see better " + " ".join(
            [one] * crops
        )

    return expand


FAKE, GLOBAL, IMAGE = "<fake_token_around_image>", "<global-img>", "<image>"
BEGIN, SOFT = "<start_of_image>", "<image_soft_token>"
CONTEXT, PAD = "<IMG_CONTEXT>", "<imgpad>"


def _text_of_tiles(grid: Grid, count: int) -> str:
    """Idefics3's: the tiles row by row, each named by its place, and the whole image."""
    rows, columns = grid
    whole = f"{FAKE}{GLOBAL}{IMAGE * count}{FAKE}"
    if grid == (0, 0):
        return whole
    lines = (
        "".join(f"{FAKE}<row_{r + 1}_col_{c + 1}>{IMAGE * count}" for c in range(columns)) + "\n" for r in range(rows)
    )
    return "".join(lines) + "\n" + whole


def _text_of_internvl(grid: Grid, count: int) -> str:
    """InternVL's: all tiles, and the whole image after them, between two marks."""
    tiles = grid[0] * grid[1] + 1 if grid[0] else 1
    return f"<img>{CONTEXT * (tiles * count)}</img>"


def _text_of_rows(grid: Grid, count: int) -> str:
    """Pixtral's: the vectors row by row, each with a token at its end, the last with another one."""
    rows = ["[IMG]" * grid[1]] * grid[0]
    return "[IMG_BREAK]".join(rows) + "[IMG_END]"


def _plain_places(token: str) -> ImagePlaces:
    """A token for each vector, and no marks."""
    return ImagePlaces(token, lambda grid, count: token * count, token)


def _text_after_images(text: str) -> str:
    """PaliGemma's: images, the token that begins a text, the text, and the end of its line."""
    *images, asked = text.split(IMAGE)
    return f"{IMAGE.join([*images, ''])}<bos>{asked}\n"


def _conversation_about_pages(text: str) -> str:
    """GOT-OCR 2.0's: its one conversation, with the pages and what is asked about them."""
    *pages, asked = text.split(PAD)
    return (
        "<|im_start|>system\nYou should follow the instructions carefully and explain your answers in detail.<|im_end|>"
        f"<|im_start|>user\n<img>{PAD.join([*pages, ''])}</img>\n {asked}<|im_end|><|im_start|>assistant\n"
    )


# model_type of config.json -> how its prompts have images.
PLACES: dict[str, ImagePlaces] = {
    "gemma3": ImagePlaces(BEGIN, _between_marks(BEGIN, SOFT, "<end_of_image>"), SOFT),
    "glm_ocr": _plain_places("<|image|>"),
    "got_ocr2": _plain_places(PAD)._replace(prompt=_conversation_about_pages),
    "idefics3": ImagePlaces(IMAGE, _text_of_tiles, IMAGE),
    "internvl": ImagePlaces(CONTEXT, _text_of_internvl, CONTEXT),
    "lighton_ocr": _plain_places("<|image_pad|>"),
    "llava": _plain_places(IMAGE),
    "mistral3": ImagePlaces("[IMG]", _text_of_rows, "[IMG]", by_rows=True),
    "paddleocr_vl": _plain_places("<|IMAGE_PLACEHOLDER|>"),
    "paligemma": _plain_places(IMAGE)._replace(prompt=_text_after_images),
    "qwen2_5_vl": _plain_places("<|image_pad|>"),
    "qwen2_vl": _plain_places("<|image_pad|>"),
    "qwen3_vl": _plain_places("<|image_pad|>"),
    "smolvlm": ImagePlaces(IMAGE, _text_of_tiles, IMAGE),
}


class Expansion:
    """Puts images in the places of a text's tokens, one after the other; `used`: the tokens that it has found."""

    def __init__(self, places: ImagePlaces, images: Sequence[tuple[Grid, int]]):
        """images: the grid of each one's tiles, and the vectors of a tile."""
        self._places, self.used = places, 0
        self._left: Iterator[tuple[Grid, int]] = iter(images)

    def __call__(self, text: str) -> str:
        first, *rest = text.split(self._places.token)
        parts = [first]
        for part in rest:
            image = next(self._left, None)
            self.used += 1
            parts += [self._places.token if image is None else self._places.expand(*image), part]
        return "".join(parts)
