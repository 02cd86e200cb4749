"""Calls of tools are told from text, in whatever pieces an answer comes."""

from __future__ import annotations

import json

import msgspec
import pytest

from zoo.apps.serve.errors import ApiError
from zoo.apps.serve.tools import ToolCalls, as_templates_expect, names_of

CALL = '{"name": "weather", "parameters": {"city": "Rome"}}'
QWEN = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'

ODD = ['{"name": ["weather"]}', '{"name": {}}', '{"function": {"name": 1}}', '{"function": []}', '{"a": [1]}']


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("answer", "text", "calls"),
    [
        (CALL, "", 1),
        (f"{CALL}; {CALL}", "", 2),
        (QWEN, "", 1),
        (f"I look it up.\n{QWEN}\n{QWEN}", "I look it up.\n", 2),
        (QWEN[:-12], "", 1),  # cut off before its end
        ("It is <tool> sunny.", "It is <tool> sunny.", 0),
        ('{"a": 1} is JSON', '{"a": 1} is JSON', 0),
        ('{"name": "other", "parameters": {}}', '{"name": "other", "parameters": {}}', 0),
        ("<tool_call>\nno JSON\n</tool_call>", "<tool_call>\nno JSON\n</tool_call>", 0),
        ("", "", 0),
        # One that is none of a tool loses no other, and stays as it is.
        (f"{QWEN}\n<tool_call>no JSON</tool_call>\n{QWEN}", "<tool_call>no JSON</tool_call>", 2),
        (f'{CALL}; {{"name": "other", "parameters": {{}}}}; {CALL}', '{"name": "other", "parameters": {}}', 2),
        (f'{CALL}; {{"name": "weath', '{"name": "weath', 1),
        (f"{CALL}\nThat is all.", "That is all.", 1),
        ('{"type": "function", "function": {"name": "weather", "parameters": {"city": "Rome"}}}', "", 1),
        ('{"function": "weather", "arguments": {"city": "Rome"}}', "", 1),
        *[(made, made, 0) for made in ODD],
        *[(f"<tool_call>{made}</tool_call>", f"<tool_call>{made}</tool_call>", 0) for made in ODD],
        ('{"name": "weather", "arguments": {"t": NaN}}', '{"name": "weather", "arguments": {"t": NaN}}', 0),
        ('{"name": "weather", "arguments": {"t": 1e999}}', '{"name": "weather", "arguments": {"t": 1e999}}', 0),
    ],
)
def test_calls(answer, text, calls, size):
    parts = ToolCalls({"weather"})
    found = "".join(parts.add(answer[i : i + size]) for i in range(0, len(answer), size))
    rest, made = parts.finish()
    assert found + rest == text
    assert len(made) == calls
    for call in made:
        assert call["function"]["name"] == "weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Rome"}
    assert len({call["id"] for call in made}) == calls


@pytest.mark.parametrize("frame", ["{}", "<tool_call>{}</tool_call>"])
@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"a": "two\nlines\tand a tab"}', {"a": "two\nlines\tand a tab"}),
        (r'{"a": "\ud800", "\udfff": 1}', {"a": "\ud800", "\udfff": 1}),
        (r'"{\"a\": \"\ud800\"}"', {"a": "\ud800"}),
        ('{"a": "\u00e9 \U0001f600"}', {"a": "\u00e9 \U0001f600"}),
        ("{}", {}),
    ],
)
def test_arguments_go_on_as_json(frame, arguments, wanted):
    parts = ToolCalls({"f"})
    parts.add(frame.replace("{}", f'{{"name": "f", "arguments": {arguments}}}'))
    text, (call,) = parts.finish()
    sent = msgspec.json.encode(call)  # which a lone surrogate fails in
    assert text == ""
    assert json.loads(json.loads(sent)["function"]["arguments"]) == wanted


def test_without_tools_all_is_text():
    parts = ToolCalls(set())
    assert parts.add(CALL) == CALL
    assert parts.finish() == ("", [])


def test_messages_as_templates_take_them():
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    (turn,) = as_templates_expect([{"role": "assistant", "content": None, "tool_calls": [call]}])
    assert turn["tool_calls"][0]["function"]["arguments"] == {"city": "Rome"}
    for message, problem in [
        ({"content": [{"type": "image_url", "image_url": {"url": "x"}}]}, "a part that is not a text"),
        ({"tool_calls": [{"function": {"name": "a", "arguments": "{"}}]}, "are not JSON"),
        ({"tool_calls": [7]}, "without a function's name"),
        ({"tool_calls": [{"function": {"name": "a", "arguments": r'{"a": "\ud800"}'}}]}, "have a lone surrogate"),
    ]:
        with pytest.raises(ApiError, match=problem):
            as_templates_expect([message])


def test_tools_without_names():
    assert names_of([{"type": "function", "function": {"name": "a"}}]) == {"a"}
    for tool in ({}, {"type": "x", "function": {"name": "a"}}, {"type": "function", "function": {"name": 1}}):
        with pytest.raises(ApiError, match=r"tools\[0\] is"):
            names_of([tool])
