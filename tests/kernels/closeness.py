"""The tolerance between a kernel's result and its float64 twin, and the twin of the two attention kernels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tests.ops import naive

DTYPES = (torch.float32, torch.float16, torch.bfloat16)

# Of 1 + |what is wanted|.  A result is rounded once, by at most half of `eps` (9.8e-4 in float16, 7.8e-3 in bfloat16);
# in float32 the sums, and exp2 as GPUs have it, are off by more than the last rounding.
TOLERANCES = {torch.float32: 1e-5, torch.float16: 6e-4, torch.bfloat16: 4.5e-3}


def wide(x: Tensor) -> np.ndarray:
    """The same numbers in float64, for a function of `tests.ops.naive`."""
    return x.detach().cpu().double().numpy()


def attention_twin(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    start: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    scale: float = 0.2,
    window: int | None = None,
) -> np.ndarray:
    start_, mask_ = (None if x is None else x.cpu().numpy() for x in (start, mask))
    bias_ = None if bias is None else wide(bias)
    return naive.attention(wide(q), wide(k), wide(v), start=start_, mask=mask_, bias=bias_, scale=scale, window=window)


def assert_close(got: Tensor, want: np.ndarray | Tensor, roundings: float = 1.0) -> None:
    """Every element lies within `roundings` times the tolerance of its dtype."""
    want = wide(want) if isinstance(want, Tensor) else np.asarray(want, np.float64)
    assert tuple(got.shape) == want.shape, f"shape {tuple(got.shape)}, expected {want.shape}"
    found = wide(got)
    finite = np.isfinite(want)
    assert np.array_equal(found[~finite], want[~finite], equal_nan=True), "infinities or NaN are not where they belong"
    error = np.zeros(want.shape)
    error[finite] = np.abs(found[finite] - want[finite]) / (1 + np.abs(want[finite]))
    allowed = roundings * TOLERANCES[got.dtype]
    bad = ~(error <= allowed)  # NaN is bad too
    assert not bad.any(), (
        f"{bad.sum()} of {bad.size} are off by up to {error.max():.2e}, and {allowed:.2e} is allowed; "
        f"the first at {np.argwhere(bad)[0].tolist()}"
    )
