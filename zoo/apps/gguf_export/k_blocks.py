"""Quantising to Q4_K, Q5_K and Q6_K: blocks of 256 numbers, in parts whose scales are quantised by the block.

Numbers are rounded to nearest between a part's least and largest (Q6_K: by its largest), without llama.cpp's search for
smaller errors.  `zoo.quant.ggml`, which reads the blocks, documents the position of each bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BLOCK = 256
f32 = np.float32


def encode(x: np.ndarray, kind: str) -> np.ndarray:
    """(E, D) float32, with D a multiple of 256 -> (E, bytes) of blocks.  kind: Q4_K, Q5_K or Q6_K."""
    blocks = x.reshape(-1, BLOCK)
    fields = _q6_k(blocks) if kind == "Q6_K" else _with_minima(blocks, 4 if kind == "Q4_K" else 5)
    return np.concatenate([np.ascontiguousarray(f).view(np.uint8) for f in fields], axis=1).reshape(len(x), -1)


def _with_minima(x: np.ndarray, bits: int) -> Sequence[np.ndarray]:
    """number = d * scale * q - dmin * minimum, with six bits of scale and of minimum for each 32 numbers."""
    parts, most = x.reshape(-1, 8, 32), (1 << bits) - 1
    least = np.minimum(parts.min(-1), 0)
    d, scales = _of_block((np.maximum(parts.max(-1), 0) - least) / f32(most), 63)
    dmin, minima = _of_block(-least, 63)
    step = (d.astype(f32) * scales)[..., None]
    raised = parts + (dmin.astype(f32) * minima)[..., None]
    q = np.clip(np.rint(_divide(raised, step)), 0, most).astype(np.uint8)
    low = q & 15
    nibbles = (low[:, 0::2] | low[:, 1::2] << 4).reshape(-1, 128)
    fields = [d, dmin, _sixes(scales.astype(np.uint8), minima.astype(np.uint8))]
    if bits == 5:
        fields.append(np.bitwise_or.reduce((q >> 4) << np.arange(8, dtype=np.uint8)[:, None], axis=1))
    return [*fields, nibbles]


def _q6_k(x: np.ndarray) -> Sequence[np.ndarray]:
    """number = d * scale * (q - 32), with eight bits of scale for each 16 numbers."""
    parts = x.reshape(-1, 16, 16)
    largest = np.take_along_axis(parts, np.abs(parts).argmax(-1)[..., None], -1)[..., 0]
    d, scales = _of_block(largest / f32(-32), 127)
    q = np.clip(np.rint(_divide(parts, (d.astype(f32) * scales)[..., None])), -32, 31) + 32
    halves = q.astype(np.uint8).reshape(-1, 2, 4, 32)
    low, high = halves & 15, halves >> 4
    ql = (low[:, :, :2] | low[:, :, 2:] << 4).reshape(-1, 128)
    qh = np.bitwise_or.reduce(high << np.array([0, 2, 4, 6], np.uint8)[:, None], axis=2).reshape(-1, 64)
    return [ql, qh, scales.astype(np.int8), d]


def _of_block(wanted: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Scales (N, P) as float16 (N, 1) times integers of up to `most`."""
    d = (np.abs(wanted).max(-1, keepdims=True) / f32(most)).astype(np.float16)
    return d, np.clip(np.rint(_divide(wanted, d.astype(f32))), -most, most)


def _divide(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    return np.divide(x, by, out=np.zeros_like(x), where=by != 0)


def _sixes(scales: np.ndarray, minima: np.ndarray) -> np.ndarray:
    """Two arrays (N, 8) of six bits each -> (N, 12) bytes."""
    low, high = (x[:, :4] | (x[:, 4:] >> 4) << 6 for x in (scales, minima))
    return np.concatenate([low, high, scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4], axis=1)
