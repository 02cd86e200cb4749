"""The ops on images against their float64 twins, and against torch's own, on odd shapes and in any memory order.

Tolerance: float32 rounds sums of up to a few hundred products to about 1e-6 of their size; 5e-6 of the largest value
leaves a small margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops import naive
from zoo import ops
from zoo.errors import InputError, UnsupportedError
from zoo.ops.on_numpy import conv, conv1d, winograd

MODES = ("bilinear", "bilinear corners", "bicubic", "bicubic corners", "bilinear antialias", "bicubic antialias")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """So that these small images make several."""
    monkeypatch.setattr(winograd, "TILES", 2)
    monkeypatch.setattr(conv, "WINDOWS", 300)
    monkeypatch.setattr(conv, "MIN_WINDOWS", 1)


def feature_major(x):
    """The same (..., D) values in memory of shape (D, ...)."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, -1, 0)), 0, -1)


@pytest.fixture(params=["row-major", "feature-major"])
def image(request, rng):
    def make(*shape):
        x = rng.standard_normal(shape).astype(np.float32)
        return x if request.param == "row-major" else feature_major(x)

    return make


def check(found, wanted):
    found = ops.to_numpy(found)
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-6 * max(1.0, np.abs(wanted).max()))


CONVS = {
    "1x1": ((1, 1), {}),
    "1x1 with stride": ((1, 1), {"stride": 2}),
    "1x1 with padding": ((1, 1), {"padding": 1}),
    "patches": ((4, 4), {"stride": 4}),
    "oblong patches": ((2, 3), {"stride": (2, 3)}),
    "3x3": ((3, 3), {"padding": 1}),
    "3x3 with stride": ((3, 3), {"padding": 1, "stride": 2}),
    "3x3 with dilation": ((3, 3), {"padding": 2, "dilation": 2}),
    "dilated patches": ((2, 2), {"stride": 2, "dilation": 2}),
    "7x7 with stride": ((7, 7), {"padding": 3, "stride": 2}),
    "oblong": ((2, 5), {"padding": (0, 2), "stride": (3, 1)}),
    "padding beyond the kernel": ((2, 2), {"padding": 3, "stride": 3}),
}


@pytest.mark.parametrize("kind", CONVS)
@pytest.mark.parametrize("finish", ["plain", "bias", "all"])
def test_conv2d(kind, finish, image, lib, rng):
    (kernel, options), C, D = CONVS[kind], 5, 7
    x = image(3, 11, 9, C)
    weight = rng.standard_normal((D, C, *kernel)).astype(np.float32)
    bias = None if finish == "plain" else rng.standard_normal(D).astype(np.float32)
    act = "gelu" if finish == "all" else None
    wanted = naive.conv2d(x, weight, bias, **options, act=act)
    residual = image(*wanted.shape) if finish == "all" else None
    if residual is not None:
        wanted = wanted + residual
    found = ops.conv2d(
        lib(x),
        lib(weight),
        None if bias is None else lib(bias),
        **options,
        act=act,
        residual=None if residual is None else lib(residual),
    )
    check(found, wanted)


@pytest.mark.parametrize("kind", ["1x1", "1x1 with stride", "patches", "3x3", "3x3 with stride", "7x7 with stride"])
@pytest.mark.parametrize("added", [False, True])
def test_conv2d_that_ends_with_an_activation(kind, added, image, lib, rng):
    (kernel, options), C, D = CONVS[kind], 5, 7
    x, bias = image(2, 11, 9, C), rng.standard_normal(D).astype(np.float32)
    weight = rng.standard_normal((D, C, *kernel)).astype(np.float32)
    residual = image(*naive.conv2d(x, weight, **options).shape) if added else None
    wanted = naive.conv2d(x, weight, bias, **options, act="tanh", residual=residual, post="relu")
    given = None if residual is None else lib(residual)
    found = ops.conv2d(lib(x), lib(weight), lib(bias), **options, act="tanh", residual=given, post="relu")
    check(found, wanted)


