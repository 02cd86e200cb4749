"""Attention of a few queries, split over the keys, against its float64 twin."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from closeness import DTYPES, assert_close, attention_twin
from torch import Tensor

from zoo.engines import triton as kernels
from zoo.engines.triton import configs
from zoo.engines.triton.configs import DecodeConfig
from zoo.engines.triton.decode import MAX_QUERIES, decode_attention, splits, suits
from zoo.errors import InputError, UnsupportedError

# Besides the result, the weights are rounded to the dtype of the values: by as much again, of sums of |weight * value|.
ROUNDINGS = 2.5
SMALL = DecodeConfig(16, 4, 2)  # tiles of 16 keys: few keys are many tiles, and many splits


def made(
    B: int, T: int, S: int, H: int, G: int, K: int, dtype: torch.dtype, device: str
) -> tuple[Tensor, Tensor, Tensor]:
    """q (B, T, H, K) out of a fused projection, k and v (B, S, G, K) with room for 9 more keys, as a cache has it."""
    q = torch.randn(B, T, H * K + 16, device=device).to(dtype)[:, :, 8 : H * K + 8].reshape(B, T, H, K)
    k, v = (torch.randn(B, S + 9, G, K, device=device).to(dtype)[:, :S] for _ in range(2))
    return q, k, v


def agrees(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    start: Tensor | None = None,
    mask: Tensor | None = None,
    scale: float = 0.2,
    config: DecodeConfig | None = SMALL,
    window: int | None = None,
) -> None:
    got = decode_attention(q, k, v, start, mask, scale, window, config=config)
    assert got.dtype == q.dtype
    assert_close(got, attention_twin(q, k, v, start, mask, scale=scale, window=window), ROUNDINGS)


@pytest.mark.parametrize(("T", "window"), [(1, 0), (1, 64), (4, 5), (4, 500)])
def test_windows(T: int, window: int, device: str) -> None:
    mask = torch.ones(2, 200, dtype=torch.bool, device=device)
    mask[0, :120] = False
    q, k, v = made(2, T, 200, 4, 2, 32, torch.float32, device)
    for hidden in (None, mask):
        agrees(q, k, v, torch.tensor([150, 9], device=device), hidden, window=window)


HEADS = (8, 16, 32, 64, 80, 96, 100, 128, 256)


@pytest.mark.parametrize(
    ("K", "dtype"), [*zip(HEADS, DTYPES * 3, strict=True), (80, DTYPES[0]), (256, DTYPES[0])], ids=str
)
def test_head_sizes(K: int, dtype: torch.dtype, device: str) -> None:
    start = torch.tensor([140], device=device)
    q, k, v = made(1, 1, 170, 2, 1, K, dtype, device)
    agrees(q, k, v, scale=K**-0.5, config=None)
    agrees(q, k, v, start=start, scale=K**-0.5, config=None)


@pytest.mark.parametrize("S", [1, 16, 17, 65, 197])
def test_numbers_of_keys(S: int, device: str) -> None:
    q, k, v = made(2, 1, S, 2, 1, 32, torch.float16, device)
    agrees(q, k, v)
    agrees(q, k, v, start=torch.tensor([0, S - 1], device=device))


TILES = [(1, 1), (1, 2), (1, 4), (1, 8), (3, 1), (3, 4), (16, 1), (4, 8), (1, 32)]


@pytest.mark.parametrize(("T", "R", "dtype"), [(*sizes, DTYPES[i % 3]) for i, sizes in enumerate(TILES)], ids=str)
def test_queries_and_heads_in_one_tile(T: int, R: int, dtype: torch.dtype, device: str) -> None:
    q, k, v = made(2, T, 60, 2 * R, 2, 32, dtype, device)
    assert suits(q, k)
    agrees(q, k, v, start=torch.tensor([0, 41], device=device))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cache_of_rows_that_hold_different_numbers_of_tokens(dtype: torch.dtype, device: str) -> None:
    B, T, S = 4, 2, 150
    start = torch.tensor([0, 15, 63, 148], device=device)  # the last row ends where the cache does
    q, k, v = made(B, T, S, 4, 2, 32, dtype, device)
    want = attention_twin(q, k, v, start)
    for row, at in enumerate(start.tolist()):
        k[row, at + T :], v[row, at + T :] = float("nan"), float("nan")
    for config in (SMALL, None):
        assert_close(decode_attention(q, k, v, start, None, 0.2, config=config), want, ROUNDINGS)


def test_start_on_either_side_of_the_end_of_a_tile(device: str) -> None:
    start = torch.tensor([13, 14, 15, 16, 30, 31, 32], device=device)
    agrees(*made(7, 3, 50, 2, 1, 16, torch.float32, device), start=start)


def test_one_split_writes_the_result_itself(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "MULTIPROCESSORS", 1)
    monkeypatch.setattr(configs, "_multiprocessors", lambda index: 1)
    q, k, v = made(2, 2, 100, 4, 2, 80, torch.float16, device)
    assert splits(q, k, SMALL) == 1
    agrees(q, k, v)
    agrees(q, k, v, start=torch.tensor([0, 70], device=device))


def test_masks(device: str) -> None:
    S = 75
    s = torch.arange(S, device=device)
    mask = torch.stack([s % 3 != 0, s >= 40, s < 35, (s >= 5) & (s < 10), s == S - 1, s < 0, s >= 0])
    q, k, v = made(len(mask), 1, S, 2, 1, 32, torch.bfloat16, device)
    start = torch.arange(len(mask), device=device) * 7 + 30
    agrees(q, k, v, mask=mask)
    agrees(q, k, v, mask=mask, start=start)
    wider = torch.stack([mask, ~mask], -1).reshape(len(mask), 2 * S)
    agrees(q, k, v, mask=wider[:, ::2])
    agrees(q, k, v, mask=mask[:1].expand(len(mask), S), start=start)


def test_rows_without_keys_are_zeros(device: str) -> None:
    q, k, v = made(2, 1, 90, 4, 2, 32, torch.float16, device)
    mask = torch.zeros(2, 90, dtype=torch.bool, device=device)
    mask[1, 44:] = True
    got = decode_attention(q, k, v, None, mask, 1.0, config=SMALL)
    assert not got[0].any()
    assert got[1].any(-1).all()
    assert not decode_attention(q, k, v, torch.tensor([89, 43], device=device), mask, 1.0, config=SMALL).any()
    assert not decode_attention(q, k[:, :0], v[:, :0], None, None, 1.0).any()
    assert decode_attention(q[:0], k[:0], v[:0], None, None, 1.0).shape == (0, 1, 4, 32)


def test_any_strides(device: str) -> None:
    q = torch.randn(2, 4, 32, 1, device=device).permute(0, 3, 1, 2)
    k, v = (torch.randn(2, 2, 32, 50, device=device).permute(0, 3, 1, 2) for _ in range(2))
    agrees(q, k, v)  # the elements of the last axis do not follow one another
    k, v = (torch.randn(2, 2, 100, 32, device=device).transpose(1, 2)[:, ::2] for _ in range(2))
    agrees(q, k, v)
    agrees(q, k[:1].expand(2, -1, -1, -1), v[1:].expand(2, -1, -1, -1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_scores(dtype: torch.dtype, device: str) -> None:
    """The splits' largest scores lie thousands apart."""
    q, k, v = made(1, 1, 170, 2, 1, 64, dtype, device)
    agrees(64 * q, 8 * k, v, scale=1.0)


