"""MultiVectorEncoder: lengths, markers, expansion, projection and skipped words of encoders to a vector for each token.

ColBERT: Khattab & Zaharia 2020, https://arxiv.org/abs/2004.12832.  Three layouts have it: sentence-transformers', whose
modules.json names every step; PyLate's, whose settings are in config_sentence_transformers.json and whose last steps
are implied; and that of ColBERT's own library, with the projection beside the model and settings in artifact.metadata.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ..errors import CheckpointError, ConfigError, UnsupportedError
from ..files.folder import CheckpointFolder
from ..nn import Linear
from .modules import (
    LENGTHS,
    MODULES,
    MULTI_VECTOR,
    SETTINGS,
    STANFORD,
    EncoderSettings,
    count_in,
    is_pylate,
    read_settings,
    read_transformer,
    refuse_unknown,
)
from .sentence_encoder import Step, dense, inside, normalize, tensors_of

if TYPE_CHECKING:
    from ..weights import Source

METADATA = "artifact.metadata"
PROJECTION = "linear.weight"
TOKENS = "token_embeddings"
SIMILARITIES = ("maxsim", "meanmaxsim", "MaxSim", "cosine", "dot")  # the last two give MaxSim, as in PyLate
# PyLate's own settings.
PYLATE = (
    *("query_prefix", "document_prefix", "skiplist_words", *LENGTHS),
    *("do_query_expansion", "attend_to_expansion_tokens", "attend_to_mask_tokens"),
)
QUERY_LENGTH = 32  # tokens of a query, unless a file has another number


@dataclass(frozen=True)
class Expansion:
    """Mask tokens that fill up a query."""

    length: int
    attended: bool = False  # True if the other tokens see them
    token: str | None = None  # None: the mask token, or else the end of text
    is_fixed: bool = True  # True if longer queries are cut to the length


@dataclass(frozen=True)
class MultiVectorEncoder:
    """The steps on a text before the model, and on its tokens' states after it."""

    steps: tuple[Step, ...]  # hidden states (B, T, D) -> (B, T, E)
    size: int  # E
    expansion: Expansion | None = None
    lengths: dict[str, int] = field(default_factory=dict)  # "query" and "document" -> tokens at most
    markers: tuple[str, ...] = ()  # beginnings of prompts that are tokens, whatever the tokenizer would make of them
    skipped: tuple[str, ...] = ()  # words that documents have no vectors for
    skipping: tuple[str, ...] = ("document",)  # the tasks with skipped words
    similarity: str = "maxsim"
    max_tokens: int | None = None
    lower_case: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    files: tuple[str, ...] = ()  # the files that it was read from, relative to the folder


def read_multi_vector_encoder(
    folder: CheckpointFolder, hidden_size: int, modules: Sequence[tuple[str, str]]
) -> MultiVectorEncoder:
    """The steps of a checkpoint with a modules.json: sentence-transformers' layout, or PyLate's."""
    settings, files = read_transformer(folder, refused=("processing_kwargs",))
    shared = read_settings(folder, MULTI_VECTOR, SIMILARITIES, PYLATE)
    pylate = is_pylate(shared.raw)
    files = [MODULES, *files, *shared.files]
    steps: list[Step] = []
    size, mask = hidden_size, {}
    for i, (kind, path) in enumerate(modules):
        name = f"{path}/config.json"
        if kind == "Transformer" and i == 0 and not path:
            continue
        if kind == "Dense":
            step, size = dense(folder, path, size, TOKENS)
            steps.append(step)
        elif kind == "Normalize" and not pylate:
            given = folder.json(name) if folder.has(name) else {}
            if given.get("module_output_name", TOKENS) != TOKENS:
                raise UnsupportedError(f"{folder.where(name)}: {given!r:.200} is not implemented, only {TOKENS}")
            if given.get("module_input_name") == TOKENS:  # else it is of the one vector of a text, which is not there
                steps.append(normalize)
        elif kind == "MultiVectorMask" and not pylate:
            mask = folder.json(name)
            refuse_unknown(mask, ("skiplist_words", "skiplist_tasks", "keep_only_token_ids"), folder.where(name))
            if mask.get("keep_only_token_ids"):
                raise UnsupportedError(f"{folder.where(name)}: keep_only_token_ids is not implemented")
        else:
            raise UnsupportedError(f"{folder.where(MODULES)}: the module {kind!r} is not implemented at its place")
        files += inside(folder, path)
    if pylate:
        steps.append(normalize)
        mask = {"skiplist_words": shared.raw.get("skiplist_words", list(string.punctuation))}
    tasks = mask.get("skiplist_tasks") or ["document"]
    markers = _markers(shared.raw) if pylate else {}
    where = folder.where(SETTINGS)
    length = {} if pylate else settings.raw
    raw = {**shared.raw, **{key: value for key, value in length.items() if value is not None}}
    return MultiVectorEncoder(
        steps=tuple(steps),
        size=size,
        expansion=_expansion(raw, where, pylate),
        lengths=_lengths(raw, where),
        markers=tuple(markers.values()),
        skipped=_words(mask.get("skiplist_words") or [], where),
        skipping=_words([tasks] if isinstance(tasks, str) else tasks, where),
        similarity="meanmaxsim" if shared.similarity == "meanmaxsim" else "maxsim",
        max_tokens=settings.max_tokens,
        lower_case=settings.lower_case,
        prompts=_prompts(shared, markers),
        default_prompt=shared.default_prompt,
        files=tuple(files),
    )


