"""Convolutions of each channel by itself."""

from __future__ import annotations

import numpy as np

from . import threads
from .activations import finish
from .layout import logical
from .scratch import result, scratch

PIECE = 1 << 15  # elements of a block, which stay in cache for all taps of the kernel


def depthwise_conv2d(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    act: str | None,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
) -> np.ndarray:
    (B, Y, X, C), (kY, kX) = x.shape, weight.shape[2:]
    (sy, sx), (pY, pX), (dY, dX) = stride, padding, dilation
    height, width = Y + 2 * pY, X + 2 * pX
    h, w = (height - dY * (kY - 1) - 1) // sy + 1, (width - dX * (kX - 1) - 1) // sx + 1
    planes, out = x.transpose(3, 0, 1, 2), result((C, B, h, w), x.dtype)
    taps = weight.reshape(C, kY * kX)
    # With zeros around it an image is one row of numbers, in which each tap of the kernel is a shift: what a shift
    # brings from the row before or after goes to the columns that are cut off again.
    size = B * height * width
    count = size - dY * (kY - 1) * width - dX * (kX - 1)
    step = max(1, PIECE // size)
    starts = range(0, C, step)

    def block(i: int) -> None:
        own = slice(starts[i], min(starts[i] + step, C))
        c = own.stop - own.start
        image = scratch("block", (c, B, height, width), x.dtype)
        image[...] = 0
        image[:, :, pY : pY + Y, pX : pX + X] = planes[own]
        flat, total, part = image.reshape(c, size), scratch("tiles", (c, size), x.dtype), taps[own]
        work = scratch("work", (c, count), x.dtype)
        for tap in range(kY * kX):
            first = tap // kX * dY * width + tap % kX * dX
            target = work if tap else total[:, :count]
            np.multiply(flat[:, first : first + count], part[:, tap, None], out=target)
            if tap:
                np.add(total[:, :count], work, out=total[:, :count])
        y = out[own]
        np.copyto(y, total.reshape(c, B, height, width)[:, :, : (h - 1) * sy + 1 : sy, : (w - 1) * sx + 1 : sx])
        finish(y.reshape(c, -1), None if bias is None else bias[own, None], act, None)

    threads.run(block, len(starts), cost=x.size * kY * kX / 2)
    return logical(out.reshape(C, -1), (B, h, w))
