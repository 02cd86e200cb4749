"""Answers that follow a JSON schema, a regular expression or a choice, through llguidance (extra `guided`).

llguidance bounds the time and memory of a grammar; a token's mask takes microseconds.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import InputError
from ...optional import import_optional
from .errors import ApiError

MAX_GRAMMAR = 100_000  # characters of a schema or an expression
# llguidance has 1,000,000, with which a hostile expression such as (a{1000}){1000} holds up the others' tokens for 5 s.
FUEL = 250_000
KINDS = ("json", "regex", "choice")


@contextlib.contextmanager
def _catch_panics() -> Iterator[None]:
    """A context that raises InputError for a panic of llguidance, which would end the thread."""
    try:
        yield
    except BaseException as e:
        if type(e).__name__ != "PanicException":  # no Exception, and of no importable class
            raise
        raise InputError(f"the grammar cannot be used: llguidance fails: {e!s:.300}") from None


class Grammar:
    """A grammar for the tokens of one tokenizer."""

    def __init__(self, tokenizer: Any, grammar: str):
        self._tokenizer, self._grammar = tokenizer, grammar
        self._library = _library()
        with _catch_panics():
            problem = self._library.LLMatcher.validate_grammar(grammar, tokenizer)
        if problem:
            raise ApiError(400, f"the grammar cannot be used: {problem:.500}", param="response_format")

    def matcher(self) -> Matcher:
        """The state of one answer, which is empty."""
        limits = self._library.LLParserLimits(initial_lexer_fuel=FUEL, verbose_errors=False)
        with _catch_panics():
            matcher = self._library.LLMatcher(self._tokenizer, self._grammar, limits=limits)
        return Matcher(matcher, self._tokenizer.vocab_size)


class Matcher:
    """The `Constraint` of a grammar: see `zoo.generate.continuous`."""

    def __init__(self, matcher: Any, vocab: int):
        self._matcher, self._vocab = matcher, vocab

    def mask_scores(self, scores: np.ndarray) -> np.ndarray:
        """Scores (V,) with -inf for tokens that the grammar does not allow."""
        with _catch_panics():
            bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        allowed = np.unpackbits(bits, bitorder="little")[: len(scores)].astype(bool)
        out = np.full_like(scores, -np.inf)
        out[: len(allowed)][allowed] = scores[: len(allowed)][allowed]
        if not allowed.any():
            raise InputError("the grammar allows no further token of this model")
        return out

    def accept(self, token: int) -> bool:
        """Add a token; True if the answer is complete."""
        with _catch_panics():
            self._matcher.consume_token(token)
        self._check()  # a parser at its limits stops, too
        return self._matcher.is_stopped()

    def _check(self) -> None:
        if problem := self._matcher.get_error():
            why = problem.partition("\n<")[0]  # what follows is for llguidance's developers
            if "NoExtensionBias" in why:
                why = "no text of this model's tokens fits it"
            raise InputError(f"the grammar cannot be followed: {why:.500}")


def response_grammar(task: Any, asked: dict[str, Any] | None, outputs: dict[str, Any] | None) -> Grammar | None:
    """The grammar of a chat's `response_format`, or of its `structured_outputs`; None for a text."""
    kind = None if asked is None else asked.get("type")
    if asked is None or kind == "text":
        return grammar_of(task, outputs)
    if kind == "json_object":
        return grammar_of(task, {"json": {"type": "object"}})
    stated = asked.get("json_schema")
    if kind != "json_schema" or not isinstance(stated, dict) or not isinstance(stated.get("schema"), dict):
        expected = '{"type": "json_schema", "json_schema": {"schema": {...}}}, or of type "json_object" or "text"'
        raise ApiError(400, f"response_format: expected {expected}", param="response_format")
    return grammar_of(task, {"json": stated["schema"]})


def grammar_of(task: Any, asked: dict[str, Any] | None) -> Grammar | None:
    """The grammar of `structured_outputs`, one of {"json": schema}, {"regex": text}, {"choice": [texts]}."""
    if asked is None:
        return None
    if len(asked) != 1 or (kind := next(iter(asked))) not in KINDS:
        raise ApiError(400, f"structured_outputs: expected one of {', '.join(KINDS)}", param="structured_outputs")
    value, library = asked[kind], _library()
    if len(json.dumps(value)) > MAX_GRAMMAR:
        raise ApiError(400, f"a grammar of more than {MAX_GRAMMAR} characters", param="structured_outputs")
    fits = {"json": dict, "regex": str, "choice": list}[kind]
    if not isinstance(value, fits) or (kind == "choice" and not (value and all(isinstance(x, str) for x in value))):
        wanted = {"json": "a schema", "regex": "a regular expression", "choice": "a list of texts"}[kind]
        raise ApiError(400, f"structured_outputs: {kind} is not {wanted}", param="structured_outputs")
    try:
        with _catch_panics():
            if kind == "json":
                grammar = library.LLMatcher.grammar_from_json_schema(value, defaults={"whitespace_flexible": False})
            elif kind == "regex":
                grammar = library.LLMatcher.grammar_from_regex(value)
            else:
                choice = " | ".join(json.dumps(text, ensure_ascii=False) for text in value)  # a word to its lexer
                grammar = library.LLMatcher.grammar_from_lark(f"start: CHOICE\nCHOICE: {choice}")
    except ValueError as e:
        raise ApiError(400, f"the grammar cannot be used: {e!s:.500}", param="structured_outputs") from None
    return Grammar(_tokenizer(task), grammar)


_lock = threading.Lock()


def _tokenizer(task: Any) -> Any:
    """The tokenizer in llguidance's form, made once for each model."""
    with _lock:
        if (kept := getattr(task, "_grammar_tokenizer", None)) is None:
            ends = [*task.generation.eos_token_id]
            text = task.tokenizer.backend.to_str()
            with _catch_panics():
                kept = task._grammar_tokenizer = _library().LLTokenizer(
                    text, n_vocab=task.config.vocab_size, eos_token=ends or None
                )
        return kept


def _library() -> Any:
    try:
        return import_optional("llguidance", "an answer that follows a schema", "guided")
    except InputError as e:
        raise ApiError(501, f"this server has no grammars: {e}", code="not_installed") from None