def test_conv2d_of_one_pixel_and_of_one_channel(lib, rng):
    for shape, kernel, padding in [((1, 1, 1, 3), 3, 1), ((2, 30, 1, 1), 3, 1), ((1, 5, 5, 1), 5, 0)]:
        x = rng.standard_normal(shape).astype(np.float32)
        weight = rng.standard_normal((4, shape[3], kernel, kernel)).astype(np.float32)
        check(ops.conv2d(lib(x), lib(weight), padding=padding), naive.conv2d(x, weight, padding=padding))


def test_an_image_smaller_than_the_kernel(lib):
    with pytest.raises(InputError, match="2 x 9 is smaller than a kernel of 5"):
        ops.conv2d(lib(np.zeros((1, 2, 9, 1), np.float32)), lib(np.zeros((1, 1, 3, 3), np.float32)), dilation=2)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, 2, 0), (3, 1, 1), (3, 2, 1), (2, 3, 0), ((2, 3), (2, 3), 0), ((4, 2), 2, 1)]
)
def test_conv_transpose2d(kernel, stride, padding, image, lib, rng):
    C, D = 5, 7
    x = image(3, 4, 6, C)
    weight = rng.standard_normal((C, D, *ops.pair(kernel))).astype(np.float32)
    bias = rng.standard_normal(D).astype(np.float32)
    wanted = naive.conv_transpose2d(x, weight, bias, stride, padding, "gelu")
    check(ops.conv_transpose2d(lib(x), lib(weight), lib(bias), stride, padding, "gelu"), wanted)
    wanted = naive.conv_transpose2d(x, weight, None, stride, padding)
    check(ops.conv_transpose2d(lib(x), lib(weight), None, stride, padding), wanted)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_a_folded_norm_does_what_the_norm_does(transposed, biased, lib, rng):
    C, D, eps = 5, 7, 1e-3
    x = rng.standard_normal((2, 6, 6, C)).astype(np.float32)
    weight = rng.standard_normal((C, D, 2, 2) if transposed else (D, C, 2, 2)).astype(np.float32)
    bias = rng.standard_normal(D).astype(np.float32) if biased else None
    gamma, beta, mean = rng.standard_normal((3, D)).astype(np.float32)
    var = rng.uniform(0.01, 4, D).astype(np.float32)
    twin, op = (naive.conv_transpose2d, ops.conv_transpose2d) if transposed else (naive.conv2d, ops.conv2d)
    wanted = naive.batch_norm(twin(x, weight, bias, 2), gamma, beta, mean, var, eps)
    folded = ops.fold_norm(
        lib(weight), None if bias is None else lib(bias), *map(lib, (gamma, beta, mean, var)), eps, int(transposed)
    )
    check(op(lib(x), *folded, 2), wanted)


@pytest.mark.parametrize(("of_channels", "D"), [(False, 7), (False, 5), (True, 5)])
def test_one_convolution_for_several(of_channels, D, lib, rng):
    C, sizes = 5, [(3, 5), (1, 1), (1, 3), (3, 5)]
    x = rng.standard_normal((2, 7, 8, C)).astype(np.float32)
    weights = [rng.standard_normal((D, 1 if of_channels else C, *size)).astype(np.float32) for size in sizes]
    biases = [*rng.standard_normal((len(sizes), D)).astype(np.float32)]
    if C == D:
        weights.append(rng.standard_normal(D).astype(np.float32))
        biases.append(rng.standard_normal(D).astype(np.float32))
    merged = ops.merge_convs([*map(lib, weights)], [*map(lib, biases)])
    wanted = x * weights[-1] + biases[-1] if C == D else 0
    for weight, bias, size in zip(weights, biases, sizes, strict=False):
        pad = size[0] // 2, size[1] // 2
        one = naive.depthwise_conv2d(x, weight, bias) if of_channels else naive.conv2d(x, weight, bias, 1, pad)
        wanted = wanted + one
    op = ops.depthwise_conv2d(lib(x), *merged) if of_channels else ops.conv2d(lib(x), *merged, 1, (1, 2))
    check(op, wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(7, 5), (14, 10), (3, 4), (1, 1), (20, 3), (8, 13)])
