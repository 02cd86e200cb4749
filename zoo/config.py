"""Config: a frozen dataclass with the field names, and the defaults, of a checkpoint's config.json."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import ConfigError, InputError, UnsupportedError, ZooError

C = TypeVar("C", bound="Config")

# Bounds far above any real model, within which a config cannot exhaust memory.
MAX_INTEGER = 2**31 - 1
MAX_LAYERS = 10_000
MAX_LABELS = 100_000  # labels of a number alone; the largest on the hub has 21,841


@dataclass(frozen=True, kw_only=True)
class Config:
    """The fields of config.json that a model needs.

    Unknown fields are kept in `extra`, so that saving loses nothing; a family's `__post_init__` refuses, through
    `require`, those that would change the result.
    """

    part_classes: ClassVar[Mapping[str, type[Config]]] = {}  # fields that are configs of parts -> their classes
    default_labels: ClassVar[int] = 2  # the number of labels where the file has none
    aliases: ClassVar[Mapping[str, str]] = {}  # another name of a field -> the field (transformers' attribute_map)

    model_type: str = ""
    architectures: tuple[str, ...] = ()
    id2label: dict[int, str] = field(default_factory=lambda: {0: "LABEL_0", 1: "LABEL_1"})
    tie_word_embeddings: bool = True
    extra: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def num_labels(self) -> int:
        return len(self.id2label)

    @property
    def label2id(self) -> dict[str, int]:
        return {label: i for i, label in self.id2label.items()}

    @property
    def is_tied(self) -> bool:
        """True if the output projection shares the word embeddings."""
        return self.tie_word_embeddings

    @property
    def trained_for(self) -> str | None:
        """The task of the checkpoint, where parts of the config say it and not the class."""
        return None

    @property
    def ropes(self) -> tuple[Any, ...]:
        """The kinds of rotary positions (`zoo.rope.Rope`) that its layers have."""
        return ()

    def part(self, kind: type[C]) -> C | None:
        """The config, or that of one of its parts, which is of a class; None if none is."""
        found = (getattr(self, name) for name, cls in self.part_classes.items() if issubclass(cls, kind))
        return self if isinstance(self, kind) else next(found, None)

    def sizes(self) -> dict[str, int]:
        """The fields that are whole numbers, its parts' too, for errors: a tensor's shape contradicts one of them."""
        found = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Config):
                found |= {f"{f.name}.{name}": size for name, size in value.sizes().items()}
            elif f.type in ("int", int):
                found[f.name] = value
        return found

    @classmethod
    def from_dict(cls: type[C], raw: dict[str, Any]) -> C:
        """The config from the object in config.json; ConfigError for a known field of another type.

        Of a field and its alias the alias counts, as in transformers.
        """
        given = {name: raw[alias] for alias, name in cls.aliases.items() if raw.get(alias) is not None}
        raw = {name: value for name, value in raw.items() if name not in cls.aliases} | given
        raw["id2label"] = _labels(raw, cls.default_labels)
        named = raw.get("architectures") or []
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise ConfigError(f"architectures = {named!r}, expected a list of class names")
        raw["architectures"] = tuple(named)
        hints = _hints(cls)
        known = {f.name for f in dataclasses.fields(cls)} - {"extra"}
        values = {k: _check_type(k, v, hints[k]) for k, v in raw.items() if k in known}
        extra = {k: v for k, v in raw.items() if k not in known and k not in ("label2id", "num_labels")}
        return cls(**values, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """The object for config.json, with all fields that were read.

        A field that is None by default and still is has no place in it: transformers takes "head_dim": null for a size.
        """
        fields = [f for f in dataclasses.fields(self) if f.name != "extra"]
        known = {f.name: value for f in fields if (value := getattr(self, f.name)) is not None or f.default is not None}
        known |= {name: part.to_dict() for name, part in known.items() if isinstance(part, Config)}
        known["id2label"] = {str(i): label for i, label in self.id2label.items()}
        known["label2id"] = self.label2id
        known["architectures"] = list(self.architectures)
        return {**self.extra, **known}

    def require(self, **values: Any) -> None:
        """Refuse a checkpoint whose fields, known or not, have other values than these, the only ones implemented."""
        for name, wanted in values.items():
            found = self.extra.get(name, getattr(self, name, wanted))
            if found != wanted:
                raise UnsupportedError(f"{self.model_type}: {name} = {found!r} is not implemented, only {wanted!r} is")

    def positive(self, *names: str) -> None:
        """Refuse sizes that are not in 1 ... 2^31 - 1, and more than 10,000 layers."""
        for name in names:
            value = getattr(self, name)
            most = MAX_LAYERS if "layers" in name else MAX_INTEGER
            if not 1 <= value <= most:
                raise ConfigError(f"{name} = {value} is out of range, expected 1 ... {most}")

    def above_zero(self, *names: str) -> None:
        """Refuse numbers that are not above 0, such as a norm's epsilon; None means not set."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"{name} = {value} is out of range, expected a number above 0")

    def fractions(self, *names: str) -> None:
        """Refuse rates that are not in 0 ... 1 (1 excluded); None means not set."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ConfigError(f"{name} = {value} is out of range, expected 0 or more and less than 1")

    def divides(self, part: str, whole: str) -> None:
        a, b = getattr(self, part), getattr(self, whole)
        if b % a:
            raise ConfigError(f"{part} = {a} does not divide {whole} = {b}")


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """A context whose errors are about a part of a config, the field `name`."""
    try:
        yield
    except ZooError as e:
        raise type(e)(f"{name}: {e}") from None


def read_part(name: str, raw: Any, kind: type[C]) -> C:
    """The config of a part of a model, which is the field `name`."""
    if not isinstance(raw, dict):
        raise ConfigError(f"{name} is {raw!r}, expected the object of its config")
    with errors_of(name):
        return kind.from_dict(raw)


def read_backbone(raw: dict[str, Any], kind: type[C]) -> C:
    """The config of a backbone, of the one kind that is implemented, from the field `backbone_config`."""
    with errors_of("backbone_config"):
        if (found := raw.get("model_type", kind.model_type)) != kind.model_type:
            raise UnsupportedError(f"model_type = {found!r} is not implemented, only {kind.model_type!r} is")
        return kind.from_dict(raw)


@functools.cache
def _hints(cls: type[Config]) -> dict[str, Any]:
    return get_type_hints(cls)


def named_labels(count: int | None, names: Mapping[int, str] | Sequence[str] | None) -> dict[int, str]:
    """id2label for a user's number of labels or their names; InputError where the two disagree."""
    if names is None:
        if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MAX_LABELS:
            raise InputError(f"num_labels is {count!r}, expected 1 ... {MAX_LABELS}")
        return {i: f"LABEL_{i}" for i in range(count)}
    pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
    try:
        found = {int(i): str(name) for i, name in pairs}
    except (TypeError, ValueError):
        raise InputError(f"id2label has a key that is not an integer: {[*names][:5]!r:.200}") from None
    if not found or sorted(found) != list(range(len(found))):
        raise InputError(f"id2label must name every index 0 ... {len(found) - 1} once, found {sorted(found)[:5]}")
    if count not in (None, len(found)):
        raise InputError(f"num_labels is {count}, but id2label has {len(found)} names")
    return dict(sorted(found.items()))


