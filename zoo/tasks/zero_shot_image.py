"""Tasks of a model with an encoder of images and one of texts: which labels, in words, an image fits, and vectors.

Shapes: B texts, C images, E the vectors' width.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import ZooError
from ..images import MAX_PIXELS, ImageInput, ImageProcessor
from ..inputs.dual_encoder import DualEncoder
from ..pretrained import Pretrained
from ..text.tokenizer import Tokenizer
from .arguments import collect_results, map_good, stack_results
from .base import check_vocabulary, sigmoid, softmax
from .dual import ComparesVectors, TextSide
from .image_task import ImageTask, as_images, floats
from .results import Labels, Vectors
from .zero_shot import rank_labels, sentences

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")


class DualTask(TextSide, ImageTask):
    """A model with its image processor and its tokenizer."""

    tokenizer: Tokenizer

    def __init__(
        self,
        model: Pretrained,
        processor: ImageProcessor,
        tokenizer: Tokenizer,
        checkpoint: Checkpoint | None = None,
    ):
        super().__init__(model, processor, checkpoint)
        self.pair, self.tokenizer = cast(DualEncoder, model), tokenizer
        check_vocabulary(tokenizer, self.config.text_config.vocab_size)

    @classmethod
    def parts_of(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        return {"tokenizer": Tokenizer.from_folder(checkpoint.contents), **super().parts_of(checkpoint)}

    def embed_images(self, images: Sequence[Any], **options: Any) -> list[Any]:
        """A vector (E,) of length 1 for each image, or its error."""

        asked = bool(self.call_options)

        def compute(pixel_values: Any, sizes: Any) -> list[np.ndarray]:
            pixels = self.pair.vision_model.pixels(pixel_values, interpolate_pos_encoding=asked)
            return list(floats(self.runner.run(self.pair.image_embeds, pixels)))

        return self.rows(images, compute, **options)


class ZeroShotImage(DualTask):
    """Images and labels in words to scores, best first.

    >>> zero_shot = zoo.load("openai/clip-vit-base-patch32")
    >>> zero_shot("cats.png", ["a cat", "a dog"])
    [Label(label='a cat', score=0.9...), Label(label='a dog', score=0.0...)]
    """

    name = "zero-shot-image-classification"
    results = Labels()

    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        candidate_labels: str | Sequence[str],
        *,
        hypothesis_template: str = "This is a photo of {}.",
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> list[Any]:
        """A list of Label, best first, for one image; a list of such lists for several.

        candidate_labels: a list, or one text with commas between them.  hypothesis_template: the sentence about a
        label, which takes the place of {}.  The scores of all labels add up to 1, or, for SigLIP, are the probability
        of each by itself.  data_format, max_pixels: as in `open_image`.
        """
        labels, texts = sentences(candidate_labels, hypothesis_template)
        given, single = as_images(images, "images")
        rows = self.embed_images(given, progress=progress, data_format=data_format, max_pixels=max_pixels)
        scores = sigmoid if self.pair.scores == "sigmoid" else softmax
        good = [row for row in rows if not isinstance(row, ZooError)]
        if good:
            found = self.runner.run(self.pair.compare, self.pair.vectors(np.stack(good), self.embed_texts(texts)))
            ranks = iter([rank_labels(labels, row) for row in scores(floats(found.logits_per_image))])
            rows = map_good(lambda _: next(ranks), rows)
        return collect_results(rows, single)


class DualEmbed(ComparesVectors, DualTask):
    """Images and texts to vectors of length 1, whose products say how well they fit.

    >>> embed = zoo.load("openai/clip-vit-base-patch32", task="embed")
    >>> embed(["cats.png", "dog.png", "two cats"]).shape
    (3, 512)
    >>> embed.similarity(["cats.png", "dog.png"], ["two cats", "a dog"])
    array([[0.3..., 0.1...],
           [0.1..., 0.2...]], dtype=float32)
    >>> embed.semantic_search("two cats", ["cats.png", "dog.png"], top_k=1)
    [[Hit(corpus_id=0, score=0.3...)]]
    """

    name = "embed"
    results = Vectors()

    def __call__(
        self,
        inputs: ImageInput | Iterable[ImageInput],
        *,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> np.ndarray:
        """An image or a text -> (E,), several -> (N, E), float32.

        A string is the path of an image if a file has that name, or if it ends as names of images do (.png, .jpg, ...);
        any other string is a text.  data_format, max_pixels: as in `open_image`.
        """
        given, single = as_images(inputs, "inputs")
        found: list[Any] = [None] * len(given)
        texts = [i for i, one in enumerate(given) if isinstance(one, str) and not _is_path(one)]
        images = [i for i in range(len(given)) if i not in set(texts)]
        for i, vector in zip(texts, self.embed_texts([given[i] for i in texts]), strict=True):
            found[i] = vector
        options = {"progress": progress, "data_format": data_format, "max_pixels": max_pixels}
        for i, vector in zip(images, self.embed_images([given[i] for i in images], **options), strict=True):
            is_one_of_many = isinstance(vector, ZooError) and not single
            found[i] = vector.about("inputs", i) if is_one_of_many else vector
        return stack_results(found, single)


def _is_path(text: str) -> bool:
    return text.lower().endswith(IMAGE_SUFFIXES) or os.path.isfile(text)
