"""Tasks of a model with an encoder of images and one of texts: which labels, in words, an image fits, and vectors.

Shapes: B texts, C images, E the vectors' width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import ZooError
from ..images import MAX_PIXELS, ImageInput, ImageProcessor
from ..inputs.dual_encoder import DualEncoder
from ..pretrained import Pretrained
from ..text.tokenizer import Tokenizer
from .arguments import as_texts, collect_results, map_good, stack_results
from .base import batches, check_vocabulary, sigmoid, softmax, text_blocks
from .image_task import ImageTask, as_images, floats
from .results import Labels, Vectors
from .zero_shot import rank_labels, sentences

if TYPE_CHECKING:
    from ..checkpoint.files import Checkpoint

BATCH_TOKENS = 4096


class DualTask(ImageTask):
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

    def embed_texts(self, texts: list[str]) -> np.ndarray:
        """-> (B, E), vectors of length 1; what is longer than the checkpoint takes is cut."""
        model = self.pair.text_model
        found, at = np.empty(0), 0
        for block in text_blocks(texts):
            rows = self.tokenizer.encode_batch(block, max_length=model.max_positions)
            for index in batches(rows.lengths, BATCH_TOKENS, self.tokenizer.pad_token_id is not None):
                batch = self.tokenizer.pad(rows, index, padding=model.max_positions if model.pads_texts else True)
                mask = None if model.pads_texts or batch.attention_mask.all() else batch.attention_mask
                vectors = floats(self.runner.run(self.pair.text_embeds, model.tokens(batch.input_ids, mask)))
                if not found.size:
                    found = np.empty((len(texts), vectors.shape[1]), np.float32)
                found[at + index] = vectors
            at += len(block)
        return found


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


class DualEmbed(DualTask):
    """Images and texts to vectors of length 1, whose products say how well they fit.

    >>> embed = zoo.load("openai/clip-vit-base-patch32", task="embed")
    >>> embed(["cats.png", "dog.png"]).shape, embed.texts("two cats").shape
    ((2, 512), (512,))
    >>> embed.similarity(["cats.png", "dog.png"], ["two cats", "a dog"])
    array([[0.3..., 0.1...],
           [0.1..., 0.2...]], dtype=float32)
    """

    name = "embed"
    results = Vectors()

    def __call__(
        self,
        images: ImageInput | Iterable[ImageInput],
        *,
        progress: bool | None = None,
        data_format: str | None = None,
        max_pixels: int = MAX_PIXELS,
    ) -> np.ndarray:
        """An image -> (E,), several -> (C, E), float32.  data_format, max_pixels: as in `open_image`."""
        given, single = as_images(images, "images")
        rows = self.embed_images(given, progress=progress, data_format=data_format, max_pixels=max_pixels)
        return stack_results(rows, single)

    def texts(self, texts: str | Iterable[str]) -> np.ndarray:
        """A text -> (E,), several -> (B, E), float32."""
        given, single = as_texts(texts, "texts")
        rows = self.embed_texts(given)
        return rows[0] if single else rows

    def similarity(self, images: Any, texts: Any) -> np.ndarray:
        """Cosines of every pair: images, or vectors (C, E), and texts, or vectors (B, E) -> (C, B)."""
        is_vectors = isinstance(images, np.ndarray) and images.ndim == 2 and images.dtype.kind == "f"
        x = images if is_vectors else np.atleast_2d(self(images))
        y = texts if isinstance(texts, np.ndarray) else np.atleast_2d(self.texts(texts))
        return x @ y.T
