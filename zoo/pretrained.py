"""Pretrained: a model that comes from a checkpoint, and can be written back as one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from . import ops
from .config import Config
from .devices import placement
from .errors import ConfigError, UnsupportedError, UnusedWeightError, ZooError, nearest
from .nn import an_array, leaves, release_folded
from .options import DEFAULTS, Options
from .quant import QUANT_TYPES
from .runner import Runner
from .trainable import Trainable, make_trainable
from .typing import Array
from .warning import warn
from .weights import CHOICES, Choice, NameMap, NewHead, Part, Random, Reader, RenamedSource, Report, Source, Weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .checkpoint.files import Checkpoint
    from .options import LoadOptions
    from .weights.adapter import Adapter

M = TypeVar("M", bound="Pretrained")
DTYPES = ("float32", "float64", "float16", "bfloat16")  # the 16-bit ones on torch
# Weights up to this size are searched for NaN and infinity when they are loaded, at a quarter of a second a GiB; larger
# ones are left to be mapped as they are used.
CHECKED_BYTES = 1 << 30


class _Itself:
    """Of a bare model the model; one with a head has an attribute of its own in this place."""

    def __get__(self, model: Any, of: type | None = None) -> Any:
        return model


class Pretrained(Trainable):
    """The base of every class that a checkpoint's `architectures` can name.

    A subclass has a constructor `(w: Weights, cfg)` that pulls its weights, and says how its family names them.
    """

    config_class: ClassVar[type[Config]]
    name_map: ClassVar[NameMap]
    is_base_model: ClassVar[bool] = False  # a bare model, whose tensors have no prefix
    tied: ClassVar[Mapping[str, str]] = {}  # canonical name -> the one that it shares its array with
    keep_16bit: ClassVar[bool] = False  # whether, on NumPy, matrices of 16-bit numbers are widened only in use
    depends_on_length = False  # whether the length of a text, padding too, changes what its tokens give

    config: Any
    base_model: Any = _Itself()  # the model without its head
    runner: Runner = Runner()  # what runs `forward` of what has passed the door
    report: Report
    _parts: dict[str, list[Part]]  # path of a parameter -> the checkpoint's tensors that it was made of
    _copies: dict[str, list[str]]  # name of a tensor -> others that the checkpoint holds with the same content

    def __init__(self, w: Weights, cfg: Any):
        raise NotImplementedError

    @property
    def like(self) -> Array:
        """An array beside which inputs are placed, of the dtype of what is computed."""
        return an_array(self)

    @classmethod
    def from_source(
        cls: type[M],
        source: Source | Random,
        config: Config,
        options: Options = DEFAULTS,
        **more: Unpack[LoadOptions],
    ) -> M:
        """The model with weights from `source`; of the options of `zoo.load` those on placing and training."""
        options = options.update(more)
        dtype, device, weights, trainable = options.dtype, options.device, options.weights, options.trainable
        if dtype is not None and not isinstance(dtype, str):
            raise UnsupportedError(f"dtype is {dtype!r}, expected a name: {', '.join(map(repr, DTYPES))}")
        where = placement(device, trainable=trainable)
        engine = where.engine
        if engine is not None and dtype not in (None, "float32"):
            raise UnsupportedError(f"device {device!r} computes in float32, and dtype is {dtype!r}")
        # An untied projection still shares its bias with the head where the file has only one of the two.
        tied = {t: o for t, o in cls.tied.items() if config.tied or t.endswith(".bias")}
        named = RenamedSource(source, cls.name_map, is_base_model=cls.is_base_model, tied=tied)
        choice = _choice(weights, named)
        if choice is not None and trainable:
            raise UnsupportedError(
                f"weights={weights!r} are rounded numbers, which trainable=True cannot change: choose one"
            )
        # A type of 16 bits is that of what is computed beside packed matrices; a wider one is that of them, too.
        keep_quantised = not trainable and (choice is not None or dtype in (None, "float16", "bfloat16"))
        if engine is None and (needed := getattr(source, "device", None)):
            raise UnsupportedError(f"{source.files[0].parent} holds graphs, which device={needed!r} runs")
        if not where.is_numpy and dtype is None:
            dtype = "float32" if trainable else _one_dtype(named)
        head = NewHead(cls.name_map.prefix, _deviation(config), options.seed) if options.new_head else None
        reader = Reader(
            named,
            where.backend,
            dtype=dtype,
            device=where.device,
            sizes=config.sizes(),
            keep_16bit=cls.keep_16bit and where.is_numpy and dtype is None,
            keep_quantised=keep_quantised,
            choice=None if engine is not None and weights in engine.QUANTISES else choice,
            fuse=not trainable,
            new_head=head,
        )
        with ops.allowance(sum(path.stat().st_size for path in source.files)):
            model = cls(Weights(reader), config)
        model.report = reader.report()
        paths, arrays = zip(*leaves(model), strict=True)
        model._parts = dict(zip(paths, reader.reads.parts_of(arrays), strict=True))
        model._copies = named.copies
        if trainable:
            make_trainable(model)
        if engine is not None:
            engine.attach(model, str(device), source.files, weights)
        return model

    @classmethod
    def from_config(cls: type[M], config: Config, seed: int = 0, **options: Any) -> M:
        """The model with random weights: for tests and benchmarks."""
        return cls.from_source(Random(seed), config, **options)

    @classmethod
    def from_pretrained(cls: type[M], name_or_folder: str | os.PathLike[str], **options: Unpack[LoadOptions]) -> M:
        """The model with the weights of a hub repository or a folder; arguments as for `zoo.load_model`."""
        from .checkpoint.config_file import read_config
        from .lock import find

        loading = DEFAULTS.update(options)
        checkpoint = find(name_or_folder, loading)
        config = read_config(checkpoint.contents, cls._config_class)
        return cls.from_checkpoint(checkpoint, config, loading)

    @classmethod
    def from_checkpoint(
        cls: type[M],
        checkpoint: Checkpoint,
        config: Config,
        options: Options = DEFAULTS,
        *,
        adapter: Adapter | None = None,
    ) -> M:
        """The model of a checkpoint whose files are on this machine, with an adapter's changes to its weights."""
        from .weights.files import non_finite
        from .weights.quantised_source import as_quantised

        if not isinstance(config, cls.config_class):
            raise UnsupportedError(
                f"{checkpoint.name} is a {config.model_type} checkpoint, and {cls.__name__} is not of that family"
            )
        source = checkpoint.open_weights()
        try:
            source = as_quantised(source, config.extra)
            adapted = source if adapter is None else adapter.on(source, cls.name_map)
            model = cls.from_source(adapted, config, options)
        except ZooError as e:
            saved_as = ", ".join(config.architectures) or "nothing in particular"
            raise type(e)(f"{checkpoint.name}, read as {cls.__name__} (config.json says {saved_as}): {e}") from None
        model.report = replace(model.report, fingerprint=checkpoint.fingerprint)
        if sum(path.stat().st_size for path in source.files) <= CHECKED_BYTES:
            bad = non_finite(source, dict.fromkeys(n for n in _names(model) if n in source))
            if bad:
                warn(f"{checkpoint.name} holds NaN or infinity in {_listed(bad)}")
        release_folded(model)
        if model.report.new:
            warn(f"{checkpoint.name} holds no {_listed(model.report.new)}: drawn at random, to be trained")
        if model.report.unused:
            names = model.report.unused
            text = f"{checkpoint.name} holds {len(names)} tensors that {cls.__name__} does not know: {_listed(names)}"
            if options.strict:
                raise UnusedWeightError(text)
            warn(text)
        return model

    @classmethod
    def _config_class(cls, model_type: Any) -> type[Config]:
        """The class for a config.json: the family's own, or that of a family which is one of its kind."""
        found = [cls.config_class]
        for one in found:
            if one.model_type == model_type:
                return one
            found += one.__subclasses__()
        raise UnsupportedError(f"model_type is {model_type!r}, and {cls.__name__} is not of that family")


