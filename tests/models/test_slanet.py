"""SLANet: pixels, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from zoo.errors import ConfigError, UnsupportedError
from zoo.images import ImageProcessor
from zoo.models.slanet import SLANetConfig


def test_pixels_are_those_of_opencv_within_a_grey_level(rng):
    """transformers' processor resizes with OpenCV's weights, of eleven bits; the long side fills the picture."""
    image = rng.integers(0, 256, (40, 70, 3), np.uint8)
    size = {"height": 48, "width": 48}
    raw = {"image_processor_type": "SLANeXtImageProcessor", "size": size, "pad_size": size}
    (ours,) = ImageProcessor.from_dict({**raw, "do_normalize": False})(image).pixel_values
    assert ours.shape == (48, 48, 3)
    assert not ours[27:].any()
    high, wide = round(40 * 48 / 70), 48
    wanted = np.zeros((high, wide, 3), np.int64)
    places = []
    for count, old in ((high, 40), (wide, 70)):
        at = (np.arange(count) + 0.5) * (old / count) - 0.5
        first = np.floor(at).astype(int)
        share = np.floor((at - first) * 2048 + 0.5).astype(int)
        places.append(((first, 2048 - share), (first + 1, share)))
    for y, down in places[0]:
        for x, across in places[1]:
            wanted += down[:, None, None] * across[None, :, None] * image[y[:, None], x[None]].astype(int)
    wanted = (wanted + (1 << 21)) >> 22
    apart = np.abs(ours[:high] * 255 - wanted)
    assert apart.max() < 1.01
    assert (apart > 0.5).mean() < 0.3


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"post_conv_out_channels": 15}, ConfigError, "post_conv_out_channels must be even"),
        ({"csp_kernel_size": 4}, ConfigError, "csp_kernel_size odd"),
        ({"max_text_length": 20_000}, ConfigError, "max_text_length = 20000 is out of range"),
        ({"loc_reg_num": 8}, UnsupportedError, "loc_reg_num = 8"),
        ({"backbone_config": {"out_features": ["stage2", "stage3"]}}, ConfigError, "expected stages 2 ... 5"),
    ],
)
def test_what_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        SLANetConfig.from_dict(fields)
