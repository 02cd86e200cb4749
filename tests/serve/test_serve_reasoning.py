"""Reasoning apart from the answer: however it comes in pieces, as vLLM and DeepSeek name it."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from chat_checkpoint import TEMPLATE, write_chat_checkpoint

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
testclient = pytest.importorskip("starlette.testclient", reason="needs starlette and httpx")

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
THINKS = """
{%- if add_generation_prompt %}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}
    {%- elif opens %}{{ '<think>\\n' }}{% endif %}
{%- endif %}
"""
ASKED = {"messages": [{"role": "user", "content": "What is a <think>"}], "max_tokens": 200, "temperature": 0}


def naive_parts(text: str, is_open: bool) -> tuple[str, str]:
    """Reasoning and answer of a whole text."""
    begins = re.match(r"\s*<think>", text)
    if begins is None and not is_open:
        return "", text
    inside, _, answer = text[begins.end() if begins else 0 :].partition("</think>")
    return inside.strip(), answer.lstrip()


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "<think>\nLet me see.\n\nYes.\n</think>\n\nIt is 4.\n",
        "\n<think></think>4",
        "<think>it is < 5 </ think> </thin k></think>  <think>no</think> ",
        "<thin air>",
        "  plain\n",
        "<think>never ends </thin",
        "why\n</think>\n\nso",
        "",
        " ",
        "<think>",
        "</think>",
        "<think> a </think>\n",
    ],
)
def test_the_parts_are_those_of_the_whole_text_however_it_is_cut(text, is_open):
    from zoo.apps.serve.answers import Reasoning

    choose = random.Random(0)
    for _ in range(40):
        cuts = sorted(choose.choices(range(len(text) + 1), k=choose.randint(0, len(text))))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        separate = Reasoning(is_open)
        found = [separate.add(piece) for piece in pieces] + [separate.finish()]
        assert tuple("".join(texts) for texts in zip(*found, strict=True)) == naive_parts(text, is_open)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[Any]:
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    folder = write_chat_checkpoint(tmp_path_factory.mktemp("thinks") / "thinks", TEMPLATE + THINKS)
    models = Models([str(folder)])
    models.load()
    yield testclient.TestClient(application(models))
    models.stop()


def ask(client: Any, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The message and usage of an answer; a stream of it has the same parts."""
    whole = client.post("/v1/chat/completions", json={**ASKED, **more}).json()
    streamed = {**ASKED, **more, "stream": True, "stream_options": {"include_usage": True}}
    text = client.post("/v1/chat/completions", json=streamed).text
    chunks = [json.loads(line[6:]) for line in text.split("\n\n")[:-2]]
    message = whole["choices"][0]["message"]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    for name in ("content", "reasoning_content"):
        assert "".join(delta.get(name) or "" for delta in deltas) == (message.get(name) or "")
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    functions = [call["function"] for call in message.get("tool_calls", ())]
    assert [call["function"] for call in calls] == functions
    assert chunks[-1]["usage"] == whole["usage"]
    order = [name for delta in deltas for name in delta if delta[name] and name != "role"]
    assert order == sorted(order, key=["reasoning_content", "content", "tool_calls"].index)
    return message, whole["usage"]


@pytest.mark.parametrize(
    ("text", "options", "reasoning", "content"),
    [
        ("<think>\nWhy not.\n</think>\n\nYes.", {}, "Why not.", "Yes."),
        ("Why not.\n</think>\n\nYes.", {"chat_template_kwargs": {"opens": True}}, "Why not.", "Yes."),
        ("No </think> here.", {}, None, "No </think> here."),
        ("No </think> here.", {"enable_thinking": False}, None, "No </think> here."),
        ("<think>Why not.", {}, "Why not.", None),
    ],
)
def test_chats(client, script, text, options, reasoning, content):
    script(text)
    message, usage = ask(client, **options)
    assert (message.get("reasoning_content"), message["content"]) == (reasoning, content)
    thought = usage["completion_tokens_details"]["reasoning_tokens"]
    assert (0 < thought <= usage["completion_tokens"]) == (reasoning is not None)
    hidden, same = ask(client, include_reasoning=False, **options)
    assert ("reasoning_content" in hidden, hidden["content"]) == (False, content)
    assert same == usage


def test_calls_of_tools_after_the_reasoning(client, script):
    script(f"<think>\nNot {CALL} yet.\n</think>\n\n{CALL}")
    message, _ = ask(client, tools=[WEATHER])
    assert message["reasoning_content"] == f"Not {CALL} yet."
    assert message["content"] is None
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"city": "Rome"}


def test_a_message_that_goes_on_within_its_reasoning(client, script):
    script("and so on.</think>Yes.")
    for begin, wanted in (("<think>First,", "and so on."), ("<think>First.</think>", None), ("First", None)):
        messages = [*ASKED["messages"], {"role": "assistant", "content": begin}]
        more = {"messages": messages, "continue_final_message": True}
        assert ask(client, **more)[0].get("reasoning_content") == wanted


def test_marks_that_are_special_tokens():
    from zoo.apps.serve.answers import AnswerParts, Reasoning
    from zoo.apps.serve.generations import Piece

    parts = AnswerParts(Reasoning(False), set(), marks={7: "<think>", 8: "</think>"})
    found = [
        parts.add(Piece(0, text, token, 0.0, (), None)) for text, token in [("", 7), ("Why", 1), ("", 8), ("Yes", 2)]
    ]
    assert [tuple(part) for part in found] == [("", ""), ("Why", ""), ("", ""), ("", "Yes")]


def test_an_answer_that_a_grammar_holds_has_no_reasoning(client):
    pytest.importorskip("llguidance", reason="needs llguidance, of the extra guided")
    options = {"structured_outputs": {"choice": ["yes", "no"]}, "chat_template_kwargs": {"opens": True}}
    message, _ = ask(client, **options)
    assert message["content"] in ("yes", "no")
    assert "reasoning_content" not in message


def test_chunks_have_the_usage_so_far_where_it_is_wanted(client, script):
    script("<think>Why.</think>Yes, it is.")
    options = {"include_usage": True, "continuous_usage_stats": True}
    asked = {**ASKED, "stream": True, "stream_options": options}
    chunks = [json.loads(line[6:]) for line in client.post("/v1/chat/completions", json=asked).text.split("\n\n")[:-2]]
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert len({*counts}) > 4
    assert chunks[-1]["choices"] == []
    refused = client.post("/v1/chat/completions", json={**asked, "stream_options": {"continuous_usage_stats": True}})
    assert "continuous_usage_stats needs include_usage" in refused.json()["error"]["message"]


def test_zoo_chat_shows_the_reasoning_of_a_server(client, script, monkeypatch):
    from zoo.apps.cli import chat_server

    script("<think>\nWhy not.\n</think>\n\nYes.")

    def urlopen(request: Any, timeout: float) -> io.BytesIO:
        return io.BytesIO(client.post("/v1/chat/completions", content=request.data).content)

    monkeypatch.setattr(chat_server.urllib.request, "urlopen", urlopen)
    talk = chat_server.ServerConversation("http://127.0.0.1:1", "thinks", None, {})
    assert "".join(talk.say("Well?")) == "<think>\nWhy not.\n</think>\n\nYes."
