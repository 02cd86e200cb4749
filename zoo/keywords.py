"""Keyword arguments for type checkers, written from dataclasses by `python -m checks.signatures`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict


class HubOptions(TypedDict, total=False):
    """The options of finding files."""

    revision: str | None
    local_files_only: bool
    cache_dir: str | os.PathLike[str] | None
    token: str | bool | None


class FindOptions(HubOptions, total=False):
    """The options of finding files that a lock may name."""

    lock: str | os.PathLike[str] | None


class ModelOptions(FindOptions, total=False):
    """The options of a model without a task."""

    mmproj: str | os.PathLike[str] | None
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


class LoadOptions(ModelOptions, total=False):
    """All of `zoo.options.Options`."""

    graphs: bool | None


class GenerationOptions(TypedDict, total=False):
    """The fields of `zoo.generate.GenerationConfig` that a call may set."""

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
    frequency_penalty: float
    presence_penalty: float
    logit_bias: Mapping[int, float]
    no_repeat_ngram_size: int
    forced_bos_token_id: int | None
    forced_eos_token_id: int | Sequence[int]
    suppress_tokens: int | Sequence[int]
    begin_suppress_tokens: int | Sequence[int]
    bad_words_ids: Sequence[Sequence[int]]
    prompt_lookup_num_tokens: int | None
    max_matching_ngram_size: int | None
    assistant_model: Any
    num_assistant_tokens: int
    assistant_confidence_threshold: float
    stop_strings: str | Sequence[str]
    skip_special_tokens: bool
    table_tags: Any
    eos_token_id: int | Sequence[int]
    bos_token_id: int | None
    pad_token_id: int | None
    decoder_start_token_id: int | None