def test_programs_may_run_in_any_order(device: str) -> None:
    if device != "cpu":
        pytest.skip("needs the interpreter, which chooses the order")
    from checks import interpreter

    q, k, v = made(2, 2, 90, 4, 2, 32, torch.float32, device)
    for name in ("forward", "reverse", "shuffle"):
        with interpreter.order(name):
            agrees(q, k, v, start=torch.tensor([7, 80], device=device))


def test_keys_are_read_once_for_all_heads_and_not_past_the_row(device: str) -> None:
    if device != "cpu":
        pytest.skip("needs the interpreter, which counts")
    from checks import interpreter

    q, k, v = made(1, 1, 640, 8, 2, 32, torch.float16, device)
    with interpreter.counting() as counts:
        decode_attention(q, k, v, torch.tensor([99]), None, 1.0)
    assert counts.bytes_loaded["k"] == counts.bytes_loaded["v"] == 100 * 2 * 32 * 2
    mask = torch.zeros(1, 640, dtype=torch.bool)
    mask[:, 333:433] = True
    with interpreter.counting() as counts:
        decode_attention(q, k, v, None, mask, 1.0)
    assert counts.bytes_loaded["k"] == counts.bytes_loaded["v"] == 100 * 2 * 32 * 2


def test_a_captured_graph_replays_at_any_position(device: str) -> None:
    if device == "cpu":
        pytest.skip("needs a GPU, which captures graphs")
    q, k, v = made(2, 1, 300, 4, 2, 64, torch.float16, device)
    start = torch.tensor([5, 9], device=device)
    mask = torch.ones(2, 300, dtype=torch.bool, device=device)
    decode_attention(q, k, v, start, mask, 0.2)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = decode_attention(q, k, v, start, mask, 0.2)
    for position in (0, 64, 299):
        start.fill_(position)
        mask[1, : position // 2] = False
        graph.replay()
        assert_close(got, attention_twin(q, k, v, start, mask), ROUNDINGS)


def test_splits_fill_the_gpu_but_are_not_tiny(device: str) -> None:
    def count(B: int, S: int, G: int) -> int:
        k = torch.empty(B, S, G, 64, device="meta")
        return splits(k, k, DecodeConfig(64, 4, 3))

    assert count(1, 8192, 8) == 2 * configs.MULTIPROCESSORS // 8
    assert count(1, 577, 16) == 5  # two tiles of 64 keys for each, the last not full
    assert count(256, 8192, 8) == 1
    assert count(1, 0, 8) == 1


def test_what_is_not_computed_is_refused(device: str) -> None:
    q, k, v = made(1, 1, 4, 1, 1, 32, torch.float32, device)
    with pytest.raises(InputError, match="must have one dtype"):
        decode_attention(q, k.half(), v, None, None, 1.0)
    q, k, v = made(1, 9, 40, 4, 1, 32, torch.float32, device)
    assert not suits(q, k)
    with pytest.raises(UnsupportedError, match=f"up to {MAX_QUERIES} queries for a key head, found 9 x 4"):
        decode_attention(q, k, v, None, None, 1.0)


@pytest.mark.parametrize("name", ["sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "gfx942", "gfx90a", "sm_999"])
def test_every_architecture_has_configs_that_fit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "INTERPRETED_ARCHITECTURE", name)
    for K, dtype in product((32, 80, 128, 256), DTYPES):
        q = torch.empty(2, 1, 8, K, dtype=dtype)
        room, row = configs.SHARED_MEMORY[configs.table(q)], 1 << (K - 1).bit_length()
        candidates = configs.decode_candidates(q, q)
        assert candidates[0] == configs.decode_config(q, q)
        for config in candidates:
            assert row * 2 * config.block_n * config.stages * q.element_size() <= room, (K, dtype, config)