def test_interpolate(mode, size, image, lib):
    x = image(2, 7, 5, 3)
    check(ops.interpolate(lib(x), size, mode), naive.interpolate(x, size, mode))


@pytest.mark.parametrize("mode", MODES)
def test_interpolate_is_torch_s(mode, rng):
    """To a few roundings: where a sample is taken follows from float32 arithmetic, which has to be torch's."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    for before, after in [((14, 14), (24, 24)), ((27, 27), (79, 79)), ((40, 40), (160, 160)), ((160, 120), (37, 333))]:
        x = rng.standard_normal((1, *before, 2)).astype(np.float32)
        nchw = torch.from_numpy(x).permute(0, 3, 1, 2)
        how = {"mode": mode.partition(" ")[0], "antialias": mode.endswith("antialias")}
        wanted = torch.nn.functional.interpolate(nchw, size=after, align_corners=mode.endswith("corners"), **how)
        found = ops.interpolate(x, after, mode)
        np.testing.assert_allclose(found, wanted.permute(0, 2, 3, 1), rtol=0, atol=2e-6 * np.abs(x).max())


def test_interpolate_to_the_same_size_changes_nothing(rng):
    x = rng.standard_normal((1, 14, 9, 3)).astype(np.float32)
    for mode in MODES:
        np.testing.assert_array_equal(ops.interpolate(x, (14, 9), mode), x)


@pytest.mark.parametrize("size", [(7, 5), (14, 10), (3, 4), (1, 1), (20, 3)])
def test_nearest(size, image, lib):
    x = image(2, 7, 5, 3)
    for given in (x, x > 0):
        found = ops.to_numpy(ops.interpolate(lib(given), size, "nearest"))
        assert found.dtype == given.dtype
        np.testing.assert_array_equal(found, naive.interpolate(given, size, "nearest"))


def test_nearest_is_torch_s(lib):
    """Each pixel of every requested size equals torch's, whose positions follow from float32 arithmetic."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    for before in range(1, 1400):
        after = -(-before // 32)
        x = np.arange(before, dtype=np.float32)[None, :, None, None]
        wanted = torch.nn.functional.interpolate(torch.from_numpy(x[:, :, 0, 0])[:, None], size=after)
        found = ops.to_numpy(ops.interpolate(lib(x), (after, 1), "nearest"))
        np.testing.assert_array_equal(found[0, :, 0, 0], wanted[0, 0])


def test_sinusoids(lib, rng):
    for x in (rng.uniform(0, 7, (2, 5, 3)), np.arange(6)[None], np.zeros(4), rng.uniform(-50, 50, (3, 4)).T):
        like = lib(np.zeros(1, np.float32))
        found = ops.to_numpy(ops.sinusoids(lib(np.asarray(x)), 10, like))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, naive.sinusoids(x, 10), rtol=0, atol=1e-5)
        found = ops.to_numpy(ops.sinusoids(lib(x), 4, like, 20.0))
        np.testing.assert_allclose(found, naive.sinusoids(x, 4, 20.0), rtol=0, atol=1e-5)


def test_all_true(lib):
    assert ops.all_true(lib(np.ones((2, 3), bool))) is True
    assert ops.all_true(lib(np.arange(6).reshape(2, 3) > 0)) is False


def test_an_unknown_interpolation(lib):
    with pytest.raises(UnsupportedError, match="'area' is not implemented"):
        ops.interpolate(lib(np.zeros((1, 2, 2, 1), np.float32)), (4, 4), "area")


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 1), ((2, 3), (1, 2), 0), (1, 3, 0), (5, 4, 2)]
)
def test_max_pool2d(kernel, stride, padding, image, lib):
    x = image(2, 9, 7, 5)
    check(ops.max_pool2d(lib(x), kernel, stride, padding), naive.max_pool2d(x, kernel, stride, padding))


@pytest.mark.parametrize("size", [(8, 6), (2, 2), (1, 3)])
def test_max_pool2d_where_each_row_of_windows_lacks_something(size, image, lib):
    x = image(2, *size, 3)
    check(ops.max_pool2d(lib(x), 2, 2, 1), naive.max_pool2d(x, 2, 2, 1))
    x[0, 0, 0, 0] = np.nan
    assert np.isnan(ops.to_numpy(ops.max_pool2d(lib(x), 2, 2, 1))).sum() == 1


