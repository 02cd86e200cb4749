"""SentenceEncoder: pooling, dense layers, norms and routes, from the files of sentence-transformers.

Shapes: B texts, T tokens, D hidden_size, E the size of an embedding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..errors import CheckpointError, ConfigError, InputError, UnsupportedError, nearest
from ..files.folder import CheckpointFolder
from ..files.inside import checkpoint_file
from ..nn import LayerNorm, Linear
from ..ops import on_numpy
from .modules import (
    MODULES,
    SETTINGS,
    count_in,
    leaves_folder,
    read_modules,
    read_settings,
    read_transformer,
    refuse_unknown,
    warn_unknown,
)

if TYPE_CHECKING:
    from ..weights import Reader, Source, Weights

# A module's flag of old -> its mode, in the order in which several are concatenated.
FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLINGS = tuple(FLAGS.values())
SIZES = ("embedding_dimension", "word_embedding_dimension")  # two names of one number
ACTIVATIONS = {"Identity": None, "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "Sigmoid": "sigmoid", "SiLU": "silu"}
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
MODULE_NAMES = ("module_input_name", "module_output_name")  # settings: what a module reads and writes
CHUNK = 256  # tokens whose states are added one after another
SENTENCE = "sentence_embedding"  # sentence-transformers' name of the vector
ROUTERS = ("Router", "Asym")  # the second is its first name

Step = Callable[[np.ndarray], np.ndarray]  # (B, E) -> (B, E)


@dataclass(frozen=True)
class Router:
    """Steps that queries and documents do not share."""

    routes: dict[str, tuple[Step, ...]]
    default: str | None  # the route of texts that are neither; None: they are an error

    def of(self, task: str | None) -> tuple[Step, ...]:
        """The steps of a task, "query" or "document"; InputError if there are none."""
        name = self.default if task is None else task
        if name not in self.routes:
            known = ", ".join(map(repr, self.routes))
            raise InputError(f"the checkpoint has no steps for {name or 'texts of no kind'}, only for {known}")
        return self.routes[name]


@dataclass(frozen=True)
class SentenceEncoder:
    """The steps after the transformer.  The defaults: the mean of all tokens, normalised to length 1."""

    pooling: tuple[str, ...] = ("mean",)
    include_prompt: bool = True  # True if a prompt's tokens are pooled too
    steps: tuple[Step | Router, ...] = field(default_factory=lambda: (normalize,))
    size: int | None = None  # E before vectors are cut short; None: hidden_size
    truncate_dim: int | None = None  # the first dimensions, which are kept of a vector; None: all
    similarity: str = "cosine"
    max_tokens: int | None = None
    lower_case: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    files: tuple[str, ...] = ()  # the files that it was read from, relative to the folder

    def steps_for(self, task: str | None = None) -> list[Step]:
        """The steps for a "query", a "document" or any text."""
        return [s for step in self.steps for s in (step.of(task) if isinstance(step, Router) else (step,))]


def read_sentence_encoder(
    folder: str | os.PathLike[str] | CheckpointFolder,
    hidden_size: int,
    modules: Sequence[tuple[str, str]] | None = None,
) -> SentenceEncoder:
    """The steps in a checkpoint's modules.json (or its `modules`, where they were read already).

    UnsupportedError names a module or a setting that is not implemented.
    """
    folder = CheckpointFolder.of(folder)
    settings, files = read_transformer(folder)
    files = [MODULES, *files]
    pooling: dict[str, Any] | None = None
    modes: tuple[str, ...] = ()
    steps: list[Step | Router] = []
    size = hidden_size
    for kind, path in read_modules(folder) if modules is None else modules:
        name = f"{path}/config.json" if path else "config.json"
        config = folder.where(name)
        if kind in ("Transformer", "Dropout"):
            if kind == "Transformer" and path:
                raise UnsupportedError(
                    f"{folder.where(MODULES)}: a transformer in the folder {path!r}, and other modules before it"
                )
        elif kind == "StaticEmbedding" and pooling is None:
            pooling, modes = {}, ("mean",)
        elif kind == "WeightedLayerPooling" and pooling is None:
            # Its input is there only if the model gives the states of all its layers; else the library skips it.
            if folder.json("config.json").get("output_hidden_states"):
                raise UnsupportedError(f"{config}: {kind} of all layers (output_hidden_states) is not implemented")
            files += [name]
        elif kind == "Pooling" and pooling is None:
            pooling = folder.json(name)
            refuse_unknown(pooling, ("pooling_mode", *FLAGS, *SIZES, "include_prompt"), config)
            modes = _modes(pooling, config)
            _expect(pooling, config, dict.fromkeys(SIZES, size))
            if not isinstance(pooling.get("include_prompt", True), bool):
                raise ConfigError(f"{config}: include_prompt = {pooling['include_prompt']!r}, expected true or false")
            size *= len(modes)
            files.append(name)
        elif kind in ROUTERS and pooling is not None:
            router, size = _router(folder, path, size)
            steps.append(router)
            files += [name for at in folder.names(path) for name in inside(folder, f"{path}/{at}")]
        elif kind in STEPS and pooling is not None:
            step, size = STEPS[kind](folder, path, size)
            steps.append(step)
            if path:
                files += inside(folder, path)
        else:
            raise UnsupportedError(f"{folder.where(MODULES)}: the module {kind!r} is not implemented at its place")
    if pooling is None:
        raise UnsupportedError(
            f"{folder.where(MODULES)}: no Pooling among the modules, so this is not a sentence encoder"
        )

    shared = read_settings(folder, ("SentenceTransformer",), SIMILARITIES, ("truncate_dim",))
    longest = count_in(shared.raw, "truncate_dim", folder.where(SETTINGS))
    return SentenceEncoder(
        pooling=modes,
        include_prompt=pooling.get("include_prompt", True),
        steps=tuple(steps),
        size=size,
        truncate_dim=None if longest is None else min(longest, size),
        similarity=shared.similarity or "cosine",
        max_tokens=settings.max_tokens,
        lower_case=settings.lower_case,
        prompts=shared.prompts,
        default_prompt=shared.default_prompt,
        files=(*files, *shared.files),
    )


def pool(x: np.ndarray, mask: np.ndarray, modes: tuple[str, ...]) -> np.ndarray:
    """x (B, T, D), mask (B, T) bool, true on the tokens that count, padding on the right -> (B, D * len(modes)).

    A row where no token counts gives zeros for the means, its first token for "cls" and the last for "lasttoken".
    """
    B, T, _ = x.shape
    every = np.arange(B)
    parts = []
    for mode in modes:
        if mode == "cls":
            part = x[every, mask.argmax(axis=1)]
        elif mode == "lasttoken":
            part = x[every, T - 1 - mask[:, ::-1].argmax(axis=1)]
        elif mode == "max":
            part = np.where(mask[..., None], x, -np.inf).max(axis=1)
        else:
            # A weight is the token's place, which the tokens of a prompt count for even where they are left out.
            weights = mask * np.arange(1.0, T + 1) if mode == "weightedmean" else mask * 1.0
            # In parts: thousands of numbers that are added one after another lose digits.
            own, total = weights.astype(x.dtype), np.zeros_like(x[:, 0])
            for at in range(0, T, CHUNK):
                total += np.einsum("btd,bt->bd", x[:, at : at + CHUNK], own[:, at : at + CHUNK], optimize=False)
            count = np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
            part = total / (np.sqrt(count) if mode == "mean_sqrt_len_tokens" else count)
        parts.append(part.astype(np.float32, copy=False))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def normalize(x: np.ndarray) -> np.ndarray:
    """Rows to length 1; a row of zeros stays."""
    # Large ones are brought near 1 by a power of two, which rounds nothing: squares beyond 1e38 overflow float32.
    exponent = np.maximum(np.frexp(np.abs(x).max(axis=-1, keepdims=True))[1], 0)
    x = np.ldexp(x, -exponent)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), np.ldexp(x.dtype.type(1e-12), -exponent))


def _modes(raw: dict[str, Any], path: str) -> tuple[str, ...]:
    found = raw.get("pooling_mode")
    if found is None:
        return tuple(mode for flag, mode in FLAGS.items() if raw.get(flag)) or ("mean",)
    modes = tuple(found) if isinstance(found, list) else (found,)
    for mode in modes:
        if mode not in POOLINGS:
            raise UnsupportedError(f"{path}: pooling_mode {mode!r} is not implemented{nearest(str(mode), POOLINGS)}")
    return modes


def _settings(folder: CheckpointFolder, path: str, output: str) -> tuple[dict[str, Any], str]:
    """A module's config.json, empty if it has none, and its place for messages; output: what it changes."""
    name = f"{path}/config.json"
    raw = folder.json(name) if path and folder.has(name) else {}
    _expect(raw, folder.where(name), dict.fromkeys(MODULE_NAMES, output))
    return raw, folder.where(name)


