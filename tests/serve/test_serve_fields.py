"""Every field of a request is honoured, or refused in words; none is taken and passed over."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import zoo

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")

CHAT = {"model": "chat", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
STORY = {"model": "stories260k", "prompt": "Once upon a time", "max_tokens": 3, "temperature": 0}
RERANK = {"model": "rerank", "query": "a cat", "documents": ["The cat sits outside.", "Stocks fell."]}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
TOKENS = {"model": "chat", "messages": CHAT["messages"]}
FORMS: dict[str, dict[str, Any]] = {
    "/v1/completions": STORY,
    "/v1/chat/completions": CHAT,
    "/v1/rerank": RERANK,
    "/tokenize": TOKENS,
}


def ask(client, path: str, **more: Any) -> Any:
    return client.post(path, json={**FORMS[path], **more})


@pytest.mark.parametrize(
    ("path", "asked", "field", "said"),
    [
        ("/v1/completions", {"logit_bias": {"9999999": 2}}, "logit_bias", "'9999999' is not a token, expected 0 to"),
        ("/v1/completions", {"logit_bias": {"a": 2}}, "logit_bias", "'a' is not a token"),
        ("/v1/completions", {"logit_bias": {"1": 200}}, None, "expected -100 to 100"),
        ("/v1/completions", {"frequency_penalty": 2.5}, "frequency_penalty", "is 2.5, expected a number of at most 2"),
        (
            "/v1/chat/completions",
            {"presence_penalty": -3},
            "presence_penalty",
            "is -3, expected a number of at least -2",
        ),
        ("/v1/chat/completions", {"enable_thinking": True}, "enable_thinking", "has no variable 'enable_thinking'"),
        ("/v1/chat/completions", {"chat_template_kwargs": {"x": 1}}, "chat_template_kwargs", "has no variable 'x'"),
        ("/v1/chat/completions", {"chat_template_kwargs": {"tools": 1}}, "chat_template_kwargs", "a field of its own"),
        ("/v1/completions", {"best_of": 4}, "best_of", "not implemented, expected n, 1"),
        ("/v1/completions", {"best_of": 1, "n": 2}, "best_of", "not implemented, expected n, 2"),
        ("/v1/completions", {"suffix": "x"}, "suffix", "not implemented"),
        ("/v1/completions", {"stream_options": {"include_usage": True}}, "stream_options", "it is for streams"),
        ("/v1/completions", {"min_tokens": 4}, "min_tokens", "4 is more than the most that are asked for, 3"),
        ("/v1/chat/completions", {"min_tokens": 4}, "min_tokens", "4 is more than the most"),
        ("/v1/chat/completions", {"max_completion_tokens": 4}, "max_tokens", "send one of them"),
        ("/v1/chat/completions", {"top_logprobs": 2}, "top_logprobs", "it needs logprobs = true"),
        ("/v1/chat/completions", {"top_logprobs": 0, "logprobs": False}, "top_logprobs", "it needs logprobs = true"),
        ("/v1/chat/completions", {"tool_choice": "required"}, "tool_choice", "expected 'auto' or 'none'"),
        ("/v1/chat/completions", {"store": True}, "store", "no answer is stored here"),
        ("/v1/chat/completions", {"metadata": {"a": "b"}}, "metadata", "none is stored here"),
        ("/v1/chat/completions", {"service_tier": "flex"}, "service_tier", "'flex' is not here"),
        (
            "/v1/chat/completions",
            {"tools": [{**TOOL, "function": {**TOOL["function"], "strict": True}}]},
            "tools",
            "strict of tools[0] is not implemented",
        ),
        (
            "/v1/chat/completions",
            {"stream": True, "stream_options": {"include_obfuscation": True}},
            "stream_options",
            "include_obfuscation is not implemented",
        ),
        ("/v1/rerank", {"max_chunks_per_doc": 10}, "max_chunks_per_doc", "expected 1"),
        ("/v1/rerank", {"max_tokens_per_doc": 0}, "max_tokens_per_doc", "is 0, expected a whole number of at least 1"),
        ("/tokenize", {"add_special_tokens": True}, "add_special_tokens", "a chat template writes"),
        ("/tokenize", {"prompt": "x"}, "prompt", "either prompt or messages"),
        ("/tokenize", {"messages": None, "prompt": "x", "tools": [TOOL]}, "tools", "it is for messages"),
        (
            "/tokenize",
            {"messages": None, "prompt": "x", "add_generation_prompt": True},
            "add_generation_prompt",
            "it is for messages",
        ),
        ("/tokenize", {"tools": [{"type": "x"}]}, "tools", "tools[0] is"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_is_refused(path, asked, field, said, client):
    answer = ask(client, path, **asked)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert said in error["message"]
    assert (error["param"], error["type"]) == (field, "invalid_request_error")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/completions", {"logit_bias": {}, "frequency_penalty": 0, "presence_penalty": 0.0, "suffix": ""}),
        ("/v1/completions", {"stream": None, "temperature": None, "echo": None, "logit_bias": None}),
        ("/v1/completions", {"best_of": 2, "n": 2, "min_tokens": 3, "user": "someone"}),
        (
            "/v1/chat/completions",
            {"max_completion_tokens": 3, "store": False, "service_tier": "auto", "tool_choice": "auto"},
        ),
        ("/v1/chat/completions", {"logprobs": True, "top_logprobs": 0, "parallel_tool_calls": True, "tools": [TOOL]}),
        ("/v1/rerank", {"max_chunks_per_doc": 1}),
        ("/tokenize", {"add_special_tokens": False, "tools": []}),
    ],
)
def test_values_that_mean_nothing_else_are_taken(path, asked, client):
    assert ask(client, path, **asked).status_code == 200


def test_penalties_and_bias_change_what_is_written(client):
    plain = ask(client, "/v1/completions", max_tokens=30, temperature=0).json()["choices"][0]["text"]
    for more in ({"frequency_penalty": 2}, {"presence_penalty": 2}, {"logit_bias": {"2": 100}}):
        assert (
            ask(client, "/v1/completions", max_tokens=30, temperature=0, **more).json()["choices"][0]["text"] != plain
        )


def test_a_service_tier_is_told(client):
    assert ask(client, "/v1/chat/completions", service_tier="auto").json()["service_tier"] == "default"
    assert "service_tier" not in ask(client, "/v1/chat/completions").json()


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_chunks_before_the_last_have_a_usage_to_come(path, client):
    for options, wanted in (({"include_usage": True}, True), ({"include_usage": False}, False), (None, False)):
        answer = ask(client, path, stream=True, stream_options=options)
        chunks = [json.loads(line[6:]) for line in answer.text.split("\n\n")[:-2]]
        usages = [chunk.get("usage", "none") for chunk in chunks]
        if wanted:
            assert usages[:-1] == [None] * (len(chunks) - 1)
            assert usages[-1]["completion_tokens"] == 3
        else:
            assert usages == ["none"] * len(chunks)


@pytest.mark.parametrize("stream", [False, True])
def test_one_call_of_tools_where_several_are_not_wanted(stream, client, monkeypatch):
    from zoo.apps.serve.answers import ToolCalls

    calls = '<tool_call>{"name": "weather", "arguments": {"n": %d}}</tool_call>'
    finish = ToolCalls.finish

    def finished(self: Any) -> Any:
        self._held = calls % 1 + calls % 2
        return finish(self)

    monkeypatch.setattr(ToolCalls, "finish", finished)
    for parallel, wanted in ((None, 2), (True, 2), (False, 1)):
        answer = ask(client, "/v1/chat/completions", tools=[TOOL], parallel_tool_calls=parallel, stream=stream)
        if stream:
            deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in answer.text.split("\n\n")[:-2]]
            made = [call for delta in deltas for call in delta.get("tool_calls", [])]
        else:
            made = answer.json()["choices"][0]["message"]["tool_calls"]
        assert [call["function"]["arguments"] for call in made] == ['{"n": 1}', '{"n": 2}'][:wanted]


def test_a_document_is_read_up_to_its_tokens(client, folders):
    rerank = zoo.load(folders["rerank"], task="rerank")
    texts = ["The cat sits outside, and the dog is in the garden.", "Stocks fell again today.", "A cat."]
    cut = ["The cat sits outside", "Stocks fell again today", "A cat."]
    found = ask(client, "/v1/rerank", documents=texts, max_tokens_per_doc=4).json()["results"]
    wanted = {one.document: one.score for one in rerank("a cat", cut)}
    assert {one["index"] for one in found} == wanted.keys()
    np.testing.assert_allclose(
        [one["relevance_score"] for one in found], [wanted[one["index"]] for one in found], atol=1e-6
    )
    whole = ask(client, "/v1/rerank", documents=texts, max_tokens_per_doc=1000).json()["results"]
    assert whole == ask(client, "/v1/rerank", documents=texts).json()["results"] != found


def test_tokens_of_messages_are_those_of_the_chat(client):
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}]
    for more in ({}, {"messages": parts}, {"tools": [TOOL]}):
        used = ask(client, "/v1/chat/completions", **more).json()["usage"]["prompt_tokens"]
        assert ask(client, "/tokenize", **more).json()["count"] == used
    bare = client.post("/tokenize", json={"model": "chat", "prompt": "Hello", "add_special_tokens": False}).json()
    assert client.post("/tokenize", json={"model": "chat", "prompt": "Hello"}).json()["count"] == bare["count"] + 1


def test_a_score_is_for_tables_alone(client):
    answer = client.post("/v1/read?model=zoo-read&threshold=0.9", content=b"x", headers={"content-type": "image/png"})
    assert (answer.status_code, "there is no field 'threshold'" in answer.text) == (400, True)
    described = client.get("/openapi.json").json()["components"]["schemas"]
    assert "threshold" in described["TablesRequest"]["properties"]
    assert "threshold" not in described["PagesRequest"]["properties"]
