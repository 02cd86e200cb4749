"""ImagePrompt: the tokens of a prompt with images in it, whose vectors are computed when they are needed.

Shapes: T tokens, n tiles of an image, I tokens of a tile, P places of images, D width of the decoder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from .. import ops
from ..errors import InputError
from ..typing import Array
from .mrope import mrope_positions
from .texts import spans_of_chunks

# Pixels that pass through the encoder at once: more take more memory, and on two cores no less time.
PIXELS, PIXELS_GPU = 1 << 19, 1 << 23


class ImagePrompt:
    """A prompt, or a part of one: a slice is a prompt too, and shares the images.

    ids (T,): with image_token_id in the places of images.  keys (T,): what caches know the tokens by, the ids of words,
    and negative numbers of the pixels in the places of images, which have all the same id; of the whole prompt where
    its first tokens attend to the last ones.  positions (T, 3): in time, height and width, where the model has them.
    """

    def __init__(self, ids: np.ndarray, keys: np.ndarray, positions: np.ndarray | None, images: _Images, before: int):
        """before: places of images before the first token."""
        self.ids, self.keys, self.positions, self._images, self._before = ids, keys, positions, images, before

    @classmethod
    def of(cls, model: Any, ids: np.ndarray, images: Sequence[np.ndarray]) -> ImagePrompt:
        """The prompt of a model's tokens (T,) and its images (n, Y, X, channels), each with the places of n tiles."""
        tiles = [tile for image in images for tile in image]
        grids = [model.vision_model.grid(tile[None]) for tile in tiles]
        counts = [model.image_length(grid) for grid in grids]
        model.check_places(ids, sum(counts))
        keys, is_place = ids.copy(), ids == model.config.image_token_id
        if tiles:
            digests = [hash_to_numbers(tile, count) for tile, count in zip(tiles, counts, strict=True)]
            keys[is_place] = np.concatenate(digests)
            if model.reads_prefixes:  # no token's keys and values are those that it has in another prompt
                keys = hash_to_numbers(keys, len(keys))
        positions = None
        if model.has_mrope:
            positions = mrope_positions(is_place, [model.token_grid(grid) for grid in grids])
        return cls(ids, keys, positions, _Images(model, tiles, counts), 0)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, span: slice) -> ImagePrompt:
        begin, end, step = span.indices(len(self))
        if step != 1:
            raise InputError(f"a slice of a prompt has the step {step}, expected 1")
        before = self._before + self._images.count(self.ids[:begin])
        positions = None if self.positions is None else self.positions[begin:end]
        return ImagePrompt(self.ids[begin:end], self.keys[begin:end], positions, self._images, before)

    def first(self, count: int) -> ImagePrompt:
        """The first `count` tokens, and those after them that the last of them attends to."""
        types = self.token_types
        return self[: spans_of_chunks(len(self), count, None if types is None else types[None])[0][1]]

    @property
    def token_types(self) -> Any:
        """(T,): 1 for tokens that attend to those of type 1 beside them; None: no token does."""
        model = self._images.model
        types = model.token_types(self.ids)
        return None if types is None else model.decoder_types(types)

    def embeds(self) -> Array:
        """The vectors (T, D) of the tokens; images are computed whose places are among them."""
        images = self._images
        return images.model.embed(self.ids, images.features(self._before, images.count(self.ids)))


class _Images:
    """The tiles of a prompt's images, and what the encoder made of those that were needed."""

    def __init__(self, model: Any, tiles: Sequence[np.ndarray], counts: Sequence[int]):
        self.model = model
        self._tiles: list[np.ndarray | None] = list(tiles)  # None: no longer needed
        self._features: dict[int, Array] = {}
        self._ends = np.cumsum(counts)

    def count(self, ids: np.ndarray) -> int:
        """The places of images among tokens."""
        return int((ids == self.model.config.image_token_id).sum())

    def features(self, begin: int, count: int) -> Array | None:
        """The vectors (count, D) of some of the places, counted from 0; None if there are none."""
        if not count:
            return None
        first = int(np.searchsorted(self._ends, begin, side="right"))
        last = int(np.searchsorted(self._ends, begin + count - 1, side="right"))
        self._compute([i for i in range(first, last + 1) if i not in self._features])
        every = [self._features[i] for i in range(first, last + 1)]
        skipped = begin - (int(self._ends[first - 1]) if first else 0)
        return ops.cat(every, 0)[skipped : skipped + count]

    def _compute(self, which: Sequence[int]) -> None:
        """Run tiles through the encoder, neighbours of one size together."""
        most = PIXELS_GPU if ops.is_cuda(self.model.like) else PIXELS
        at = 0
        while at < len(which):
            shape = self._pixels(which[at]).shape
            rows = max(1, most // (shape[0] * shape[1]))
            group = list(takewhile(lambda i, shape=shape: self._pixels(i).shape == shape, which[at : at + rows]))
            p = self.model.vision_model.pixels(np.stack([self._pixels(i) for i in group]))
            found = self.model.runner.run(self.model.image_features, p)
            for row, i in enumerate(group):
                self._features[i], self._tiles[i] = found[row], None
            at += len(group)

    def _pixels(self, i: int) -> np.ndarray:
        tile = self._tiles[i]
        assert tile is not None
        return tile


def first_tokens(prompt: Any, count: int) -> Any:
    """The first `count` tokens of a prompt; with images it may be more, as for `ImagePrompt.first`."""
    return prompt.first(count) if isinstance(prompt, ImagePrompt) else prompt[:count]


def ids_of(prompt: Any) -> Any:
    """The ids (T,) of a prompt with images or without."""
    return prompt.ids if isinstance(prompt, ImagePrompt) else prompt


def keys_of(prompt: Any) -> Any:
    """What caches know the tokens of a prompt by, with images or without."""
    return prompt.keys if isinstance(prompt, ImagePrompt) else prompt


def hash_to_numbers(x: np.ndarray, count: int) -> np.ndarray:
    """Negative numbers (count,) that follow from an array, as of a tile's pixels: 63 bits of its digest in each."""
    given = hashlib.shake_256(f"{x.shape} {x.dtype}".encode())
    given.update(np.ascontiguousarray(x).data)
    return -1 - (np.frombuffer(given.digest(8 * count), np.uint64) >> np.uint64(1)).astype(np.int64)