@pytest.mark.parametrize("size", [1, 2, 3, 6, (9, 7), (2, 7), (12, 10)])
def test_adaptive_avg_pool2d(size, image, lib):
    x = image(2, 9, 7, 5)
    check(ops.adaptive_avg_pool2d(lib(x), size), naive.adaptive_avg_pool2d(x, size))


def test_pixel_shuffle(image, lib):
    x = image(2, 3, 5, 2 * 9)
    check(ops.pixel_shuffle(lib(x), 3), naive.pixel_shuffle(x, 3))


@pytest.mark.parametrize("kernel", [(3, 3), (1, 5)])
@pytest.mark.parametrize("stride", [1, (2, 1), 2])
@pytest.mark.parametrize("act", [None, "gelu"])
def test_depthwise_conv2d(kernel, stride, act, image, lib, rng):
    weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 1, *kernel), (7,)))
    for x, b in ((image(2, 5, 9, 7), bias), (image(1, 1, 1, 7), None)):
        found = ops.depthwise_conv2d(lib(x), lib(weight), None if b is None else lib(b), act, stride)
        check(found, naive.depthwise_conv2d(x, weight, b, act, stride))


@pytest.mark.parametrize("groups", [2, 3, 6])
@pytest.mark.parametrize("stride", [1, (1, 2)])
def test_conv2d_of_groups(groups, stride, image, lib, rng):
    x, weight = image(2, 5, 4, 6), rng.standard_normal((12, 6 // groups, 3, 3)).astype(np.float32)
    bias, residual = rng.standard_normal(12).astype(np.float32), image(2, 5, 4 if stride == 1 else 2, 12)
    found = ops.conv2d(lib(x), lib(weight), lib(bias), stride, 1, 1, "gelu", lib(residual), "relu", groups=groups)
    check(found, naive.conv2d(x, weight, bias, stride, 1, 1, "gelu", residual, "relu", groups=groups))
    check(ops.conv2d(lib(x), lib(weight), groups=groups), naive.conv2d(x, weight, groups=groups))


@pytest.mark.parametrize("kernel", [(3, 3), (4, 2)])
@pytest.mark.parametrize("padding", [0, 1, (2, 0)])
@pytest.mark.parametrize("dilation", [1, (2, 1)])
@pytest.mark.parametrize("stride", [1, (1, 2)])
def test_depthwise_conv2d_in_other_places(kernel, padding, dilation, stride, image, lib, rng):
    x, weight = image(2, 8, 7, 5), rng.standard_normal((5, 1, *kernel)).astype(np.float32)
    of = None, "relu", stride, padding, dilation
    check(ops.depthwise_conv2d(lib(x), lib(weight), *of), naive.depthwise_conv2d(x, weight, *of))
    check(
        ops.depthwise_conv2d(lib(x), lib(weight[..., :3, :1]), dilation=dilation),
        naive.depthwise_conv2d(x, weight[..., :3, :1], dilation=dilation),
    )


def test_depthwise_conv2d_of_images_smaller_than_the_kernel(lib):
    with pytest.raises(InputError, match="an image of 4 x 2 is smaller than a kernel of 3"):
        ops.depthwise_conv2d(lib(np.ones((1, 4, 2, 3), np.float32)), lib(np.ones((3, 1, 3, 3), np.float32)), padding=0)


def test_pad_images(image, lib):
    for x, rows, columns in ((image(2, 3, 4, 5), (1, 2), (0, 3)), (image(1, 1, 1, 2), (0, 1), (0, 1))):
        check(ops.pad_images(lib(x), rows, columns), naive.pad_images(x, rows, columns))


@pytest.mark.parametrize("kernel", [1, 4, 5])
@pytest.mark.parametrize("act", [None, "gelu"])
def test_grouped_conv1d(kernel, act, lib, rng, monkeypatch):
    monkeypatch.setattr(conv1d, "WINDOWS", 40)  # several blocks
    weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 2, kernel), (9,)))
    for T in (1, 3, 12):
        x = rng.standard_normal((2, T, 12)).astype(np.float32)[..., ::2]
        found = ops.grouped_conv1d(lib(x), lib(weight), lib(bias), 3, act)
        check(found, naive.grouped_conv1d(x, weight, bias, 3, act))


