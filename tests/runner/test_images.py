"""Images by graphs: sizes that come again, and what a graph reads besides its inputs."""

from __future__ import annotations

import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch, whose calls are recorded")

from tests.runner.tape import check, tensors  # noqa: E402
from zoo.errors import InputError  # noqa: E402
from zoo.nn import CacheLast, Module  # noqa: E402


@pytest.mark.parametrize(
    "name",
    [
        "vit-base-patch16-224",
        "deit-base-distilled-patch16-224",
        "beit-base-patch16-224",
        "beit-base-finetuned-ade-640-640",
        "table-transformer-detection",
        "table-transformer-learned-positions",
    ],
)
def test_images(name, model, runner):
    own = model(name)
    rng = np.random.default_rng(0)
    image = own.config.image if hasattr(own.config, "image") else (70, 96)
    larger = (image[0] * 2, image[1]) if name.startswith(("beit", "table")) else image
    for i in range(3):
        for rows, size in ((1, image), (2, larger)):
            pixels = rng.standard_normal((rows, *size, 3)).astype(np.float32 if i else np.float64)
            check(runner(own, pixels), own(pixels))
            if name.startswith("table"):
                mask = np.arange(size[1]) < rng.integers(40, 90, (rows, 1, 1))
                mask = np.broadcast_to(mask, pixels.shape[:3])
                check(runner(own, pixels, mask), own(pixels, mask))
    assert len(runner) == (4 if name.startswith("table") else 2)
    with pytest.raises(InputError):
        runner(own, np.zeros((1, *image, 2)))
    assert not runner.failed


def test_large_batches_have_no_graph(model, runner, monkeypatch):
    own = model("vit-base-patch16-224")
    Y, X = own.config.image
    monkeypatch.setattr("zoo.engines.cuda_graphs.runner.MAX_PIXELS", Y * X)
    pixels = np.random.default_rng(0).standard_normal((2, Y, X, 3))
    for _ in range(3):
        check(runner(own, pixels), own(pixels))
    assert len(runner) == 0


def test_what_a_layer_keeps_of_a_grid_is_kept_for_the_graph(model, runner):
    """Other sizes between replays: the positions of the first grid are still where the graph reads them."""
    own = model("beit-base-patch16-224")
    Y, X = own.config.image
    pixels = {rows: np.random.default_rng(rows).standard_normal((1, Y * rows, X, 3)) for rows in (1, 2)}
    wanted = {rows: own(x) for rows, x in pixels.items()}
    for _ in range(4):
        for rows in (1, 2):
            check(runner(own, pixels[rows]), wanted[rows])
            gc.collect()
            torch.full((50, 50), float("nan"))
    assert len(runner) == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs the tape of torch's CPU calls, which shows what they read")
@pytest.mark.parametrize("name", ["vit-base-patch16-224", "beit-base-patch16-224", "table-transformer-detection"])
def test_a_graph_keeps_what_it_reads(name, model, runner, monkeypatch):
    """All that is neither the model's for good, nor an input, nor made by the graph itself."""
    own = model(name)
    image = own.config.image if hasattr(own.config, "image") else (70, 96)
    for _ in range(2):
        runner(own, np.zeros((1, *image, 3)))
    (graph,) = runner._graphs.values()
    modules = list(_modules(own))
    for module in modules:
        if isinstance(module, CacheLast):  # asked for another size by now
            monkeypatch.setattr(module, "_latest", None)
    made, read = set(), set()
    for _, args, kwargs, out in graph.recording.calls:
        read |= _storages((args, kwargs))
        made |= _storages(out)
    held = _storages(([list(vars(module).values()) for module in modules], graph.record, graph.kept))
    assert made
    assert read - made - held == set()


def _modules(node):
    """`node` and all modules under it."""
    if isinstance(node, Module):
        yield node
    children = vars(node).values() if isinstance(node, Module) else node if isinstance(node, list | tuple) else ()
    for child in children:
        yield from _modules(child)


def _storages(node):
    return {x.untyped_storage().data_ptr() for x in tensors(node)}