def read_stanford(folder: CheckpointFolder, source: Source, hidden_size: int) -> MultiVectorEncoder:
    """The steps of a checkpoint of ColBERT's own library, whose projection is one of the tensors of `source`."""
    raw = folder.json(METADATA) if folder.has(METADATA) else {}
    where = folder.where(METADATA)
    if PROJECTION not in source:
        raise CheckpointError(f"{folder} has no {PROJECTION}, the projection of a {STANFORD} checkpoint")
    size = source.shape(PROJECTION)[0]
    project = Linear(tensors_of(source)[0] / "linear", hidden_size, size, bias=False)
    markers = {
        "query": f"{raw.get('query_token_id') or '[unused0]'} ",
        "document": f"{raw.get('doc_token_id') or '[unused1]'} ",
    }
    length = count_in(raw, "query_maxlen", where) or QUERY_LENGTH
    longest = count_in(raw, "doc_maxlen", where)
    return MultiVectorEncoder(
        steps=(cast(Step, project), normalize),
        size=size,
        expansion=Expansion(length, bool(raw.get("attend_to_mask_tokens"))),
        lengths={} if longest is None else {"document": longest},
        markers=tuple(markers.values()),
        skipped=tuple(string.punctuation) if raw.get("mask_punctuation", True) else (),
        prompts=markers,
        files=(METADATA,) if folder.has(METADATA) else (),
    )


def _markers(raw: dict[str, Any]) -> dict[str, str]:
    found = {name: raw.get(f"{name}_prefix") for name in ("query", "document")}
    return {name: text for name, text in found.items() if isinstance(text, str) and text}


def _prompts(shared: EncoderSettings, markers: dict[str, str]) -> dict[str, str]:
    """The prompts with the markers before them."""
    before = {name: marker + shared.prompts.get(name, "").removeprefix(marker) for name, marker in markers.items()}
    return {**shared.prompts, **before}


def _words(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ConfigError(f"{where}: {value!r:.80} is not a list of words")
    return tuple(value)


def _lengths(raw: dict[str, Any], where: str) -> dict[str, int]:
    found = {name: count_in(raw, f"{name}_length", where) for name in ("query", "document")}
    return {name: length for name, length in found.items() if length is not None}


def _expansion(raw: dict[str, Any], where: str, pylate: bool) -> Expansion | None:
    """The expansion of queries, by its own object or by PyLate's flat fields."""
    given = raw.get("query_expansion")
    if given is None:
        if not pylate or "query_expansion" in raw or raw.get("do_query_expansion") is False:
            return None
        length = count_in(raw, "query_length", where) or QUERY_LENGTH
        attended = raw.get("attend_to_expansion_tokens", raw.get("attend_to_mask_tokens"))
        return Expansion(length, bool(attended))
    length = count_in(given, "length", where) if isinstance(given, dict) else None
    if length is None or given.get("strategy") not in ("fixed", "min"):
        raise ConfigError(f"{where}: query_expansion = {given!r}, expected a strategy, fixed or min, and a length")
    token = given.get("token")
    return Expansion(
        length,
        given.get("attend") is True,
        None if token is None else cast(str, token),
        given["strategy"] == "fixed",
    )