@pytest.mark.parametrize("tokens", [1, 5, 33])
def test_channel_attention(tokens, lib, rng):
    whole = rng.standard_normal((2, tokens, 3, 14)).astype(np.float32)
    q, k, v = whole[..., ::2], rng.standard_normal((2, tokens, 3, 7)).astype(np.float32), whole[..., 1::2]
    check(ops.channel_attention(lib(q), lib(k), lib(v)), naive.channel_attention(q, k, v))


def test_scale_bias(lib, rng):
    bias, gates = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 3, 4, 5), (2, 4, 3)))
    check(ops.scale_bias(lib(bias), lib(gates)), naive.scale_bias(bias, gates))


def test_fold_weight_norm(lib, rng):
    length, direction = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 1, 5), (6, 2, 5)))
    check(ops.fold_weight_norm(lib(length), lib(direction)), naive.fold_weight_norm(length, direction))


@pytest.mark.parametrize("size", [2, 3, (3, 2)])
def test_avg_pool2d(size, image, lib):
    x = image(2, 5, 8, 3)
    check(ops.avg_pool2d(lib(x), size), naive.avg_pool2d(x, size))


def points_and_weights(rng, Q=5, H=3, P=4):
    """Points in and around an image, some far out, and one on the middle of a pixel."""
    points = rng.normal(0.5, 0.5, (2, Q, H, P, 2)).astype(np.float32)
    points[0, 0, 0, :2] = (0.5, 0.5), (1e30, -1e30)
    return points, rng.random((2, Q, H, P)).astype(np.float32)


def test_sample(rng, lib):
    x = rng.standard_normal((2, 5, 9, 3, 4)).astype(np.float32)
    points, weights = points_and_weights(rng)
    check(ops.sample(lib(x), lib(points), lib(weights)), naive.sample(x, points, weights))


def test_sixteen_bit_samples_of_one_image_are_its_own(rng):
    """On a CPU torch's grid_sample reads past a 16-bit image that is not contiguous, as one of a batch of one is."""
    torch = pytest.importorskip("torch", reason="needs torch")
    x, points = rng.standard_normal((1, 24, 30, 4, 16)), rng.random((1, 25, 4, 3, 2))
    given = [torch.tensor(a, dtype=torch.bfloat16) for a in (x, points, rng.random((1, 25, 4, 3)))]
    wanted = naive.sample(*(a.float().numpy() for a in given))
    for _ in range(20):
        torch.full((100_000,), float("nan"))  # what is read past the image, if it is
        np.testing.assert_allclose(ops.sample(*given).float(), wanted, atol=1)


def test_boxes_of_masks(rng, lib):
    masks = rng.standard_normal((2, 4, 5, 7)).astype(np.float32) - 1.5
    masks[0, 0], masks[0, 1], masks[1, 0] = -1, 1, 0
    masks[1, 1] = -1
    masks[1, 1, 4, 6] = 2
    check(ops.boxes_of_masks(lib(masks)), naive.boxes_of_masks(masks))


def test_rows_and_points(rng, lib):
    scores, x = (rng.standard_normal((2, 9, n)).astype(np.float32) for n in (3, 5))
    index = ops.top_rows(lib(scores), 4)
    np.testing.assert_array_equal(ops.to_numpy(index), naive.top_rows(scores, 4))
    check(ops.take_rows(lib(x), index), naive.take_rows(x, ops.to_numpy(index)))
    check(ops.centres((3, 5), lib(x)), naive.centres((3, 5), x))
    part = np.array([0, 1e-9, 0.01, 0.5, 0.9999, 1, 2, -1], np.float32)
    check(ops.logit(lib(part), 1e-5), naive.logit(part, 1e-5))


