"""Train three classifiers of digits on zoo's op layer: `python examples/mnist.py [linear|mlp|cnn]`, by default all.

A model is a function of a dict of tensors, written with the same ops as zoo's models; torch computes the gradients.
The package datasets downloads MNIST; without network access the data is scikit-learn's digits (8 x 8, 1797 of them).
The models are those of candle's MNIST tutorial (https://huggingface.github.io/candle/training/training.html).

Shapes: B images, S side of an image, D hidden features, C channels, 10 labels.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from zoo import ops
from zoo.apps.train import batch_of
from zoo.typing import Array

LABELS = 10
BATCH = 64

Weights = dict[str, Tensor]
Arrays = Mapping[str, Any]  # the same as tensors or NumPy arrays


class Digits(NamedTuple):
    """Images (N, S, S, 1) floats 0 ... 1, labels (N,)."""

    name: str
    images: Tensor
    labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def digits(offline: bool = False) -> Digits:
    """Load MNIST, or scikit-learn's digits if it is not available, with a fifth of them as test set."""
    if not offline:
        try:
            from datasets import load_dataset

            parts: Any = load_dataset("ylecun/mnist").with_format("numpy")
            found = [
                torch.as_tensor(np.asarray(parts[part][key]))
                for part in ("train", "test")
                for key in ("image", "label")
            ]
            return Digits("MNIST", *(x[..., None] / 255 if x.ndim == 3 else x.long() for x in found))
        except Exception as e:  # network, Hub and package each raise their own exceptions
            print(f"MNIST is not available ({type(e).__name__}); using scikit-learn's digits")
    from sklearn.datasets import load_digits

    data: Any = load_digits()
    images, labels = (
        torch.as_tensor(data.images, dtype=torch.float32)[..., None] / 16,
        torch.as_tensor(data.target).long(),
    )
    order = torch.as_tensor(np.random.default_rng(0).permutation(len(labels)))
    rest, held = order[len(order) // 5 :], order[: len(order) // 5]
    return Digits("scikit-learn's digits", images[rest], labels[rest], images[held], labels[held])


def matrix(rng: torch.Generator, *shape: int) -> Tensor:
    """Draw a uniform matrix scaled by its number of inputs (He et al. 2015, https://arxiv.org/abs/1502.01852)."""
    bound = math.sqrt(3 / math.prod(shape[1:]))
    return (torch.rand(*shape, generator=rng) * 2 - 1) * bound


def linear_weights(rng: torch.Generator, side: int) -> Weights:
    return {"weight": torch.zeros(LABELS, side * side), "bias": torch.zeros(LABELS)}


def linear(w: Arrays, x: Array) -> Array:
    """x (B, S, S, 1) -> logits (B, 10)."""
    return ops.linear(x.reshape(len(x), -1), w["weight"], w["bias"])


def mlp_weights(rng: torch.Generator, side: int) -> Weights:
    D = 100
    up, down = matrix(rng, D, side * side), matrix(rng, LABELS, D)
    return {"up": up, "up_bias": torch.zeros(D), "down": down, "down_bias": torch.zeros(LABELS)}


def mlp(w: Arrays, x: Array) -> Array:
    """x (B, S, S, 1) -> logits (B, 10)."""
    x = ops.linear(x.reshape(len(x), -1), w["up"], w["up_bias"], act="relu")
    return ops.linear(x, w["down"], w["down_bias"])


def cnn_weights(rng: torch.Generator, side: int) -> Weights:
    C, D = (16, 32), 128
    left = side // 2 // 2
    first, second = matrix(rng, C[0], 1, 3, 3), matrix(rng, C[1], C[0], 3, 3)
    up, down = matrix(rng, D, left * left * C[1]), matrix(rng, LABELS, D)
    biases = {
        f"{name}_bias": torch.zeros(n) for name, n in (("first", C[0]), ("second", C[1]), ("up", D), ("down", LABELS))
    }
    return {"first": first, "second": second, "up": up, "down": down, **biases}


def cnn(w: Arrays, x: Array) -> Array:
    """x (B, S, S, 1) -> logits (B, 10)."""
    for name in ("first", "second"):
        x = ops.max_pool2d(ops.conv2d(x, w[name], w[f"{name}_bias"], padding=1, act="relu"), 2, 2)
    x = ops.linear(x.reshape(len(x), -1), w["up"], w["up_bias"], act="relu")
    return ops.linear(x, w["down"], w["down_bias"])


class Recipe(NamedTuple):
    weights: Callable[[torch.Generator, int], Weights]
    model: Callable[[Arrays, Any], Any]
    rate: float


RECIPES = {
    "linear": Recipe(linear_weights, linear, 1e-2),
    "mlp": Recipe(mlp_weights, mlp, 3e-3),
    "cnn": Recipe(cnn_weights, cnn, 3e-3),
}


class Result(NamedTuple):
    model: str
    parameters: int
    accuracy: float  # on the test images
    seconds: float


def train(name: str, data: Digits, steps: int = 500, seed: int = 0) -> Result:
    """Train with Adam on cross entropy, with a learning rate that falls to 0."""
    recipe, began = RECIPES[name], time.perf_counter()
    weights = recipe.weights(torch.Generator().manual_seed(seed), data.images.shape[1])
    optimiser = torch.optim.Adam([w.requires_grad_(True) for w in weights.values()], lr=recipe.rate)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * (1 - step / steps)
        chosen = batch_of(step, len(data.labels), BATCH, seed)
        loss = F.cross_entropy(recipe.model(weights, data.images[chosen]), data.labels[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    # Inference uses the same function and ops, on NumPy.
    on_numpy = {key: w.detach().numpy() for key, w in weights.items()}
    found = np.concatenate([recipe.model(on_numpy, x.numpy()).argmax(-1) for x in data.test_images.split(1000)])
    accuracy = float((found == data.test_labels.numpy()).mean())
    return Result(name, sum(w.numel() for w in weights.values()), accuracy, time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", choices=[[], *RECIPES], metavar="linear|mlp|cnn", help="by default all")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--offline", action="store_true", help="use scikit-learn's digits, without the network")
    args = parser.parse_args()
    data = digits(args.offline)
    print(f"{data.name}: {len(data.labels)} to train on, {len(data.test_labels)} to test on")
    print("| model | parameters | test accuracy | seconds |\n|---|---|---|---|")
    for name in args.models or RECIPES:
        r = train(name, data, args.steps, args.seed)
        print(f"| {r.model} | {r.parameters:,} | {100 * r.accuracy:.1f} % | {r.seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
