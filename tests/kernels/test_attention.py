"""The attention kernel against its float64 twin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
import torch
from closeness import DTYPES, assert_close, attention_twin, wide
from torch import Tensor

from zoo import ops
from zoo.engines import triton as kernels
from zoo.engines.triton import configs
from zoo.engines.triton.attention import attention
from zoo.engines.triton.configs import AttentionConfig
from zoo.errors import InputError, UnsupportedError

# Besides the result, the weights are rounded to the dtype of the values: by as much again, of sums of |weight * value|.
ROUNDINGS = 2.5
SIZES = (1, 17, 65, 130, 197)


def normal(*shape: int, dtype: torch.dtype, device: str) -> Tensor:
    return torch.randn(shape, device=device).to(dtype)


def made(
    B: int, T: int, S: int, H: int, G: int, K: int, dtype: torch.dtype, device: str
) -> tuple[Tensor, Tensor, Tensor]:
    """q (B, T, H, K), k and v (B, S, G, K): views of wider tensors, as projections that are fused give them."""
    q = normal(B, T, H * K + 8, dtype=dtype, device=device)[:, :, : H * K].reshape(B, T, H, K)
    kv = normal(B, S, 2, G, K, dtype=dtype, device=device)
    return q, kv[:, :, 0], kv[:, :, 1]


def agrees(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    start: Tensor | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scale: float = 0.2,
    config: AttentionConfig | None = None,
    window: int | None = None,
) -> None:
    got = attention(q, k, v, start, mask, bias, scale, window, config=config)
    assert got.dtype == q.dtype
    assert_close(got, attention_twin(q, k, v, start, mask, bias=bias, scale=scale, window=window), ROUNDINGS)


@pytest.mark.parametrize(
    ("given", "window"),
    [  # a window beyond the keys hides nothing: what hides besides is said with the smaller ones
        pytest.param(given, window, marks=[pytest.mark.nightly] * (window in nightly))
        for given, nightly in (("", (64,)), ("start", (500,)), ("mask", (64, 500)), ("start mask bias", (500,)))
        for window in (0, 3, 64, 500)
    ],
)
def test_windows(given: str, window: int, device: str) -> None:
    T, S = (70, 150) if "start" in given else (150, 150)
    start = torch.tensor([80, 9], device=device) if "start" in given else None
    mask = torch.ones(2, S, dtype=torch.bool, device=device)
    mask[0, :40], mask[1, 100:] = False, False
    bias = torch.randn(2, 4, T, S, device=device) if "bias" in given else None
    q, k, v = made(2, T, S, 4, 2, 32, torch.float32, device)
    agrees(q, k, v, start, mask if "mask" in given else None, bias, window=window)


@pytest.mark.parametrize(
    ("T", "S", "dtype"),
    [(T, S, DTYPES[(i + j) % 3]) for (i, T), (j, S) in product(enumerate(SIZES), enumerate(SIZES))],
)
def test_sizes_that_fill_no_tile(T: int, S: int, dtype: torch.dtype, device: str) -> None:
    agrees(*made(1, T, S, 1, 1, 32, dtype, device))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("K", [8, 16, 32, 64, 80, 96, 100, 128, 256])
def test_head_sizes(K: int, dtype: torch.dtype, device: str) -> None:
    start = torch.tensor([30], device=device)
    agrees(*made(1, 17, 70, 1, 1, K, dtype, device), scale=K**-0.5)
    agrees(*made(1, 17, 70, 1, 1, K, dtype, device), start=start, scale=K**-0.5)


@pytest.mark.parametrize("R", [1, 2, 4, 8])
def test_query_heads_share_key_heads(R: int, device: str) -> None:
    agrees(*made(2, 17, 33, 2 * R, 2, 32, torch.float16, device))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_views_of_a_fused_projection(dtype: torch.dtype, device: str) -> None:
    x = normal(2, 37, (4 + 2 * 2) * 32, dtype=dtype, device=device)
    q, k, v = ops.split_heads(x, 4, 2)
    agrees(q, k, v, start=torch.tensor([0, 0], device=device))


def test_any_strides(device: str) -> None:
    q, k, v = (normal(2, 2, 64, 40, dtype=torch.float32, device=device).permute(0, 3, 1, 2) for _ in range(3))
    agrees(q, k, v)  # no last axis has elements that follow one another
    agrees(q[:, ::3], k[:, 1::2], v[:, 1::2])
    agrees(q[:1].expand(3, -1, -1, -1), k[1:].expand(3, -1, -1, -1), v[:1].expand(3, -1, -1, -1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cache_of_rows_that_hold_different_numbers_of_tokens(dtype: torch.dtype, device: str) -> None:
    B, T, S = 3, 21, 150
    start = torch.tensor([0, 64, 129], device=device)  # the last row ends where the cache does
    q, k, v = made(B, T, S, 2, 1, 32, dtype, device)
    want = attention_twin(q, k, v, start)
    for row, at in enumerate(start.tolist()):
        k[row, at + T :], v[row, at + T :] = float("nan"), float("nan")
    assert_close(attention(q, k, v, start, None, None, 0.2), want, ROUNDINGS)


def test_start_behind_the_end_of_the_keys(device: str) -> None:
    """A model that passes keys and start of a cache passes no more keys than there are."""
    agrees(*made(2, 5, 20, 1, 1, 32, torch.float32, device), start=torch.tensor([18, 40], device=device))


def test_start_on_either_side_of_the_end_of_a_tile(device: str) -> None:
    start = torch.tensor([14, 15, 16, 17, 30, 31, 32], device=device)
    q, k, v = made(7, 3, 50, 1, 1, 16, torch.float32, device)
    agrees(q, k, v, start=start, config=AttentionConfig(16, 16, 4, 2))


@pytest.mark.parametrize("T", [65, 197])
def test_causal_over_several_tiles(T: int, device: str) -> None:
    q, k, v = made(1, T, T, 1, 1, 16, torch.bfloat16, device)
    agrees(q, k, v, start=torch.tensor([0], device=device))


def test_start_and_mask_of_any_strides_and_type(device: str) -> None:
    q, k, v = made(3, 5, 40, 2, 1, 32, torch.float32, device)
    starts = torch.tensor([[3, 50], [9, 50], [30, 50]], device=device)
    agrees(q, k, v, start=starts[:, 0])
    agrees(q, k, v, start=starts[:1, 0].expand(3).int())
    numbers = torch.randint(0, 2, (3, 40), device=device) * 256  # 0 in their first byte
    assert torch.equal(attention(q, k, v, None, numbers, None, 0.2), attention(q, k, v, None, numbers > 0, None, 0.2))


def masks(S: int) -> dict[str, list[bool]]:
    return {
        "holes": (torch.arange(S) % 3 != 0).tolist(),
        "left": [s >= 70 for s in range(S)],
        "right": [s < 67 for s in range(S)],
        "both": [5 <= s < 10 for s in range(S)],
        "one": [s == S - 1 for s in range(S)],
        "none": [False] * S,
        "all": [True] * S,
    }


@pytest.mark.parametrize("causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks(dtype: torch.dtype, causal: bool, device: str) -> None:
    S = 140
    mask = torch.tensor(list(masks(S).values()), device=device)
    q, k, v = made(len(mask), 5, S, 1, 1, 32, dtype, device)
    start = torch.arange(len(mask), device=device) * 11 + 62 if causal else None
    agrees(q, k, v, mask=mask, start=start)
    wider = torch.stack([mask, ~mask], -1).reshape(len(mask), 2 * S)
    agrees(q, k, v, mask=wider[:, ::2], start=start)
    agrees(q, k, v, mask=mask[:1].expand(len(mask), S), start=start)


def test_a_mask_that_takes_several_looks(device: str) -> None:
    mask = torch.zeros(2, 2100, dtype=torch.bool, device=device)
    mask[0, 1500:2050] = True
    mask[1, 3] = mask[1, 2099] = True
    agrees(*made(2, 2, 2100, 1, 1, 16, torch.float32, device), mask=mask)


def test_rows_without_keys_are_zeros(device: str) -> None:
    q, k, v = made(2, 9, 30, 2, 2, 32, torch.float16, device)
    mask = torch.zeros(2, 30, dtype=torch.bool, device=device)
    mask[1, 4:] = True
    got = attention(q, k, v, torch.tensor([0, 0], device=device), mask, None, 1.0)
    assert not got[0].any()
    assert not got[1, :4].any()
    assert got[1, 4:].any(-1).all()
    assert not attention(q, k[:, :0], v[:, :0], None, None, None, 1.0).any()
    assert attention(q[:, :0], k, v, None, None, None, 1.0).shape == (2, 0, 2, 32)


FORMS = [(1, 3, 37, 70), (2, 1, 1, 70), (1, 1, 37, 70), (2, 3, 37, 1), (37, 70)]
OF_BIAS = [*zip(DTYPES, DTYPES, strict=True), (torch.float16, torch.float32)]


@pytest.mark.parametrize(("form", "dtypes"), [(FORMS[i % 5], OF_BIAS[i % 4]) for i in range(8)], ids=str)
def test_bias_is_broadcast(form: tuple[int, ...], dtypes: tuple[torch.dtype, torch.dtype], device: str) -> None:
    dtype, of_bias = dtypes
    q, k, v = made(2, 37, 70, 3, 3, 16, dtype, device)
    agrees(q, k, v, bias=normal(*form, dtype=of_bias, device=device))


def test_bias_with_columns_in_any_order(device: str) -> None:
    q, k, v = made(1, 20, 33, 2, 2, 16, torch.float32, device)
    bias = normal(1, 2, 33, 20, dtype=torch.float32, device=device)
    agrees(q, k, v, bias=bias.transpose(2, 3))
    agrees(q, k, v, bias=bias.transpose(2, 3).flip(1)[:, :, :, :33])


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_bias_in_padded_storage(dtype: torch.dtype, device: str) -> None:
    """Values in the padding are loaded, and must not change the result."""
    q, k, v = made(2, 65, 77, 2, 2, 32, dtype, device)
    wider = torch.full((1, 2, 65, 80), float("nan"), dtype=dtype, device=device)
    wider[..., :77] = normal(1, 2, 65, 77, dtype=dtype, device=device)
    agrees(q, k, v, bias=wider[..., :77])
    agrees(q, k, v, bias=wider[:, 1:, :, :77])
    agrees(q, k, v, bias=wider[:, :, 64:, :77])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bias_that_hides(dtype: torch.dtype, device: str) -> None:
    q, k, v = made(1, 10, 70, 2, 2, 16, dtype, device)
    bias = normal(1, 2, 10, 70, dtype=dtype, device=device)
    bias[0, 0, 3, :64] = float("-inf")
    bias[0, 1, 4] = float("-inf")
    bias[0, 1, 5, 60:] = float("-inf")
    agrees(q, k, v, bias=bias)
    assert not attention(q, k, v, None, None, bias, 0.2)[0, 4, 1].any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bias_with_mask_and_start(dtype: torch.dtype, device: str) -> None:
    q, k, v = made(4, 30, 100, 2, 1, 32, dtype, device)
    bias = normal(1, 2, 30, 100, dtype=dtype, device=device)
    start = torch.tensor([0, 13, 69, 70], device=device)
    mask = torch.ones(4, 100, dtype=torch.bool, device=device)
    mask[0, :40], mask[1, 30:], mask[2, 1::2], mask[3] = False, False, False, False
    agrees(q, k, v, start=start, bias=bias)
    agrees(q, k, v, mask=mask, bias=bias)
    agrees(q, k, v, start=start, mask=mask, bias=bias)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_scores(dtype: torch.dtype, device: str) -> None:
    """Scores of thousands: exponentials would overflow if the largest were not subtracted first."""
    q, k, v = made(1, 17, 70, 2, 2, 64, dtype, device)
    start = torch.tensor([60], device=device)
    agrees(64 * q, 8 * k, v, scale=1.0)
    agrees(64 * q, 8 * k, v, start=start, scale=1.0)
    agrees(q, k, v, bias=20000 * normal(1, 2, 17, 70, dtype=torch.float32, device=device))


@pytest.mark.parametrize("config", [(128, 128, 8, 2), (128, 32, 4, 4), (64, 64, 4, 3), (16, 16, 4, 1)], ids=str)
def test_tiles_of_other_sizes(config: tuple[int, int, int, int], device: str) -> None:
    q, k, v = made(1, 130, 140, 1, 1, 32, torch.float16, device)
    start, mask = torch.tensor([9], device=device), torch.ones(1, 140, dtype=torch.bool, device=device)
    mask[0, :19] = False
    agrees(q, k, v, start=start, mask=mask, config=AttentionConfig(*config))
    agrees(q, k, v, bias=normal(1, 1, 130, 140, dtype=torch.float16, device=device), config=AttentionConfig(*config))


@pytest.mark.parametrize(("K", "dtype"), [(64, torch.bfloat16), (80, torch.float16)], ids=str)
def test_tiles_by_the_tensor_memory_accelerator(K: int, dtype: torch.dtype, device: str) -> None:
    if device != "cpu" and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("needs compute capability 9.0")
    config = AttentionConfig(64, 32, 4, 3, tma=True)
    q, k, v = made(2, 70, 140, 2, 1, K, dtype, device)
    mask, start = torch.ones(2, 140, dtype=torch.bool, device=device), torch.tensor([0, 69], device=device)
    mask[0, 100:], mask[1, :27] = False, False
    agrees(q, k, v, config=config)
    agrees(q, k, v, start=start, config=config)
    agrees(q, k, v, mask=mask, config=config)
    k[0, 70:], v[0, 70:] = float("nan"), float("nan")  # what a row has not written yet
    got = attention(q, k, v, start, None, None, 0.2, config=config)
    assert_close(got[:1], attention_twin(q[:1], k[:1, :70], v[:1, :70], start[:1]), ROUNDINGS)


def test_strides_that_the_tensor_memory_accelerator_does_not_take(device: str) -> None:
    config = AttentionConfig(64, 32, 4, 3, tma=True)
    q, k, v = (normal(1, 70, 2 * 33, dtype=torch.float16, device=device).reshape(1, 70, 2, 33) for _ in range(3))
    agrees(q[..., :32], k[..., :32], v[..., :32], config=config)  # heads are 66 bytes apart
    agrees(q[..., :32], k[..., 1:], v[..., 1:], config=config)  # and begin at the second
    agrees(q, k[:, :, :1].expand(1, 70, 2, 33), v, config=config)


@pytest.fixture
def tf32_allowed() -> Iterator[None]:
    before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, True
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.usefixtures("tf32_allowed")
def test_float32_products_are_rounded_where_tf32_is_allowed(device: str) -> None:
    q, k, v = made(1, 33, 50, 2, 2, 64, torch.float32, device)
    error = np.abs(wide(attention(q, k, v, None, None, None, 0.2)) - attention_twin(q, k, v)).max()
    assert 1e-5 < error < 5e-3  # ten bits of mantissa


def test_programs_may_run_in_any_order(device: str) -> None:
    if device != "cpu":
        pytest.skip("needs the interpreter, which chooses the order")
    from checks import interpreter

    q, k, v = made(2, 70, 90, 2, 1, 32, torch.float32, device)
    start, mask = torch.tensor([3, 20], device=device), torch.ones(2, 90, dtype=torch.bool, device=device)
    for name in ("forward", "reverse", "shuffle"):
        with interpreter.order(name):
            agrees(q, k, v, start=start, mask=mask)


def test_hidden_keys_at_the_ends_cost_nothing(device: str) -> None:
    if device != "cpu":
        pytest.skip("needs the interpreter, which counts")
    from checks import interpreter

    q, k, v = made(1, 20, 640, 1, 1, 32, torch.float16, device)
    mask = torch.zeros(1, 640, dtype=torch.bool)
    mask[:, 501:565] = True
    config = configs.AttentionConfig(64, 64, 4, 2)
    with interpreter.counting() as padded:
        attention(q, k, v, None, mask, None, 1.0, config=config)
    with interpreter.counting() as alone:
        attention(q, k[:, 501:565], v[:, 501:565], None, None, None, 1.0, config=config)
    assert padded.flops == alone.flops
    assert padded.bytes_loaded["k"] == alone.bytes_loaded["k"] == 64 * 32 * 2
    with interpreter.counting() as cached:
        attention(q, k, v, torch.tensor([12]), None, None, 1.0, config=config)
    assert cached.bytes_loaded["k"] == cached.bytes_loaded["v"] == 32 * 32 * 2


def test_offsets_that_do_not_fit_in_32_bits(device: str) -> None:
    if device == "cpu" or torch.cuda.mem_get_info()[0] < 6 << 30:
        pytest.skip("needs a GPU with 6 GiB of free memory")
    far = torch.zeros((1 << 31) + 4096, dtype=torch.float16, device=device)
    x = far.as_strided((2, 20, 1, 64), (1 << 31, 64, 64, 1))
    x.copy_(normal(2, 20, 1, 64, dtype=torch.float16, device=device))
    agrees(x, x, x)
    x = far.as_strided((1, 33, 1, 64), (0, 1 << 26, 64, 1))
    x.copy_(normal(1, 33, 1, 64, dtype=torch.float16, device=device))
    agrees(x, x, x)


def test_what_is_not_computed_is_refused(device: str) -> None:
    q, k, v = made(1, 3, 4, 1, 1, 32, torch.float32, device)
    with pytest.raises(InputError, match=r"torch\.float32, torch\.float16 and torch\.float16: .* one dtype"):
        attention(q, k.half(), v.half(), None, None, None, 1.0)
    with pytest.raises(InputError, match=r"q \(1, 3, 1, 32\), k \(1, 4, 1, 32\) and v \(1, 3, 1, 32\): expected"):
        attention(q, k, v[:, 1:], None, None, None, 1.0)
    with pytest.raises(InputError, match="H a multiple of G"):
        attention(q.expand(1, 3, 3, 32), k.expand(1, 4, 2, 32), v.expand(1, 4, 2, 32), None, None, None, 1.0)
    with pytest.raises(InputError, match="scale of attention must be positive, found 0"):
        attention(q, k, v, None, None, None, 0.0)
    x = torch.zeros(1, 2, 1, 272, device=device)
    with pytest.raises(UnsupportedError, match="head sizes up to 256, found 272"):
        attention(x, x, x, None, None, None, 1.0)


@pytest.mark.parametrize(
    "name", ["sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "gfx942", "gfx90a", "sm_999", "gfx1100"]
)
def test_every_architecture_has_configs_that_fit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "INTERPRETED_ARCHITECTURE", name)
    for K, T, kind in product((32, 80, 128, 256), (1, 20, 128, 1000), ("plain", "causal", "bias")):
        causal, bias = kind == "causal", kind == "bias"
        q = torch.empty(2, T, 8, K, dtype=torch.float16)
        room, row = configs.SHARED_MEMORY[configs.table(q)], (1 << (K - 1).bit_length()) * 2
        candidates = configs.attention_candidates(q, q, causal, bias)
        assert candidates[0] == configs.attention_config(q, q, causal, bias)
        for config in candidates:
            assert row * (config.block_m + 2 * config.block_n * config.stages) <= room, (K, T, config)
