"""The types Array (of ops), RawTensor (of files), RecordField and GraphMethod (of inputs), and GenerationOptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np


class Array(Protocol):
    """A numpy.ndarray or a torch.Tensor, with the methods that both have: models use no others.

    An operator's result is an array of the same library; it is Any here, since a type checker needs minutes to match
    NumPy's overloads with a recursive protocol.
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
    # The results of these two are arrays, not bool.
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
    """A tensor in its file's element type.

    `array` is a read-only view of the file where the format permits it.  `dtype` is the safetensors name of the
    element type ("F32", "F16", "BF16", "I64", ...).  NumPy has no bfloat16, so a BF16 array comes as uint16.
    """

    array: np.ndarray
    dtype: str


# A record is a named tuple of checked arrays, which a model's `forward` takes.  Its class has `fields`: where its
# arrays are, by which names users give them, and what their axes are called.


class RecordField(NamedTuple):
    """An array of a record."""

    path: str  # in the record
    name: str  # of the argument, as Hugging Face has it
    dims: tuple[str, ...]  # in the letters of the record's shape legend; in small letters where the length is fixed
    dtype: str
    fill: int = 0  # the default if the field is None


class GraphMethod(NamedTuple):
    """A method of a model that is a graph by itself, with random inputs to trace it with."""

    file: str  # of an export, without its suffix
    method: Callable[..., Any]
    records: tuple[Any, ...]
    output: str = "logits"  # the name of its output, if it is one array


class GenerationOptions(TypedDict, total=False):
    """The fields of `zoo.generate.GenerationConfig` that a call may set, without num_return_sequences."""

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
    forced_bos_token_id: int | None
    forced_eos_token_id: int | Sequence[int]
    suppress_tokens: Sequence[int]
    begin_suppress_tokens: Sequence[int]
    bad_words_ids: Sequence[Sequence[int]]
    prompt_lookup_num_tokens: int | None
    max_matching_ngram_size: int | None
    assistant_model: Any
    num_assistant_tokens: int
    assistant_confidence_threshold: float
    stop_strings: str | Sequence[str]
    eos_token_id: int | Sequence[int]
    bos_token_id: int | None
    pad_token_id: int | None
    decoder_start_token_id: int | None
