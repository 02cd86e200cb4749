"""Completions and chats over HTTP: the text of the task alone, its chunks, and what goes with it."""

from __future__ import annotations

import json

import pytest

import zoo

PROMPT = "Once upon a time"
MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def llm():
    return zoo.load("stories260k")


def events(answer) -> list[dict]:
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def complete(client, **asked):
    return client.post("/v1/completions", json={"model": "stories260k", "prompt": PROMPT, **asked})


def test_a_completion(client, llm):
    answer = complete(client, max_tokens=20, temperature=0).json()
    (choice,) = answer["choices"]
    assert choice["text"] == llm(PROMPT, max_new_tokens=20)
    assert choice["finish_reason"] == "length"
    tokens = len(llm.prompt_ids(PROMPT))
    assert answer["usage"] == {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    by_ids = complete(client, prompt=llm.prompt_ids(PROMPT), max_tokens=20, temperature=0).json()
    assert by_ids["choices"] == answer["choices"]


def test_the_chunks_of_a_stream_are_the_text(client, llm):
    asked = {"max_tokens": 20, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = events(complete(client, **asked))
    assert len(chunks) > 10
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == llm(PROMPT, max_new_tokens=20)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 20)


@pytest.mark.parametrize(("stream", "held", "least", "most"), [(False, 0, 1, 1), (True, 0, 19, 19), (True, 1e9, 1, 1)])
def test_the_event_loop_wakes_no_more_often_than_someone_waits(client, llm, monkeypatch, stream, held, least, most):
    from zoo.apps.serve import generations

    seen, tell = [], generations.tell
    monkeypatch.setattr(generations, "MAX_WAIT", held)
    monkeypatch.setattr(generations, "tell", lambda loop, do, *args: (seen.append(do), tell(loop, do, *args)))
    answer = complete(client, max_tokens=20, temperature=0, stream=stream)
    texts = [one["choices"][0]["text"] for one in (events(answer) if stream else [answer.json()])]
    assert "".join(texts) == llm(PROMPT, max_new_tokens=20)
    assert len(texts) > 10 or not stream  # a chunk for each token all the same
    assert least <= len(seen) <= most  # the first step gives two tokens


def test_several_prompts_and_choices(client, llm):
    prompts = [PROMPT, "Tom and Lily"]
    answer = complete(client, prompt=prompts, n=2, max_tokens=8, temperature=0.9, seed=4).json()
    wanted = []
    for prompt in prompts:  # each as if it were alone
        options = {"do_sample": True, "temperature": 0.9, "top_k": 0, "seed": 4}
        wanted += llm(prompt, max_new_tokens=8, num_return_sequences=2, **options)
    assert [choice["text"] for choice in answer["choices"]] == wanted
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]


def test_a_first_token_that_stops_ends_its_choice_alone(client, llm):
    first, other = llm(PROMPT, max_new_tokens=1), llm("The dog", max_new_tokens=3)
    assert first.strip() not in other
    asked = {"prompt": [PROMPT, "The dog"], "max_tokens": 3, "temperature": 0, "stop": [first.strip()]}
    answer = complete(client, **asked).json()
    wanted = [(first[: first.index(first.strip())], "stop"), (other, "length")]
    assert [(c["text"], c["finish_reason"]) for c in answer["choices"]] == wanted
    assert answer["usage"]["completion_tokens"] == 4


def test_a_stop_string_ends_the_text_before_it(client, llm):
    whole = llm(PROMPT, max_new_tokens=30)
    answer = complete(client, max_tokens=30, temperature=0, stop=["Lily"]).json()
    assert answer["choices"][0]["text"] == whole[: whole.index("Lily")]
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] < 30
    chunks = events(complete(client, max_tokens=30, temperature=0, stop="Lily", stream=True))
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole[: whole.index("Lily")]


def test_log_probabilities(client, llm):
    answer = complete(client, max_tokens=6, temperature=0, logprobs=2).json()
    found, wanted = answer["choices"][0]["logprobs"], llm(PROMPT, max_new_tokens=6, details=True)
    assert found["token_logprobs"] == pytest.approx([token.logprob for token in wanted.tokens], abs=1e-4)
    assert all(len(top) == 2 for top in found["top_logprobs"])