def _names(model: Pretrained) -> list[str]:
    """Of all tensors that a model was made of."""
    return [part.name for parts in model._parts.values() for part in parts]


def _deviation(config: Config) -> float:
    """Of a new head's weights: what the family calls it, and transformers' default."""
    fields = {**config.extra, **vars(config)}
    found = fields.get("initializer_range", fields.get("init_std", 0.02))
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 100:
        raise ConfigError(f"initializer_range = {found!r} is not a deviation")
    return float(found)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _choice(weights: str | None, named: RenamedSource) -> Choice | None:
    """What matrices are quantised to, of a checkpoint that is not, or is already so."""
    if weights is None:
        return None
    if not isinstance(weights, str) or weights not in CHOICES:
        expected = " or ".join(map(repr, CHOICES))
        raise UnsupportedError(
            f"weights={weights!r} is not supported, expected {expected}{nearest(str(weights), CHOICES)}"
        )
    choice = CHOICES[weights]
    found = {
        kind for name in named.names() if (kind := named.dtype(name)) in QUANT_TYPES and not QUANT_TYPES[kind].plain
    }
    if found and not choice.matrices in found <= set(choice):
        raise UnsupportedError(
            f"weights={weights!r} quantises numbers of floating point, and the checkpoint is quantised already: "
            f"to {', '.join(sorted(found))}"
        )
    return choice


def _one_dtype(named: RenamedSource) -> str:
    """The element type of a checkpoint, float32 where it has several: torch multiplies no two kinds."""
    names = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
    found = {named.dtype(name) for name in named.names()} & names.keys()
    return names[found.pop()] if len(found) == 1 else "float32"
