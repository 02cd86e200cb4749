"""Pretrained: the base of models, which are built from a checkpoint and saved as one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from . import ops
from .config import Config, named_labels
from .devices import AUTO, placement, resolve_device
from .errors import (
    ConfigError,
    InputError,
    UnsupportedError,
    UnusedWeightError,
    ZooError,
    list_names,
    nearest,
    quantity,
)
from .nn import an_array, leaves, release_folded
from .options import DEFAULTS, MODEL, PLACE, Options
from .quant import QUANT_TYPES
from .registry import FAMILIES, architecture_of
from .runner import Runner, suggest_engine
from .trainable import Trainable, make_trainable
from .typing import Array, GraphMethod, RawTensor
from .warning import warn
from .weights import (
    QUANT_CHOICES,
    GraphSource,
    NameMap,
    NewHead,
    QuantChoice,
    Random,
    Reader,
    RenamedSource,
    Report,
    Source,
    Weights,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .checkpoint.files import Checkpoint
    from .keywords import ModelOptions

M = TypeVar("M", bound="Pretrained")
R = TypeVar("R")
DTYPES = ("float32", "float64", "float16", "bfloat16")  # the 16-bit ones on torch
# Smaller weights are searched for NaN and infinity while loading, at 0.25 s a GiB; larger ones are mapped only as used.
CHECKED_BYTES = 1 << 30


class _Itself:
    """A bare model is its own base model; a class with a head sets an attribute."""

    def __get__(self, model: Any, of: type | None = None) -> Any:
        return model


class Pretrained(Trainable):
    """The base of every class that a checkpoint's `architectures` can name.

    A subclass has a constructor `(w: Weights, cfg)` that pulls its weights, and a NameMap of its family's names.
    """

    config_class: ClassVar[type[Config]]
    name_map: ClassVar[NameMap]
    is_base_model: ClassVar[bool] = False  # True for a model without a head, whose tensors have no prefix
    tied: ClassVar[Mapping[str, str]] = {}  # canonical name -> the name whose array it shares
    # Patterns of canonical names of tensors that transformers' class has, too, and that no computation needs: they are
    # saved as they were read.
    only_saved: ClassVar[tuple[str, ...]] = ()
    keep_16bit: ClassVar[bool] = False  # True: on NumPy 16-bit matrices are widened only in use
    parts: ClassVar[tuple[str, ...]] = ()  # attributes: the models that read `forward`'s records, in their order
    record: ClassVar[type | None] = None  # what `forward` takes, where it takes one

    config: Any
    base_model: Any = _Itself()  # the model without its head
    runner: Runner = Runner()  # runs `forward` on checked inputs
    graphs: bool = True  # False: tasks do not launch it with CUDA graphs
    report: Report
    _only_saved: Mapping[str, RawTensor] = {}  # name of a tensor -> itself
    _copies: dict[str, list[str]]  # name of a tensor -> other names in the checkpoint with the same content

    def __init__(self, w: Weights, cfg: Any):
        raise NotImplementedError

    @property
    def architecture(self) -> str:
        """The name of its class in config.json and in transformers: "BertForMaskedLM"."""
        return architecture_of(type(self), self.config.model_type)

    @property
    def depends_on_length(self) -> bool:
        """True if a text's length, padding included, changes its outputs: by the frequencies of its positions."""
        return any(rope.depends_on_length for rope in self.config.ropes)

    @property
    def like(self) -> Array:
        """An array with the dtype and the device of what is computed."""
        return an_array(self)

    @property
    def readers(self) -> list[Any]:
        """The models that check the inputs: its parts, or itself."""
        return [getattr(self, name) for name in self.parts] or [self]

    def records(self, *args: Any, **given: Any) -> tuple[Any, ...]:
        """The arguments of a call, checked and placed beside the weights, as `forward` takes them."""
        raise NotImplementedError

    def example(
        self,
        seed: int = 0,
        *,
        rows: int = 2,
        length: int = 7,
        size: tuple[int, int] = (96, 128),
        padded: bool = False,
    ) -> dict[str, Any]:
        """Random arguments of a call, for tracing, tests and proofs.

        length: tokens of the longest text.  size: height and width of images, where the model takes any.
        padded: later rows are shorter, and images end before their edges.
        """
        raise NotImplementedError

    def graph_methods(self, seed: int = 0, **sizes: Any) -> list[GraphMethod]:
        """The methods that engines run as graphs, with random inputs; seed, sizes: as for `example`."""
        model: Any = self
        return [GraphMethod("model", model.forward, self.records(**self.example(seed, **sizes)))]

    @property
    def step_decoder(self) -> Any:
        """The decoder whose steps are graphs beside those of `graph_methods`, if there is one."""
        return None

    def reader(self, kind: type[R]) -> R:
        """The last of its `readers` that is of a kind: `TextModel`, `ImageModel`, ..."""
        return next(one for one in reversed(self.readers) if isinstance(one, kind))

    def refuse(self, name: str, taken: Sequence[str], is_known: bool = True) -> NoReturn:
        """Raise InputError for an argument that the class does not take; is_known: other classes do."""
        guess = "" if is_known else nearest(name, taken)
        raise InputError(f"{self.architecture} takes no {name}, only {', '.join(taken)}{guess}")

    @classmethod
    def ties(cls, config: Config) -> dict[str, str]:
        """Canonical name -> the name whose array it shares, where the file has one of the two or both are equal.

        `tie_word_embeddings` is about the heads' matrices: a head's two biases, and the words of encoder and decoder,
        were one array in every version before 5 of transformers, whatever the config says.
        """
        alone = (".bias", "coder.embed_tokens.weight")
        return {name: owner for name, owner in cls.tied.items() if config.is_tied or name.endswith(alone)}

    @classmethod
    def from_source(
        cls: type[M],
        source: Source | Random,
        config: Config,
        options: Options = DEFAULTS,
        **more: Unpack[ModelOptions],
    ) -> M:
        """The model with weights from `source`; options of `zoo.load` on placing and training."""
        options = options.update(more, PLACE)
        dtype, device, weights, trainable = options.dtype, options.device, options.weights, options.trainable
        if dtype is not None and not isinstance(dtype, str):
            raise UnsupportedError(f"dtype is {dtype!r}, expected a name: {', '.join(map(repr, DTYPES))}")
        named = RenamedSource(source, cls.name_map, is_base_model=cls.is_base_model, tied=cls.ties(config))
        if not config.is_tied:  # version 5 of transformers wants both names in a file
            named.copy_tied()
        if device == AUTO:  # an engine that computes in float32 would take four times the memory of 16-bit matrices
            kept = _has_16bit(named) and cls.keep_16bit and weights is None
            device = resolve_device(AUTO, "torch" if trainable else dtype or ("as stored" if kept else None))
        where = placement(device, trainable=trainable)
        engine = where.engine
        of_engine = None
        if engine is not None and dtype is not None:  # the arrays stay as they are: the engine converts them
            engine.check(str(device), dtype)
            of_engine, dtype = dtype, "float32" if dtype == "float32" else None
        choice = _choice(weights, named)
        if choice is not None and trainable:
            raise UnsupportedError(
                f"weights={weights!r} rounds the matrices, and trainable=True needs them in full precision: choose one"
            )
        # A dtype of 16 bits is that of activations, beside quantised matrices; a wider one widens the matrices too.
        keep_quantised = not trainable and (choice is not None or dtype in (None, "float16", "bfloat16"))
        if engine is None and isinstance(source, GraphSource):
            raise UnsupportedError(f"{source.files[0].parent} holds ONNX graphs: load it with device={source.device!r}")
        if not where.is_numpy and dtype is None:
            dtype = "float32" if trainable else _one_dtype(named)
        if where.device == "cpu" and source.files:
            from .weights.memory import check_fits

            wanted = weights if choice is not None else dtype
            check_fits(source, wanted, where.is_numpy and not cls.keep_16bit, getattr(config, "vocab_size", None))
        head = NewHead(cls.name_map.prefix, _deviation(config), options.seed) if options.new_head else None
        reader = Reader(
            named,
            where.backend,
            dtype=dtype,
            device=where.device,
            sizes=config.sizes(),
            keep_16bit=cls.keep_16bit and where.is_numpy and dtype is None,
            keep_quantised=keep_quantised,
            keep_order=engine is not None,
            choice=None if engine is not None and weights in engine.QUANTISES else choice,
            fuse=not trainable,
            new_head=head,
            # Where nothing is tied, transformers has what ties begin at, too, and may compute with the rest alone.
            only_saved=(*cls.only_saved, *(f"^{re.escape(owner)}$" for owner in dict.fromkeys(cls.tied.values()))),
        )
        with ops.memory_budget(sum(path.stat().st_size for path in source.files)):
            model = cls(Weights(reader), config)
        model.report = reader.report()
        parameters = list(leaves(model))
        model._parts = dict(zip((path for path, _ in parameters), reader.reads.parts_of(parameters), strict=True))
        model._copies = named.copies
        model._only_saved = reader.read_only_saved()
        if trainable:
            make_trainable(model)
        if engine is not None:
            engine.attach(model, str(device), source.files, weights, of_engine)
        elif options.device is None and where.is_numpy and source.files:
            suggest_engine(model)
        return model

    @classmethod
    def from_config(cls: type[M], config: Config, seed: int = 0, **options: Any) -> M:
        """The model with random weights: for tests and benchmarks."""
        return cls.from_source(Random(seed), config, **options)

    @classmethod
    def from_pretrained(cls: type[M], name_or_folder: str | os.PathLike[str], **options: Unpack[ModelOptions]) -> M:
        """The model with the weights of a hub repository or a folder; arguments as for `zoo.load_model`."""
        from .checkpoint.config_file import read_config
        from .hub import find

        loading = DEFAULTS.update(options, MODEL)
        checkpoint = find(name_or_folder, loading)
        config = read_config(checkpoint.contents, cls._config_class)
        return cls.from_checkpoint(checkpoint, config, loading)

    @classmethod
    def from_checkpoint(
        cls: type[M],
        checkpoint: Checkpoint,
        config: Config,
        options: Options = DEFAULTS,
    ) -> M:
        """The model of a checkpoint whose files are on this machine; options as for `zoo.load_model`."""
        from .weights.adapter import Adapter
        from .weights.files import non_finite
        from .weights.quantised_source import as_quantised_source
        from .weights.stacked_experts import separate_experts

        own = config.part(cls.config_class)
        if own is None:
            raise UnsupportedError(
                f"{checkpoint.name} is a {config.model_type} checkpoint, and {cls.__name__} is not of that family"
            )
        config = own
        adapter = None
        if options.adapter is not None:
            from .hub import find_adapter

            adapter = Adapter(find_adapter(options.adapter, options.lock))
        if options.num_labels is not None or options.id2label is not None:
            config = replace(config, id2label=named_labels(options.num_labels, options.id2label))
            options = replace(options, new_head=True)
        elif adapter is not None and (labels := adapter.labels()) is not None:
            config = replace(config, id2label=named_labels(None, labels))
        source = checkpoint.open_weights()
        try:
            source = as_quantised_source(source, config.extra)
            source = separate_experts(source) if cls.name_map.stacks_experts else source
            adapted = source
            if adapter is not None:
                ties = cls.ties(config)
                named = RenamedSource(source, cls.name_map, is_base_model=cls.is_base_model, tied=ties)
                adapted = adapter.on(named)
                adapted.check_vocabulary(getattr(config, "vocab_size", None))
                if adapted.unties and type(config).is_tied is Config.is_tied:
                    config = replace(config, tie_word_embeddings=False)
            model = cls.from_source(adapted, config, options)
        except ZooError as e:
            if e.argument is not None:  # the caller's, not the checkpoint's
                raise
            saved_as = ", ".join(config.architectures) or "nothing in particular"
            read_as = architecture_of(cls, config.model_type)
            raise type(e)(f"{checkpoint.name}, read as {read_as} (config.json says {saved_as}): {e}") from None
        model.report = replace(model.report, fingerprint=checkpoint.fingerprint)
        if sum(path.stat().st_size for path in source.files) <= CHECKED_BYTES:
            names = [part.name for parts in model._parts.values() for part in parts]
            there = dict.fromkeys(name for name in names if name in source)
            bad = non_finite(source, there, stays=model.runner.computes_with_arrays)
            if bad:
                warn(f"{checkpoint.name} has NaN or infinity in {list_names(bad, 5)}")
        release_folded(model)
        if options.graphs is False:
            model.graphs = False
        if model.report.new:
            warn(f"{checkpoint.name} has no {list_names(model.report.new, 5)}: drawn at random, to be trained")
        if model.report.unused:
            names = model.report.unused
            text = f"{checkpoint.name} has {quantity(len(names), 'tensor')} that {model.architecture} does not know: "
            text += list_names(names, 5)
            if options.strict:
                raise UnusedWeightError(text)
            warn(text)
        return model

    @classmethod
    def _config_class(cls, model_type: Any) -> type[Config]:
        """The config class for a model_type: this class's own, a subclass of it whose classes these are too (XLM-R's is
        one of RoBERTa's), or that of a model which this class is a part of.
        """
        found = [cls.config_class]
        for one in found:
            if one.model_type == model_type and cls._serves(model_type):
                return one
            found += one.__subclasses__()
        whole = FAMILIES[model_type].load("Config") if model_type in FAMILIES else Config
        if any(issubclass(part, cls.config_class) for part in whole.part_classes.values()):
            return whole
        raise UnsupportedError(f"model_type is {model_type!r}, and {cls.__name__} is not of that family")

    @classmethod
    def _serves(cls, model_type: str) -> bool:
        """False for a family of another folder that does not borrow this class (ELECTRA for BERT's classes, but not
        Mistral for Llama's), though its config inherits theirs.
        """
        own, other = (FAMILIES.get(name) for name in (cls.config_class.model_type, model_type))
        if own is None or other is None or own.module == other.module:
            return True
        return bool(other.classes) and any(other.load(head) is cls for head in other.heads)