def test_a_chat(client, folders):
    llm = zoo.load(folders["chat"])
    wanted = llm.chat(MESSAGES, max_new_tokens=12, do_sample=False)
    asked = {"model": "chat", "messages": MESSAGES, "max_completion_tokens": 12}
    answer = client.post("/v1/chat/completions", json=asked).json()
    (choice,) = answer["choices"]
    assert (choice["message"]["role"], choice["message"]["content"]) == ("assistant", wanted)
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}]
    more = {"messages": parts, "stream": True, "logprobs": True, "top_logprobs": 2}
    chunks = events(client.post("/v1/chat/completions", json={**asked, **more}))
    deltas = [chunk["choices"][0] for chunk in chunks]
    assert deltas[0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(one["delta"].get("content", "") for one in deltas) == wanted
    assert deltas[-1]["finish_reason"] == choice["finish_reason"]
    tops = [top for one in deltas if one["logprobs"] for top in one["logprobs"]["content"]]
    assert len(tops) == answer["usage"]["completion_tokens"]
    assert all(len(top["top_logprobs"]) == 2 for top in tops)


def test_a_second_chat_with_the_same_system_prompt(client):
    def count(name: str) -> int:
        (line,) = [x for x in client.get("/metrics").text.split("\n") if x.startswith(f'{name}{{model="chat"}}')]
        return int(float(line.split()[1]))

    def ask(text: str) -> tuple[int, int, int]:
        system = {"role": "system", "content": "You answer in few words, and never say what you do not know. " * 2}
        asked = {"model": "chat", "messages": [system, {"role": "user", "content": text}], "max_tokens": 2}
        before = count("zoo_reused_total"), count("zoo_prompt_tokens_total")
        used = client.post("/v1/chat/completions", json=asked).json()["usage"]["prompt_tokens"]
        return used, count("zoo_reused_total") - before[0], count("zoo_prompt_tokens_total") - before[1]

    used, _, prompt = ask("Who are you?")
    assert prompt == used > 64
    _, reused, _ = ask("Where is it?")
    assert reused > used / 2
    assert count("zoo_prefix_bytes") > 0


def test_a_chat_without_a_template(client):
    answer = client.post("/v1/chat/completions", json={"model": "stories260k", "messages": MESSAGES})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "no_chat_template"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"prompt": "a " * 2000}, "context is 512"),
        ({"max_tokens": 5000}, "max_new_tokens is 5000"),
        ({"max_tokens": -1}, "max_tokens is -1, expected a whole number of at least 0"),
        ({"n": 999}, "n is 999, expected a whole number of at most 16"),
        ({"prompt": []}, "prompt is an empty list, expected a list of at least 1 item"),
        ({"prompt": [1, None]}, "prompt[1] is null, expected a text or a whole number or a list"),
        ({"stop": ["a"] * 17}, "stop is a list of 17 items, expected a list of at most 16 items"),
        ({"maxtokens": 3}, "there is no field 'maxtokens'; did you mean 'max_tokens'"),
        ({"stream_options": {"usage": 1}, "stream": True}, "there is no field 'usage' of stream_options"),
        ({"stream": "yes"}, 'stream is "yes", expected true or false'),
        ({"prompt": [1, "a"]}, "expected texts, or lists of ids"),
        ({"prompt": [1] * 3000}, "the prompt has 3000 tokens"),
        ({"prompt": [[99999]]}, "expected texts, or lists of ids"),
        ({"temperature": float("1e9")}, "temperature is 1000000000.0, expected a number of at most 100"),
        ({"what": 1}, "there is no field 'what'; known are model, stream,"),
        ({"structured_outputs": {"xml": 1}}, "expected one of json, regex, choice"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_refused(client, asked, message):
    answer = complete(client, **asked)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert message in error["message"]
    assert error["type"] == "invalid_request_error"
