"""The ops of pictures as nodes of a graph, as in `test_onnx_ops`."""

from __future__ import annotations

import numpy as np
import pytest
from graph_check import check, random

from tests.ops import naive
from zoo import ops
from zoo.engines.onnx.ops import winograd as onnx_winograd
from zoo.ops.on_numpy import winograd as numpy_winograd


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), ((2, 3), (1, 0), (1, 2))])
def test_convolutions(stride, padding, dilation):
    weight, bias = random(5, 4, 3, 2), random(5)
    check(
        lambda x, w, b: ops.conv2d(x, w, b, stride, padding, dilation, "gelu", None, "relu"),
        lambda x, w, b: naive.conv2d(x, w, b, stride, padding, dilation, "gelu", None, "relu"),
        [("B", "Y", "X", 4)],
        [weight, bias],
    )
    check(
        lambda x, w, b: ops.conv_transpose2d(x, w, b, stride, padding, "tanh"),
        lambda x, w, b: naive.conv_transpose2d(x, w, b, stride, padding, "tanh"),
        [("B", "Y", "X", 4)],
        [random(4, 5, 3, 2), bias],
    )


def test_convolution_with_a_residual():
    check(
        lambda x, r, w: ops.conv2d(x, w, None, 1, 1, residual=r, post="relu"),
        lambda x, r, w: naive.conv2d(x, w, None, 1, 1, residual=r, post="relu"),
        [("B", "Y", "X", 4), ("B", "Y", "X", 4)],
        [random(4, 4, 3, 3)],
    )


@pytest.mark.parametrize("padding", [0, 1, (1, 0)])
@pytest.mark.parametrize("wide", [1, 1 << 20])
def test_convolutions_of_many_channels(wide, padding, monkeypatch):
    monkeypatch.setattr(onnx_winograd, "CHANNELS", 1)
    monkeypatch.setattr(numpy_winograd, "MIN_KERNELS_FOR_M2", wide)  # from which tiles are 4 x 4 instead of 6 x 6

    def run(x, w, b):
        y = ops.conv2d(x, w, b, 1, padding, act="relu")
        y = ops.conv2d(y, w, None, 1, 1, residual=y, post="gelu")
        assert sum(node.op == "MatMul" for node in x.graph.nodes) == 4
        return y

    def twin(x, w, b):
        y = naive.conv2d(x, w, b, 1, padding, act="relu")
        return naive.conv2d(y, w, None, 1, 1, residual=y, post="gelu")

    check(run, twin, [("B", "Y", "X", 5)], [random(5, 5, 3, 3), random(5)], 1e-4, on_cpu=True)


def test_pools_and_shuffles():
    def both(f):
        return lambda x: (f.max_pool2d(x, 3, 2, 1), f.adaptive_avg_pool2d(x, (2, 3)), f.pixel_shuffle(x, 2))

    check(both(ops), both(naive), [("B", "Y", "X", 8)])


@pytest.mark.parametrize("stride", [1, (2, 1)])
@pytest.mark.parametrize("act", [None, "gelu"])
def test_depthwise_conv2d(stride, act):
    weight, bias = (np.random.default_rng(1).normal(size=shape).astype(np.float32) for shape in ((4, 1, 3, 3), (4,)))

    def both(f):
        return lambda x, w, b: f.depthwise_conv2d(x, w, b, act, stride)

    check(both(ops), both(naive), [("B", "Y", "X", 4)], [weight, bias])


def test_conv2d_of_groups(monkeypatch):
    monkeypatch.setattr(onnx_winograd, "CHANNELS", 1)  # which is for one group

    def both(f):
        return lambda x, w, b: f.conv2d(x, w, b, 1, 1, 1, "gelu", x, "relu", groups=3)

    check(both(ops), both(naive), [("B", "Y", "X", 6)], [random(6, 2, 3, 3), random(6)], on_cpu=True)


@pytest.mark.parametrize("stride", [1, (1, 2)])
def test_depthwise_conv2d_in_other_places(stride):
    def both(f):
        return lambda x, w: f.depthwise_conv2d(f.pad_images(x, (0, 1), (2, 1)), w, None, "relu6", stride, 0, (1, 2))

    check(both(ops), both(naive), [("B", "Y", "X", 4)], [random(4, 1, 3, 2)])


@pytest.mark.parametrize("kernel", [4, 5])
@pytest.mark.parametrize("act", [None, "gelu"])
def test_grouped_conv1d(kernel, act):
    def both(f):
        return lambda x, w, b, g, v: (
            f.grouped_conv1d(x, w, b, 2, act),
            f.grouped_conv1d(x, f.fold_weight_norm(g, v), b, 2),
        )

    weights = [random(6, 2, kernel), random(6), random(1, 1, kernel), random(6, 2, kernel)]
    check(both(ops), both(naive), [("B", "T", 4)], weights)


@pytest.mark.parametrize("tokens", ["T", 6])
def test_channel_attention(tokens):
    def both(f):
        return lambda q, k, v: f.channel_attention(q, k, v)

    check(both(ops), both(naive), [("B", tokens, 3, 4)] * 3)


def test_scale_bias():
    def both(f):
        return lambda gates, bias: f.scale_bias(bias, gates)

    check(both(ops), both(naive), [("B", 4, 3)], [random(1, 3, 4, 5)])


def test_values_at_points():
    def both(f):
        return lambda x, points, weights: f.sample(x, points, weights)

    check(both(ops), both(naive), [("B", "Y", "X", 3, 4), ("B", "T", 3, 2, 2), ("B", "T", 3, 2)])


def test_rows_and_points():
    def both(f):
        def run(x):
            index = f.top_rows(x, 4)
            rows = f.take_rows(x, index)
            return index, rows, f.logit(rows, 1e-5), f.centres(x.shape[1:], x)

        return run

    check(both(ops), both(naive), [("B", "Y", "X")])
    check(lambda x: ops.avg_pool2d(x, 2), lambda x: naive.avg_pool2d(x, 2), [("B", "Y", "X", 3)])


@pytest.mark.parametrize("shift", [0, 2])
def test_windows(shift):
    def both(f):
        def run(x):
            cut = f.windows(x, 4, shift)
            return cut, f.from_windows(cut * 2.0, 4, tuple(x.shape[1:3]), shift)

        return run

    check(both(ops), both(naive), [("B", "Y", "X", 3)])


@pytest.mark.parametrize(
    "mode", [f"{kind}{how}" for kind in ("bilinear", "bicubic") for how in ("", " corners", " antialias")] + ["nearest"]
)
def test_interpolate(mode):
    def both(f):
        def run(x, y):
            to = y.shape[1:3]
            return (
                f.interpolate(x, to, mode),
                f.interpolate(x, (3, to[1] * 2 + 1), mode),
                f.interpolate(y, (1, 1), mode),
            )

        return run

    check(both(ops), both(naive), [("B", "Y", "X", 3), ("B", "T", "S", 2)], tolerance=1e-4)


def test_nearest_of_a_mask():
    def both(f):
        return lambda x, y: f.interpolate(x[:, :, :, None], y.shape[1:3], "nearest")[:, :, :, 0]

    check(both(ops), lambda x, y: both(naive)(x, y).astype(bool), [("B", "Y", "X", "bool"), ("B", "T", "S", 2)])