def _deviation(config: Config) -> float:
    """The standard deviation of a new head's weights: initializer_range, or transformers' default."""
    fields = {**config.extra, **vars(config)}
    found = fields.get("initializer_range", fields.get("init_std", 0.02))
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 100:
        raise ConfigError(f"initializer_range = {found!r} is out of range, expected 0 or more and less than 100")
    return float(found)


def _choice(weights: str | None, named: RenamedSource) -> QuantChoice | None:
    """The types that matrices are quantised to; UnsupportedError if the checkpoint is quantised to others."""
    if weights is None:
        return None
    if not isinstance(weights, str) or weights not in QUANT_CHOICES:
        expected = " or ".join(map(repr, QUANT_CHOICES))
        raise UnsupportedError(
            f"weights={weights!r} is not supported, expected {expected}{nearest(str(weights), QUANT_CHOICES)}"
        )
    choice = QUANT_CHOICES[weights]
    found = {
        kind for name in named.names() if (kind := named.dtype(name)) in QUANT_TYPES and not QUANT_TYPES[kind].is_plain
    }
    if found and not choice.matrices in found <= set(choice):
        raise UnsupportedError(
            f"weights={weights!r} quantises floating-point weights, and the checkpoint is quantised already, "
            f"to {', '.join(sorted(found))}: leave the option out"
        )
    return choice


def _has_16bit(named: RenamedSource) -> bool:
    """True if matrices have 16-bit numbers, and none is quantised."""
    found = {named.dtype(name) for name in named.names()}
    return not found.isdisjoint(("F16", "BF16")) and all(
        QUANT_TYPES[kind].is_plain for kind in found & QUANT_TYPES.keys()
    )


def _one_dtype(named: RenamedSource) -> str:
    """The element type of a checkpoint, or float32 if it has several: torch multiplies no two types."""
    names = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
    found = {named.dtype(name) for name in named.names()} & names.keys()
    return names[found.pop()] if len(found) == 1 else "float32"
