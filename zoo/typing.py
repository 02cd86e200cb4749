"""Array: what ops take and return; RawTensor: what files hold; the options that many functions pass on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, Literal, NamedTuple, Protocol, TypedDict

import numpy as np


class Array(Protocol):
    """A numpy.ndarray or a torch.Tensor: what the two have in common, and so all that a model may use of them.

    An operator's result is an array of the same library; it is Any here, since to hold NumPy's overloads against a
    recursive protocol takes a type checker minutes.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    def reshape(self, *shape: Any) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int | slice | EllipsisType | tuple[Any, ...] | None, /) -> Any: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    # Of an array these two are arrays too, and no bool.
    def __eq__(self, other: Any, /) -> Any: ...
    def __ne__(self, other: Any, /) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __floordiv__(self, other: Any, /) -> Any: ...
    def __mod__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __and__(self, other: Any, /) -> Any: ...
    def __or__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


class RawTensor(NamedTuple):
    """A tensor as its file has it.

    `array` is a read-only view of the file where the format permits it.  `dtype` is the safetensors name of the
    element type ("F32", "F16", "BF16", "I64", ...).  NumPy has no bfloat16, so a BF16 array comes as uint16.
    """

    array: np.ndarray
    dtype: str


class HubOptions(TypedDict, total=False):
    """Where files are looked for: see `zoo.load`."""

    revision: str | None
    local_files_only: bool
    cache_dir: str | os.PathLike[str] | None
    token: str | bool | None
    lock: str | os.PathLike[str] | None


class ModelOptions(HubOptions, total=False):
    """Of `from_pretrained`: see `zoo.checkpoint.load.load_model`."""

    device: str | None
    dtype: str | None
    weights: Literal["int8", "int4"] | None
    strict: bool
    trainable: bool
    new_head: bool
    num_labels: int | None
    id2label: Mapping[int, str] | Sequence[str] | None
    seed: int
    adapter: str | os.PathLike[str] | None


class LoadOptions(HubOptions, total=False):
    """Of `zoo.load`, but for the task."""

    device: str | None
    dtype: str | None
    weights: Literal["int8", "int4"] | None
    trainable: bool
    new_head: bool
    num_labels: int | None
    id2label: Mapping[int, str] | Sequence[str] | None
    seed: int
    adapter: str | os.PathLike[str] | None
    graphs: bool | None


class GenerationOptions(TypedDict, total=False):
    """The fields of `zoo.generate.GenerationConfig` that a call may say anew, but for num_return_sequences."""

    max_new_tokens: int | None
    max_length: int | None
    min_new_tokens: int | None
    min_length: int
    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    min_p: float | None
    seed: int | None
    num_beams: int
    length_penalty: float
    early_stopping: bool | str
    repetition_penalty: float
    no_repeat_ngram_size: int
    stop_strings: str | Sequence[str]
    eos_token_id: int | Sequence[int]
    bos_token_id: int | None
    pad_token_id: int | None
    decoder_start_token_id: int | None
