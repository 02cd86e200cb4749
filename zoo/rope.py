"""The kinds of rotary positions, by their names in configs.

Frequencies are computed in float32, in transformers' order: at position 8000 a difference in their last bit turns a
query by a thousandth of a radian.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .errors import ConfigError, UnsupportedError, nearest

FULL_ATTENTION, SLIDING_ATTENTION = "full_attention", "sliding_attention"  # the kinds of layers in layer_types
f32 = np.float32
NUMBERS = (
    *("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    *("attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
)
NEEDED_FIELDS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "yarn": (),
    "longrope": (),
}
MIN_VALUE, MAX_VALUE = 1e-30, 1e30  # a factor's, or theta's: far from any real one
FACTORS = "short_factor", "long_factor"  # longrope's: a divisor for each frequency


@dataclass(frozen=True)
class Rope:
    """Rotary positions of `size` features of a head.

    kind: a key of NEEDED.  numbers: the config's numbers for that kind, sorted by name.  factors: of longrope, for
    texts up to `context` tokens and for longer ones.
    context: the longest text that the model was trained on, before any scaling; max_positions: after it.
    """

    kind: str
    size: int
    theta: float
    context: int
    max_positions: int
    numbers: tuple[tuple[str, float], ...] = ()
    factors: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    @property
    def depends_on_length(self) -> bool:
        """True if the frequencies are others for a longer text."""
        return self.kind in ("dynamic", "longrope")

    @property
    def scale(self) -> float:
        """The factor of cosines and sines."""
        given = dict(self.numbers)
        if self.kind not in ("yarn", "longrope"):
            return 1.0
        if "attention_factor" in given:
            return given["attention_factor"]
        if self.kind == "longrope":
            factor = given["factor"]
            return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(self.context))
        if given.get("mscale") and given.get("mscale_all_dim"):
            return _mscale(given["factor"], given["mscale"]) / _mscale(given["factor"], given["mscale_all_dim"])
        return _mscale(given["factor"])

    def frequencies(self, length: int) -> tuple[float, ...]:
        """The angles in radians that one token adds, size / 2 of them, for a text of `length` tokens.

        They depend on the length with dynamic scaling and longrope, beyond `context`: they change as a text grows.
        Keys in a cache stay as they were rotated, as in transformers (which for Phi-3 computes them anew once).
        """
        if self.kind == "longrope":
            length = self.context + (length > self.context)
        return _frequencies(self, max(length, self.context) if self.depends_on_length else 0)


def rope_of(parameters: Mapping[str, Any], size: int, positions: int) -> Rope:
    """The positions that a config asks for; ConfigError or UnsupportedError names the field that is wrong.

    parameters: rope_scaling or rope_parameters, with rope_theta.  size: the features of a head that are rotated.
    positions: the config's max_position_embeddings.
    """
    if size % 2:
        raise ConfigError(f"heads of {size} features: rotary positions need an even number")
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if not isinstance(kind, str) or kind not in NEEDED_FIELDS:
        guess = nearest(str(kind), NEEDED_FIELDS)
        raise UnsupportedError(f"rope_type {kind!r} is not implemented, only {', '.join(NEEDED_FIELDS)} are{guess}")
    if kind == "yarn" and not isinstance(parameters.get("truncate", True), bool):
        raise ConfigError(f"truncate = {parameters['truncate']!r}, expected true or false")
    numbers = {k: _number(k, v, f"rope_type {kind!r}") for k, v in parameters.items() if k in NUMBERS and v is not None}
    theta = _number("rope_theta", parameters["rope_theta"], "the config")
    missing = [name for name in NEEDED_FIELDS[kind] if name not in numbers]
    if missing:
        raise ConfigError(f"rope_type {kind!r} needs {', '.join(missing)}{nearest(missing[0], parameters)}")
    context = (
        int(numbers.pop("original_max_position_embeddings", positions))
        if kind in ("llama3", "yarn", "longrope")
        else positions
    )
    if kind in ("yarn", "longrope"):
        numbers.setdefault("factor", positions / max(context, 1))
    for name in ("rope_theta", "factor", "low_freq_factor", "high_freq_factor", "attention_factor"):
        value = theta if name == "rope_theta" else numbers.get(name, 1.0)
        if not MIN_VALUE <= value <= MAX_VALUE:
            raise ConfigError(
                f"{name} = {value} of rotary positions is out of range, expected {MIN_VALUE:g} ... {MAX_VALUE:g}"
            )
    stretched = kind in ("linear", "dynamic") or (kind == "yarn" and context == positions)
    most = int(positions * max(1.0, numbers["factor"])) if stretched else positions
    if theta == 1 or context < 1:
        raise ConfigError(
            f"rope_theta = {theta} for {context} tokens: expected another number than 1, and at least 1 token"
        )
    if kind == "llama3" and numbers["low_freq_factor"] >= numbers["high_freq_factor"]:
        low, high = numbers["low_freq_factor"], numbers["high_freq_factor"]
        raise ConfigError(f"low_freq_factor = {low} and high_freq_factor = {high}: expected the first to be less")
    if kind == "dynamic" and size < 4:
        raise ConfigError(f"dynamic scaling of heads of {size} features: expected at least 4")
    factors = None
    if kind == "longrope":
        short, long = (_factors(name, parameters.get(name), size // 2) for name in FACTORS)
        factors = short, long
    return Rope(kind, size, theta, context, most, tuple(sorted(numbers.items())), factors)


def axial_rope_of(parameters: Mapping[str, Any], size: int) -> Rope:
    """The positions in height or in width that the config of an encoder of images asks for; errors as for `rope_of`.

    parameters: with rope_theta; their type is "axial", which older files call "default".  size: as for `rope_of`.
    """
    kind = parameters.get("rope_type", parameters.get("type", "axial"))
    if kind not in ("axial", "default"):
        raise UnsupportedError(f"rope_type {kind!r} is not implemented, only 'axial' is")
    return rope_of({**parameters, "rope_type": "default"}, size, 1)


def _factors(name: str, given: Any, count: int) -> tuple[float, ...]:
    if not isinstance(given, list) or len(given) != count:
        found = f"{len(given)} numbers" if isinstance(given, list) else repr(given)
        raise ConfigError(f"{name} of rope_type 'longrope' is {found}, expected a list of {count} numbers")
    numbers = tuple(_number(name, value, "rope_type 'longrope'") for value in given)
    if min(numbers) <= 0:
        raise ConfigError(f"{name} of rope_type 'longrope' has {min(numbers)}, expected numbers above 0")
    return numbers


def _number(name: str, value: Any, where: str) -> float:
    if name == "truncate":
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(f"{name} = {value!r} of {where} is not a number")
    return float(value)


def _mscale(factor: float, mscale: float = 1.0) -> float:
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0


@lru_cache(256)
def _frequencies(rope: Rope, length: int) -> tuple[float, ...]:
    given, theta = dict(rope.numbers), rope.theta
    if rope.kind == "dynamic" and length > rope.context:
        factor, ratio = given["factor"], rope.size / (rope.size - 2)
        stretch = f32(f32(f32(factor * length) / f32(rope.context)) - f32(factor - 1))
        theta = float(f32(f32(theta) * f32(float(stretch) ** ratio)))
    # The power in float64, rounded: a float32 power differs from library to library in its last bit.
    exponents = np.arange(0, rope.size, 2, dtype=f32) / f32(rope.size)
    powers = (theta ** exponents.astype(np.float64)).astype(f32)
    if rope.factors is not None:
        powers = np.array(rope.factors[length > rope.context], f32) * powers
    plain = f32(1) / powers
    if rope.kind == "linear":
        plain = plain / f32(given["factor"])
    elif rope.kind == "llama3":
        plain = _llama3(plain, rope.context, given)
    elif rope.kind == "yarn":
        plain = _yarn(powers, rope, given)
    return tuple(plain.tolist())


def _llama3(plain: np.ndarray, context: int, given: Mapping[str, float]) -> np.ndarray:
    """High frequencies stay, low ones are divided, and in between it is a blend (Grattafiori et al. 2024)."""
    factor, low = f32(given["factor"]), f32(given["low_freq_factor"])
    length = f32(2 * math.pi) / plain
    scaled = np.where(length > f32(context / given["low_freq_factor"]), plain / factor, plain)
    smooth = (f32(context) / length - low) / f32(given["high_freq_factor"] - given["low_freq_factor"])
    blend = (f32(1) - smooth) * scaled / factor + smooth * scaled
    between = (length >= f32(context / given["high_freq_factor"])) & (length <= f32(context / given["low_freq_factor"]))
    return np.where(between, blend, scaled)


def _yarn(powers: np.ndarray, rope: Rope, given: Mapping[str, float]) -> np.ndarray:
    """A ramp from the plain frequencies to the divided ones (Peng et al. 2023, https://arxiv.org/abs/2309.00071)."""

    def feature(rotations: float) -> float:
        """The (real) index of the feature that turns so often within the context."""
        return rope.size * math.log(rope.context / (rotations * 2 * math.pi)) / (2 * math.log(rope.theta))

    low, high = feature(given.get("beta_fast") or 32.0), feature(given.get("beta_slow") or 1.0)
    if given.get("truncate", 1.0):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.size - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(rope.size // 2, dtype=f32) - f32(low)) / f32(high - low), f32(0), f32(1))
    plain = f32(1) - ramp
    return f32(1) / (f32(given["factor"]) * powers) * (f32(1) - plain) + f32(1) / powers * plain


def check_layer_types(
    kinds: list[str], layers: int, known: tuple[str, str] = (FULL_ATTENTION, SLIDING_ATTENTION)
) -> None:
    """Raise ConfigError unless `layer_types` has a known kind for each layer."""
    if len(kinds) != layers:
        raise ConfigError(f"layer_types has {len(kinds)} kinds for {layers} layers")
    for kind in kinds:
        if kind not in known:
            raise ConfigError(f"layer_types: {kind!r}, expected {' or '.join(known)}{nearest(str(kind), known)}")