def _labels(raw: dict[str, Any], default: int) -> dict[int, str]:
    """id2label with integer keys 0 ... n - 1, or made from num_labels."""
    labels = raw.get("id2label")
    if labels is None:
        count = raw.get("num_labels", default)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 < count <= MAX_LABELS:
            raise ConfigError(f"num_labels = {count!r} is out of range, expected 1 ... {MAX_LABELS}")
        return {i: f"LABEL_{i}" for i in range(count)}
    if not isinstance(labels, dict):
        raise ConfigError(f"id2label is a {type(labels).__name__}, expected an object of index: name")
    try:
        out = {int(i): str(label) for i, label in labels.items()}
    except ValueError:
        raise ConfigError(f"id2label has a key that is not an integer: {sorted(labels)[:5]}") from None
    gaps = sorted(set(range(len(out))) - set(out))
    if gaps or len(out) != len(labels):
        raise ConfigError(f"id2label must name every index 0 ... {len(labels) - 1} once; missing: {gaps[:5]}")
    count = raw.get("num_labels")
    if count is not None and count != len(out):  # version 4 of transformers goes by the names, version 5 by the number
        raise ConfigError(f"num_labels = {count!r}, but id2label has {len(out)} names: leave num_labels out")
    return dict(sorted(out.items()))


def _check_type(name: str, value: Any, hint: Any) -> Any:
    """`value` if it is of the type that the field `name` declares; JSON's ints count as floats."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for option in options:
        kind = get_origin(option) or option
        if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise ConfigError(f"{name} = {value} is not a finite number")
            return float(value)
        if kind is type(None) and value is None:
            return None
        if kind is list and isinstance(value, list) and not all(_fits(one, *get_args(option)) for one in value):
            continue
        if isinstance(kind, type) and isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
    wanted = " or ".join(str(o) if get_args(o) else getattr(o, "__name__", str(o)) for o in options)
    raise ConfigError(f"{name} = {value!r} has type {type(value).__name__}, expected {wanted}")


def _fits(value: Any, hint: Any = Any) -> bool:
    """True if a value of a list has the type that the list's elements have."""
    try:
        return hint is Any or _check_type("", value, hint) is not ...
    except ConfigError:
        return False
