"""/v1/responses: what chats answer, in OpenAI's newer form, and nothing that would need a memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

import zoo

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")

FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
ASKED = {"model": "chat", "input": "Hello", "max_output_tokens": 12}


def ask(client: Any, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/responses", json={**ASKED, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def events_of(client: Any, **more: Any) -> list[dict[str, Any]]:
    text = client.post("/v1/responses", json={**ASKED, **more, "stream": True}).text
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def without_names(value: Any) -> Any:
    """A value without what differs in each answer: ids and times."""
    if isinstance(value, dict):
        names = ("id", "call_id", "created_at", "completed_at")
        return {key: without_names(item) for key, item in value.items() if key not in names}
    return [without_names(item) for item in value] if isinstance(value, list) else value


def test_a_response_is_the_chats_answer(client, folders):
    llm = zoo.load(folders["chat"])
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    found = ask(client, instructions="Be brief.", metadata={"a": "b"})
    (item,) = found["output"]
    assert (item["type"], item["role"], item["content"][0]["type"]) == ("message", "assistant", "output_text")
    assert item["content"][0]["text"] == llm.chat(messages, max_new_tokens=12, do_sample=False)
    chat = {"model": "chat", "messages": messages, "max_tokens": 12}
    usage = client.post("/v1/chat/completions", json=chat).json()["usage"]
    assert (found["usage"]["input_tokens"], found["usage"]["output_tokens"]) == (usage["prompt_tokens"], 12)
    assert (found["status"], found["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert (found["store"], found["metadata"], found["instructions"]) == (False, {"a": "b"}, "Be brief.")
    parts = [{"role": "user", "content": [{"type": "input_text", "text": "Hel"}, {"type": "input_text", "text": "lo"}]}]
    same = ask(client, instructions="Be brief.", metadata={"a": "b"}, input=parts)
    assert without_names(same) == without_names(found)


def test_the_events_of_a_stream_make_the_response(client, script):
    script(f"Let me ask. {CALL}")
    whole = ask(client, tools=[FUNCTION], max_output_tokens=200)
    message, call = whole["output"]
    assert message["content"][0]["text"].strip() == "Let me ask."
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "weather", {"city": "Rome"})
    assert call["call_id"].startswith("call_")
    assert whole["status"] == "completed"
    events = events_of(client, tools=[FUNCTION], max_output_tokens=200)
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert [kind for i, kind in enumerate(kinds) if not i or kinds[i - 1] != kind] == [
        *("created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.done"),
        *("content_part.done", "output_item.done", "output_item.added", "function_call_arguments.delta"),
        *("function_call_arguments.done", "output_item.done", "completed"),
    ]
    assert without_names(events[-1]["response"]) == without_names(whole)
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert text == message["content"][0]["text"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]


def test_a_conversation_comes_back_as_items(client, monkeypatch):
    from zoo.apps.serve import chats

    seen, encode = list[Any](), chats._chat_ids

    def encode_seen(task: Any, messages: Any, *others: Any) -> Any:
        seen.append(messages)
        return encode(task, messages, *others)

    monkeypatch.setattr(chats, "_chat_ids", encode_seen)
    items = [
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Ask."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Sunny"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Sun", "annotations": []}],
        },
        {"role": "user", "content": "Thanks"},
    ]
    ask(client, input=items)
    function = {"name": "weather", "arguments": {"city": "Rome"}}
    assert seen[0] == [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "Ask.",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Sunny"},
        {"role": "assistant", "content": "Sun"},
        {"role": "user", "content": "Thanks"},
    ]


@pytest.mark.parametrize(
    ("asked", "field", "said"),
    [
        ({"store": True}, "store", "no response is stored here: send false"),
        ({"previous_response_id": "resp_1"}, "previous_response_id", "send the whole conversation as input"),
        ({"conversation": "conv_1"}, "conversation", "send the whole conversation"),
        ({"background": True}, "background", "none could be fetched later"),
        ({"prompt": {"id": "p"}}, "prompt", "send its text as instructions"),
        ({"include": ["reasoning.encrypted_content"]}, "include", "reasoning.encrypted_content is not here"),
        ({"truncation": "auto"}, "truncation", "'auto' is not implemented"),
        ({"tools": [{"type": "web_search"}]}, "tools", "tools[0] is of type 'web_search'"),
        ({"tools": [{**FUNCTION, "strict": True}]}, "tools", "strict of tools[0] is not implemented"),
        ({"tool_choice": "required"}, "tool_choice", "expected 'auto' or 'none'"),
        ({"reasoning": {"summary": "auto"}}, "reasoning", "'summary' is not implemented"),
        ({"text": {"verbosity": "low"}}, "text", "'verbosity' is not implemented"),
        ({"input": []}, "input", "input is an empty list"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input", "input[0] refers to an item"),
        ({"input": [{"type": "computer_call"}]}, "input", "input[0] is of type 'computer_call'"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "messages", "chat reads texts alone"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input", "part 0 is 'input_file'"),
        ({"input": [{"content": "x"}]}, "input", "input[0] has no role"),
        ({"max_output_tokens": 0}, "max_output_tokens", "is 0, expected a whole number of at least 1"),
    ],
)
def test_what_is_refused(client, asked, field, said):
    answer = client.post("/v1/responses", json={**ASKED, **asked})
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert said in error["message"]
    assert error["param"] == field


def test_an_error_within_a_stream_is_an_event(client, models, monkeypatch):
    monkeypatch.setattr(models.all["chat"].worker.batch, "step", lambda: 1 / 0)
    *_, last = events_of(client)
    assert (last["type"], last["code"]) == ("error", None)
    assert "internal error" in last["message"]
