"""Answers that follow a schema, an expression or a choice, whatever the model would rather write."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import zoo
from zoo.apps.serve.constraints import grammar_of

pytest.importorskip("llguidance", reason="needs llguidance, of the extra guided")

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
MESSAGES = [{"role": "user", "content": "Who?"}]


def ask(client, **asked):
    more = {"model": "chat", "messages": MESSAGES, "max_tokens": 200, "temperature": 1.0, "seed": 3}
    return client.post("/v1/chat/completions", json={**more, **asked})


def text(answer) -> str:
    (choice,) = answer.json()["choices"]
    assert choice["finish_reason"] == "stop"
    return choice["message"]["content"]


def test_a_schema(client):
    form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}
    found = json.loads(text(ask(client, response_format=form)))
    assert set(found) == {"name", "age"}
    assert isinstance(found["name"], str)
    assert 0 <= found["age"] <= 99


@pytest.mark.parametrize("model", ["chat", "stories260k"])
def test_a_choice_and_an_expression(client, model):
    for grammar, pattern in [({"choice": ["red", "green"]}, "red|green"), ({"regex": "[A-Z]{2}-[0-9]{3}"},) * 2]:
        asked = {"model": model, "prompt": "The colour is", "max_tokens": 40, "temperature": 1.0, "seed": 1}
        answer = client.post("/v1/completions", json={**asked, "structured_outputs": grammar}).json()
        pattern = pattern if isinstance(pattern, str) else pattern["regex"]
        assert re.fullmatch(pattern, answer["choices"][0]["text"].strip()), answer
        assert answer["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "asked",
    [
        {"response_format": {"type": "xml"}},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "strange"}}}},
        {"structured_outputs": {"regex": "(a"}},
        {"structured_outputs": {"regex": "(?<=a)b"}},
        {"structured_outputs": {"choice": []}},
        {"structured_outputs": {"json": {"$ref": "#"}}},
        {"structured_outputs": {"json": {"$ref": "http://example.org/schema"}}},
        {"structured_outputs": {"json": {"description": "x" * 100_001}}},
        {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
    ],
    ids=lambda asked: str(asked)[:60],
)
def test_a_grammar_that_cannot_be_used(client, asked):
    answer = ask(client, **asked)
    assert answer.status_code == 400, answer.text[:300]
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_choices_are_thousands_or_the_beginning_of_others(client):
    choices = [f"a{i}" for i in range(9000)]
    asked = {"model": "stories260k", "prompt": "Once", "temperature": 1.0, "seed": 1}
    answer = client.post("/v1/completions", json={**asked, "structured_outputs": {"choice": choices}}).json()
    assert answer["choices"][0]["text"] in choices
    llm: Any = zoo.load("stories260k")
    tokens = {token: llm.tokenizer.backend.token_to_id(token) for token in ("a", "b", "</s>")}
    grammar = grammar_of(llm, {"choice": ["a", "ab"]})
    assert grammar is not None
    matcher = grammar.matcher()
    assert not matcher.accept(tokens["a"])
    after = np.isfinite(matcher.mask_scores(np.zeros(llm.config.vocab_size)))
    assert [token for token, i in tokens.items() if after[i]] == ["b", "</s>"]


def test_a_panic_of_the_library_is_a_refusal(client, monkeypatch):
    """As of {"required": "a..."} with a letter beyond ASCII at the hundredth byte, in llguidance 1.x."""

    class PanicException(BaseException):
        pass

    def panics(*_: Any) -> str:
        raise PanicException("end byte index 100 is not a char boundary")

    matcher = pytest.importorskip("llguidance").LLMatcher
    fake = type("Fake", (), {"validate_grammar": panics, "grammar_from_regex": matcher.grammar_from_regex})
    monkeypatch.setattr("zoo.apps.serve.constraints._library", lambda: type("Library", (), {"LLMatcher": fake}))
    monkeypatch.setattr("zoo.apps.serve.constraints._tokenizer", lambda task: None)
    answer = ask(client, structured_outputs={"regex": "a"})
    assert answer.status_code == 400
    assert "llguidance fails: end byte index 100" in answer.json()["error"]["message"]


def test_a_parser_at_its_limits_ends_no_answer(client):
    """It stops, as it does where an answer is complete."""
    schema = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(2500)}}
    answer = ask(client, structured_outputs={"json": schema})
    assert answer.status_code == 400
    assert "the grammar cannot be followed: Parser Error" in answer.json()["error"]["message"]


@pytest.mark.parametrize("regex", ["((a{1,900}){1,900}){1,900}", "(x+x+)+y", "(a|aa|aaa)*" * 50])
def test_expressions_whose_work_would_explode_elsewhere(client, regex):
    assert ask(client, structured_outputs={"regex": regex}, max_tokens=5).status_code in (200, 400)