@pytest.mark.parametrize("shift", [0, 1])
def test_windows(shift, image, lib):
    x = image(2, 5, 9, 3)
    cut = naive.windows(x, 3, shift)
    check(ops.windows(lib(x), 3, shift), cut)
    check(ops.from_windows(lib(cut.astype(np.float32)), 3, (5, 9), shift), np.asarray(x))
    check(lib(naive.from_windows(cut, 3, (5, 9), shift).astype(np.float32)), np.asarray(x))


def test_small_ops(image, lib, rng):
    x, y = image(2, 9, 7, 5), image(2, 9, 7, 5)
    scale = rng.standard_normal(5).astype(np.float32)
    mask = rng.random((2, 9, 7, 1)) < 0.5
    check(ops.add_scaled(lib(x), lib(y), lib(scale)), naive.add_scaled(x, y, scale))
    check(ops.mean(lib(x), 1), naive.mean(x, 1))
    check(ops.exp(lib(x)), naive.exp(x))
    check(ops.softplus(lib(10 * x)), naive.softplus(10 * x))
    check(ops.log(lib(x * x + 0.001)), naive.log(x * x + 0.001))
    check(ops.where(lib(mask), lib(x), lib(y)), naive.where(mask, x, y))
    table, index = rng.standard_normal((11, 3)).astype(np.float32), rng.integers(0, 11, (4, 6))
    check(ops.gather_bias(lib(table), lib(index)), naive.gather_bias(table, index))
    several = rng.integers(0, 11, (2, 5, 6))
    check(ops.gather_bias(lib(table), lib(several)), naive.gather_bias(table, several))
    np.testing.assert_array_equal(
        ops.to_numpy(ops.bucket(lib(index), (1, 2, 5, 9))),
        [[np.sum(one >= np.array([1, 2, 5, 9])) for one in row] for row in index],
    )
    np.testing.assert_array_equal(
        ops.to_numpy(ops.bucket(lib(np.array([0, 0.99, 1, 2.5, 7], np.float32)), (1, 2, 3))), [0, 0, 1, 2, 3]
    )


@pytest.mark.parametrize(("groups", "kept_groups", "k"), [(1, 1, 3), (4, 2, 3), (6, 6, 12), (3, 1, 1)])
@pytest.mark.parametrize("normalise", [False, True])
def test_gates_by_groups(groups, kept_groups, k, normalise, lib, rng):
    """The bias says what is chosen, and is no part of the gates."""
    logits, bias = rng.standard_normal((9, 12)).astype(np.float32), rng.standard_normal(12).astype(np.float32)
    how = k, groups, kept_groups, normalise
    check(ops.grouped_gates(lib(logits), lib(bias), *how), naive.grouped_gates(logits, bias, *how))


@pytest.mark.parametrize("normalise", [False, True])
def test_experts(normalise, lib, rng):
    x, logits = rng.standard_normal((2, 7, 4)).astype(np.float32)
    factors = rng.standard_normal((4, 4)).astype(np.float32)
    shares = naive.top_k_gates(logits, 2, normalise)
    check(ops.top_k_gates(lib(logits), 2, normalise), shares)
    of_lib, of_numpy = ([lambda rows, f=f: rows * f for f in of] for of in (list(map(lib, factors)), factors))
    given = shares.astype(np.float32)
    check(ops.combine_experts(lib(x), lib(given), of_lib), naive.combine_experts(x, given, of_numpy))


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("size", [(1, 1), (5, 3)])
def test_group_norm(groups, size, image, lib, rng):
    x = image(2, *size, 6) * 3 + 7
    weight, bias = rng.standard_normal((2, 6)).astype(np.float32)
    given = [lib(x), lib(weight), lib(bias), groups, 1e-2]
    check(ops.group_norm(*given), naive.group_norm(x, weight, bias, groups, 1e-2))


@pytest.mark.parametrize("T", [1, 5])
def test_scores(T, lib, rng):
    q, k = (rng.standard_normal((2, n, 3, 4)).astype(np.float32) for n in (T, 7))
    check(ops.scores(lib(q), lib(k)), naive.scores(q, k))