def inside(folder: CheckpointFolder, path: str) -> list[str]:
    """The files in a module's folder, or the one file at the path."""
    return [name for name in (path, *(f"{path}/{n}" for n in folder.names(path))) if folder.has(name)]


def tensors_of(source: Source) -> tuple[Weights, Reader]:
    """The scope that layers after the model pull their weights from, on NumPy, and its reader."""
    from ..weights import NameMap, Reader, RenamedSource, Weights

    named = RenamedSource(source, NameMap(prefix="", base=()), is_base_model=False, tied={})
    reader = Reader(named, on_numpy)
    return Weights(reader), reader


def _module(folder: CheckpointFolder, path: str, kind: str, build: Callable[[Weights], Any]) -> Any:
    """The result of `build` on the weights in a module's folder; CheckpointError for tensors that it does not read."""
    from ..weights.files import open_weights

    at = checkpoint_file(folder.path, path)
    w, reader = tensors_of(open_weights(at))
    module = build(w)
    if unused := reader.report().unused:
        raise CheckpointError(f"{at}: tensors that a {kind} module does not know: {', '.join(unused)}")
    return module


def dense(folder: CheckpointFolder, path: str, size: int, output: str = SENTENCE) -> tuple[Step, int]:
    """A linear layer with its activation, and the size that it gives."""
    raw, where = _settings(folder, path, output)
    _expect(raw, where, {"in_features": size})
    known = ("in_features", "out_features", "bias", "activation_function", "use_residual", *MODULE_NAMES)
    warn_unknown(raw, known, where)  # as the library does
    out = count_in(raw, "out_features", where)
    if out is None:
        raise ConfigError(f"{where}: no out_features, the size that the layer gives")
    act = str(raw.get("activation_function", "torch.nn.Tanh"))
    kind = act.rpartition(".")[2]
    if not act.startswith("torch.nn.") or kind not in ACTIVATIONS:
        raise UnsupportedError(
            f"{where}: activation_function {act!r} is not implemented, only {', '.join(ACTIVATIONS)}"
        )

    def build(w: Any) -> Step:
        linear = Linear(w / "linear", size, out, bias=raw.get("bias") is not False, act=ACTIVATIONS[kind])
        if raw.get("use_residual") is not True:
            return cast(Step, linear)
        if size == out:
            return lambda x: cast(np.ndarray, linear(x, x))
        residual = Linear(w / "residual", size, out, bias=False)
        return lambda x: cast(np.ndarray, linear(x, residual(x)))

    return _module(folder, path, "Dense", build), out


