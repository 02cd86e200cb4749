"""PromptCache: the keys and values of a text, kept from one call to the next, and in files."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import ops
from ..cache import KVCache
from ..errors import CheckpointError, InputError, ZooError
from ..files.atomic_write import atomic_write
from ..inputs.image_prompt import ImagePrompt, keys_of
from ..nn import leaves
from ..weights.fingerprint import weights_digest
from ..weights.safetensors import SafetensorsFile, write_tensors
from .decoder import Decoder

FORMAT = "zoo.prompt_cache.1"
DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16"}  # an array's -> a file's


class PromptCache:
    """The keys and values of the first of `ids`: a prompt that begins with them is computed from where it differs.

    model: a decoder with its weights.  decoder: runs it.
    """

    def __init__(self, model: Any, decoder: Decoder | None = None):
        self._model, self._decoder = model, decoder or model
        self.ids: list[int] = []
        self._cache: KVCache | None = None
        self._fingerprint: str | None = None

    @property
    def length(self) -> int:
        """The number of tokens whose keys and values are known."""
        return 0 if self._cache is None else self._cache.length

    def begin(self, prompt: Sequence[int] | ImagePrompt, capacity: int) -> KVCache:
        """The cache with what it knows of a prompt, and room for `capacity` tokens; `ids` are the prompt's from now on,
        with those of `ImagePrompt.keys` in the places of images.

        Who adds tokens to the cache appends them to `ids`.  The prompt's last token is never in the cache: it is
        computed, since the next token needs its logits.  Where a layer with a window no longer has the tokens before
        the first that differs, the cache is empty.
        """
        ids, cache = keys_of(prompt), self._with_room(capacity)
        n = min(cache.length, len(ids) - 1)
        differs = np.array(self.ids[:n]) != np.asarray(ids[:n])
        cache.rewind(int(differs.argmax()) if differs.any() else n)
        self.ids = list(ids)
        return cache

    def save_cache(self, path: str | os.PathLike[str], about: Mapping[str, str] | None = None) -> None:
        """Write the tokens, keys and values to a safetensors file.  about: texts to keep with them."""
        path, count, cache = Path(path).expanduser(), self.length, self._cache
        if cache is None or not count:
            raise InputError("the cache is empty: there is nothing to save")
        if cache.cross:
            raise InputError("a cache with an encoder's states cannot be saved: expected that of a decoder alone")
        arrays = {f"{name}.{i}": x for name in ("keys", "values") for i, x in enumerate(getattr(cache, name))}
        dtype = _dtype(cache.keys[0])
        held = {name: cache.tokens_in(int(name.partition(".")[2])) for name in arrays}
        header = {name: (dtype, (held[name], *x.shape[2:])) for name, x in arrays.items()}
        tokens = np.array(self.ids[:count], np.int64)

        def array_of(name: str) -> np.ndarray:
            if name == "tokens":
                return tokens
            return ops.backend(arrays[name]).to_raw(arrays[name][0, : held[name]], dtype).array

        metadata = {**(about or {}), "format": FORMAT, "model": self.fingerprint}
        try:
            with atomic_write(path) as part:
                write_tensors(part, {"tokens": ("I64", (count,)), **header}, array_of, metadata)
        except OSError as e:
            raise ZooError(f"cannot write {path}: {e.strerror or e}") from e

    def load_cache(self, path: str | os.PathLike[str]) -> dict[str, str]:
        """Take tokens, keys and values from a file that `save_cache` wrote with the same model -> `about`.

        CheckpointError for another model's file, and one that is damaged; what was known before stays then.
        """
        path = Path(path).expanduser()
        file = SafetensorsFile(path)
        about = dict(file.metadata)
        if about.pop("format", None) != FORMAT or "tokens" not in file:
            raise CheckpointError(f"{path} is not a saved prompt cache")
        shapes = self._model.cache_shapes
        empty = self._model.new_cache(1, 1)
        like: Any = empty.keys[0]
        dtype, (count, *_) = _dtype(like), file.shape("tokens") or (0,)
        held = [count] * len(shapes)
        for i in empty.window_layers:  # of which the file may have the last tokens alone
            first, places = empty.window_layers[-1], empty.state_places(i)
            n = (file.shape(f"keys.{first}") or (0,))[0] if f"keys.{first}" in file else 0
            held[i] = places + min(max(n - empty.state_places(first), empty.window), count)
        wanted = {"tokens": ("I64", (count,))}
        for i, (n, (heads, *sizes)) in enumerate(zip(held, shapes, strict=True)):
            wanted |= {f"keys.{i}": (dtype, (n, heads, sizes[0])), f"values.{i}": (dtype, (n, heads, sizes[-1]))}
        found = {name: (file.dtype(name), tuple(file.shape(name))) for name in file.names()}
        for name in [*wanted, *found]:
            if wanted.get(name) != found.get(name):
                has, needs = _describe(found.get(name)), _describe(wanted.get(name))
                raise CheckpointError(
                    f"{path}: {name} is {has}, and this model's is {needs}: it is the cache of another model, or of "
                    "another dtype"
                )
        if about.pop("model", None) != self.fingerprint:
            raise CheckpointError(
                f"{path} is the cache of a model with other weights, or in another precision: load that model, or "
                "compute the text again"
            )
        tokens = file.read("tokens").array
        if (
            not 0 < count <= self._decoder.max_positions
            or (tokens.min() < 0 and not hasattr(self._model.config, "image_token_id"))
            or tokens.max() >= self._model.config.vocab_size
        ):
            raise CheckpointError(f"{path}: {count} tokens that are none of this model's")
        cache = self._decoder.new_cache(1, min(2 * count, self._decoder.max_positions))
        made, device = ops.backend(like), str(getattr(like, "device", "cpu"))

        def array(name: str) -> Any:
            x = made.to_parameter(file.read(name), f"{path}: {name}", _name(like), device)
            if not all(math.isfinite(float(end)) for end in (x.min(), x.max())):
                raise CheckpointError(f"{path}: {name} has values that are not finite")
            return x

        cache.take(((array(f"keys.{i}"), array(f"values.{i}")) for i in range(len(shapes))), count)
        self._cache, self.ids = cache, tokens.tolist()
        return about

    @property
    def fingerprint(self) -> str:
        """A hash of the model's class and config, of all its weights, and of how an engine rounds them."""
        if self._fingerprint is None:
            model = self._model
            config = json.dumps(model.config.to_dict(), sort_keys=True, default=str)
            about = f"{model.architecture} {model.runner.precision} {config} {weights_digest(leaves(model))}"
            self._fingerprint = hashlib.sha256(about.encode()).hexdigest()
        return self._fingerprint

    def _with_room(self, capacity: int) -> KVCache:
        old = self._cache
        if old is None or old.capacity < capacity:
            new = self._cache = self._decoder.new_cache(1, min(2 * capacity, self._decoder.max_positions))
            if old is not None:
                pairs = enumerate(zip(old.keys, old.values, strict=True))
                new.take(((k[0, : old.tokens_in(i)], v[0, : old.tokens_in(i)]) for i, (k, v) in pairs), old.length)
            return new
        return old


def _name(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def _dtype(x: Any) -> str:
    return DTYPES[_name(x)]


def _describe(of: tuple[str, tuple[int, ...]] | None) -> str:
    return "missing" if of is None else f"{of[0]} {list(of[1])}"
