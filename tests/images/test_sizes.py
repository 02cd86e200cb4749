"""The `size` of a preprocessor_config.json, applied to images of many sizes."""

from __future__ import annotations

import random

import pytest

from zoo.errors import ConfigError, InputError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.images.sizes import resized_shape

DETR = {"image_processor_type": "DetrImageProcessor"}


@pytest.mark.parametrize(
    ("shortest", "longest"), [(800, 800), (800, 1000), (800, 1333), (1000, 1000), (1000, 800), (33, 70)]
)
def test_shortest_and_longest_edge_equal_transformers(shortest: int, longest: int) -> None:
    transformers = pytest.importorskip("transformers.image_transforms", reason="needs transformers, the reference")
    rng = random.Random(shortest + longest)
    size = {"shortest_edge": shortest, "longest_edge": longest}
    for _ in range(5000):
        height, width = rng.randint(1, 3500), rng.randint(1, 3500)
        wanted = transformers.get_size_with_aspect_ratio((height, width), shortest, longest)
        assert resized_shape(size, height, width) == wanted, (height, width)


@pytest.mark.parametrize("longest", [800, 1000, 7])
def test_longest_edge_alone(longest: int) -> None:
    """transformers has no such rule: the long side is `longest`, the other the nearest that keeps the shape."""
    rng = random.Random(longest)
    for _ in range(2000):
        height, width = rng.randint(1, 3500), rng.randint(1, 3500)
        h, w = resized_shape({"longest_edge": longest}, height, width)
        assert max(h, w) == longest
        long, short = max(height, width), min(height, width)
        assert abs(min(h, w) * long - longest * short) <= long / 2
        assert (h >= w) == (height >= width) or h == w
    assert resized_shape({"longest_edge": 5}, 2, 4) == (2, 5)  # 2.5 to the even 2


def test_with_size() -> None:
    processor = ImageProcessor.from_dict({**DETR, "size": {"longest_edge": 800}})
    other = processor.with_size({"longest_edge": 1000})
    assert other.output_size(500, 400) == (1000, 800)
    assert processor.output_size(500, 400) == (800, 640)
    assert processor.with_size({"shortest_edge": 300, "longest_edge": 900}).output_size(500, 400) == (375, 300)
    with pytest.raises(InputError, match=r"size is 1000, expected edges by name, such as \{'longest_edge': 1000\}"):
        processor.with_size(1000)
    with pytest.raises(ConfigError, match=r"size\.longest_edge = 0"):
        processor.with_size({"longest_edge": 0})
    with pytest.raises(UnsupportedError, match="long_edge"):
        processor.with_size({"long_edge": 800})
    with pytest.raises(InputError, match="does not resize"):
        ImageProcessor.from_dict({**DETR, "do_resize": False}).with_size({"longest_edge": 9})
