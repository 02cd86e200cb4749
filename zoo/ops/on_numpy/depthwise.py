"""Convolutions of each channel by itself."""

from __future__ import annotations

import numpy as np

from . import threads
from .activations import finish
from .layout import logical
from .scratch import result, scratch

PIECE = 1 << 15  # elements of a block, which stay in cache for all taps of the kernel


def depthwise_conv2d(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, act: str | None, stride: tuple[int, int]
) -> np.ndarray:
    (B, Y, X, C), (kY, kX) = x.shape, weight.shape[2:]
    (sy, sx), (h, w) = stride, (-(-n // s) for n, s in zip((Y, X), stride, strict=True))
    height, width = Y + kY - 1, X + kX - 1
    planes, out = x.transpose(3, 0, 1, 2), result((C, B, h, w), x.dtype)
    taps = weight.reshape(C, kY * kX)
    # With zeros around it an image is one row of numbers, in which each tap of the kernel is a shift: what a shift
    # brings from the row before or after goes to the columns that are cut off again.
    size = B * height * width
    count = size - (kY - 1) * width - (kX - 1)
    step = max(1, PIECE // size)
    starts = range(0, C, step)

    def block(i: int) -> None:
        own = slice(starts[i], min(starts[i] + step, C))
        c = own.stop - own.start
        image = scratch("block", (c, B, height, width), x.dtype)
        image[...] = 0
        image[:, :, kY // 2 : kY // 2 + Y, kX // 2 : kX // 2 + X] = planes[own]
        flat, total, part = image.reshape(c, size), scratch("tiles", (c, size), x.dtype), taps[own]
        work = scratch("work", (c, count), x.dtype)
        for tap in range(kY * kX):
            first = tap // kX * width + tap % kX
            target = work if tap else total[:, :count]
            np.multiply(flat[:, first : first + count], part[:, tap, None], out=target)
            if tap:
                np.add(total[:, :count], work, out=total[:, :count])
        y = out[own]
        np.copyto(y, total.reshape(c, B, height, width)[:, :, :Y:sy, :X:sx])
        finish(y.reshape(c, -1), None if bias is None else bias[own, None], act, None)

    threads.run(block, len(starts), cost=x.size * kY * kX / 2)
    return logical(out.reshape(C, -1), (B, h, w))
