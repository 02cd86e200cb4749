"""Checks the inputs that users give to models, and moves them to the model's device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..typing import Array
from .capture import current
from .dispatch import backend


def as_ids(x: Any, like: Array, name: str, below: int, ndim: int = 2) -> Array:
    """A user's integers in [0, below), an array or a nested list, as an int64 array on the device of `like`.

    Raises InputError for anything else.  Values on a GPU are not checked, since that would wait for it.
    """
    x = _check_array(x, name, ndim)
    kind = _kind(x)
    if kind not in "iub" or (kind == "b" and name == "input_ids"):
        raise InputError(f"{name} must be integers, found dtype {x.dtype}")
    if isinstance(x, np.ndarray) and (x.min() < 0 or x.max() >= below):
        raise InputError(f"{name} must be in [0, {below}), found {x.min()} to {x.max()}")
    return backend(like).as_ids(x, like)


def as_hidden_states(x: Any, like: Array, name: str, width: int) -> Array:
    """A user's vectors, floats (B, T, width), with the dtype and on the device of `like`."""
    x = _check_array(x, name, 3)
    shape = tuple(x.shape)
    if _kind(x) in "iub" or shape[2] != width:
        raise InputError(f"{name} has shape {shape} and dtype {x.dtype}, expected floats (B, T, {width})")
    return backend(like).as_pixels(x, like)


def as_mask(x: Any, like: Array, name: str, shape: tuple[int, ...]) -> Array:
    """A user's mask (bool, or 0 and 1) as a bool array of `shape` on the device of `like`; InputError for others.

    Values on a GPU are not checked.
    """
    return backend(like).as_mask(_checked_mask(x, name, shape), like)


def as_key_mask(x: Any, like: Array, name: str, shape: tuple[int, ...]) -> Array | None:
    """`as_mask` of a mask for `attention`; None if it is known to hide no key."""
    x = _checked_mask(x, name, shape)
    if isinstance(x, np.ndarray) and x.all():
        return None
    mask = backend(like).as_mask(x, like)
    return None if backend(mask).all_true(mask) else mask


def as_pixels(x: Any, like: Array, channels: int) -> Array:
    """A user's pixel values (B, Y, X, C) with the dtype and on the device of `like`.

    Raises InputError for anything else, NaN and infinity included, except for values on a GPU.
    """
    x = _check_array(x, "pixel_values", 4)
    shape = tuple(x.shape)
    if _kind(x) in "biu":
        raise InputError(f"pixel_values must be floats, as an image processor makes them; found {x.dtype}")
    if shape[3] != channels:
        hint = " (the channels come last: use x.transpose(0, 2, 3, 1))" if shape[1] == channels else ""
        raise InputError(f"pixel_values have shape {shape}, expected (batch, height, width, {channels}){hint}")
    if not _all_finite(x):
        raise InputError("pixel_values contain NaN or infinity")
    return backend(like).as_pixels(x, like)


def as_samples(x: Any, like: Array) -> Array:
    """A user's samples, floats (B, S), with the dtype and on the device of `like`; InputError for NaN and others."""
    x = _check_array(x, "input_values", 2)
    if _kind(x) in "biu":
        raise InputError(f"input_values must be floats, as a feature extractor makes them; found {x.dtype}")
    if not _all_finite(x):
        raise InputError("input_values contain NaN or infinity")
    return backend(like).as_pixels(x, like)


def as_points(x: np.ndarray, like: Array) -> Array:
    """Numbers that have been checked, as float32 on the device of `like`, whatever its dtype is."""
    return backend(like).as_points(x, like)


def as_labels(x: np.ndarray, like: Array) -> Array:
    """Whole numbers that have been checked, of which some are below 0, as int64 on the device of `like`."""
    return backend(like).as_ids(x.astype(np.int64), like)


def _all_finite(x: Any) -> bool:
    if not isinstance(x, np.ndarray):
        # No value can be read while a CUDA graph is captured.
        return x.device.type != "cpu" or current() is not None or bool(x.isfinite().all())
    # A finite sum shows it in a tenth of the time; the sum of finite numbers may also overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(x.sum())) or bool(np.isfinite(x).all())


def _check_array(x: Any, name: str, ndim: int) -> Array:
    if x is None:
        raise InputError(f"{name} is None")
    if isinstance(x, (list, tuple)):
        try:
            x = np.asarray(x)
        except (ValueError, OverflowError) as e:
            raise InputError(f"{name} is not a rectangular list of integers: {e}") from None
    backend(x)
    if x.ndim != ndim:
        raise InputError(f"{name} has shape {tuple(x.shape)}, expected {ndim} dimensions")
    if 0 in x.shape:
        raise InputError(f"{name} is empty: its shape is {tuple(x.shape)}")
    return x


def _checked_mask(x: Any, name: str, shape: tuple[int, ...]) -> Array:
    x = _check_array(x, name, len(shape))
    if tuple(x.shape) != tuple(shape):
        raise InputError(f"{name} has shape {tuple(x.shape)}, expected {tuple(shape)}")
    is_on_host = isinstance(x, np.ndarray) or x.device.type == "cpu"
    if _kind(x) != "b" and is_on_host and not bool(((x == 0) | (x == 1)).all()):
        raise InputError(f"{name} must hold only 0 (padding) and 1 (token)")
    return x


def _kind(x: Array) -> str:
    """'b' for bool, 'i' or 'u' for integers, another letter for other types."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind
    name = str(x.dtype).removeprefix("torch.")
    return name[0] if name.startswith(("bool", "int", "uint")) else "f"