def _layer_norm(folder: CheckpointFolder, path: str, size: int) -> tuple[Step, int]:
    raw, where = _settings(folder, path, SENTENCE)
    _expect(raw, where, {"dimension": size})
    refuse_unknown(raw, ("dimension",), where)
    return _module(folder, path, "LayerNorm", lambda w: LayerNorm(w / "norm", size, 1e-5)), size


def _normalize(folder: CheckpointFolder, path: str, size: int) -> tuple[Step, int]:
    _settings(folder, path, SENTENCE)
    return normalize, size


# A module's kind -> its step and the size that it gives, of its folder and the size that it gets.
STEPS: dict[str, Callable[[CheckpointFolder, str, int], tuple[Step, int]]] = {
    "Dense": dense,
    "LayerNorm": _layer_norm,
    "Normalize": _normalize,
}


def _router(folder: CheckpointFolder, path: str, size: int) -> tuple[Router, int]:
    """The routes in a module's router_config.json (config.json, in older ones), and the size that they all give."""
    name = next((n for n in ("router_config.json", "config.json") if folder.has(f"{path}/{n}")), "router_config.json")
    raw, where = folder.json(f"{path}/{name}"), folder.where(f"{path}/{name}")
    types, structure, settings = (raw.get(key) for key in ("types", "structure", "parameters"))
    if not isinstance(types, dict) or not isinstance(structure, dict) or not structure:
        raise ConfigError(f"{where}: expected types and structure, two objects")
    settings = settings if isinstance(settings, dict) else {}
    if settings.get("route_mappings"):
        raise UnsupportedError(f"{where}: route_mappings, by kinds of input, are not implemented")
    refuse_unknown(settings, ("default_route", "allow_empty_key", "route_mappings"), f"{where}: parameters")
    routes: dict[str, tuple[Step, ...]] = {}
    sizes = set()
    for route, ids in structure.items():
        at, steps = size, []
        for module in ids if isinstance(ids, list) else [ids]:
            kind = str(types.get(module, "")).rpartition(".")[2]
            if not isinstance(module, str) or leaves_folder(module):
                raise ConfigError(f"{where}: {module!r} is not the name of a folder beside it")
            if kind not in STEPS:
                raise UnsupportedError(f"{where}: the module {kind or module!r} is not implemented in a route")
            step, at = STEPS[kind](folder, f"{path}/{module}", at)
            steps.append(step)
        routes[route] = tuple(steps)
        sizes.add(at)
    if len(sizes) > 1:
        raise UnsupportedError(f"{where}: routes to vectors of different sizes: {', '.join(map(str, sorted(sizes)))}")
    default = settings.get("default_route")
    if default is None and settings.get("allow_empty_key", True):
        default = next(iter(routes))
    if default is not None and default not in routes:
        raise ConfigError(f"{where}: default_route {default!r} is not one of {', '.join(routes)}")
    return Router(routes, default), sizes.pop()


def _expect(raw: dict[str, Any], path: str, wanted: dict[str, Any]) -> None:
    for key, value in wanted.items():
        found = raw.get(key)
        if found is not None and found != value:
            raise UnsupportedError(f"{path}: {key} = {found!r} is not implemented here, only {value!r}")