@pytest.mark.parametrize("of_keys", [False, True])
@pytest.mark.parametrize("T", [1, 5])
def test_relative_scores(T, of_keys, lib, rng):
    x = rng.standard_normal((2, T, 3, 4)).astype(np.float32)
    table = rng.standard_normal((2 * T, 3, 4)).astype(np.float32)
    check(ops.relative_scores(lib(x), lib(table), of_keys), naive.relative_scores(x, table, of_keys))


def test_pixels_that_a_model_cannot_take(lib):
    like = lib(np.zeros(1, np.float32))
    assert ops.to_numpy(ops.as_pixels(np.zeros((1, 2, 2, 3)), like, 3)).dtype == np.float32
    with pytest.raises(
        InputError, match=r"\(1, 3, 8, 9\), expected \(batch, height, width, 3\) \(the channels come la"
    ):
        ops.as_pixels(np.zeros((1, 3, 8, 9), np.float32), like, 3)
    with pytest.raises(InputError, match=r"\(1, 8, 9, 4\), expected \(batch, height, width, 3\)$"):
        ops.as_pixels(np.zeros((1, 8, 9, 4), np.float32), like, 3)
    with pytest.raises(InputError, match="must be floats, as an image processor makes them; found uint8"):
        ops.as_pixels(np.zeros((1, 8, 9, 3), np.uint8), like, 3)
    with pytest.raises(InputError, match="pixel_values is empty"):
        ops.as_pixels(np.zeros((0, 8, 9, 3), np.float32), like, 3)
    with pytest.raises(InputError, match="expected 4 dimensions"):
        ops.as_pixels(np.zeros((8, 9, 3), np.float32), like, 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_pixels_that_are_not_finite(dtype):
    like, x = np.zeros(1, np.float32), np.zeros((1, 4, 4, 3), dtype)
    for bad in (np.nan, np.inf, -np.inf):
        x[0, 2, 1, 0] = bad
        with pytest.raises(InputError, match="NaN or infinity"):
            ops.as_pixels(x, like, 3)
    x[:] = np.finfo(np.float16 if dtype == np.float16 else np.float32).max / 8
    assert np.isfinite(ops.as_pixels(x, like, 3)).all()  # though their sum may be beyond the type


@pytest.mark.parametrize(
    ("C", "kernel", "size"),
    [
        *((C, kernel, (32, 48)) for C, kernel in [(8, 8), (16, 4), (24, 8), (28, 16)]),
        *((C, 8, (48, 8)) for C in (1, 3, 32)),  # a column of patches
        (2, 32, (32, 64)),
        (48, 2, (10, 3)),
    ],
)
def test_conv2d_in_bfloat16(C, kernel, size, rng):
    """torch's own convolution gives other numbers for these on a CPU with AMX."""
    torch = pytest.importorskip("torch")
    x, weight = rng.standard_normal((2, *size, C)), rng.standard_normal((16, C, kernel, kernel))
    x, weight = (torch.from_numpy(array).bfloat16() for array in (x, weight))
    found = ops.conv2d(x, weight, None, stride=(kernel, kernel)).double().numpy()
    wanted = naive.conv2d(x.double().numpy(), weight.double().numpy(), None, stride=(kernel, kernel))
    assert np.linalg.norm(found - wanted) < 0.004 * np.linalg.norm(wanted)


@pytest.mark.parametrize(("kernel", "dilation", "padding", "width"), [(2, 3, 0, 5), (3, 2, 2, 2)])
def test_dilated_conv2d_to_one_column_in_bfloat16(kernel, dilation, padding, width, rng):
    torch = pytest.importorskip("torch")
    x, weight = rng.standard_normal((1, 12, width, 64)), rng.standard_normal((32, 64, kernel, kernel))
    x, weight = (torch.from_numpy(array).bfloat16() for array in (x, weight))
    steps: Any = {"stride": (2, 2), "padding": (padding, padding), "dilation": (dilation, dilation)}
    found = ops.conv2d(x, weight, None, **steps).double().numpy()
    wanted = naive.conv2d(x.double().numpy(), weight.double().numpy(), None, **steps)
    assert found.shape[2] == 1
    assert np.linalg.norm(found - wanted) < 0.004 * np.linalg.norm(wanted)
