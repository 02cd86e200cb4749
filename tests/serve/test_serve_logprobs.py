"""Log-probabilities and echoed prompts over HTTP: names that join to the text, places in it, numbers of the model."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import zoo
from zoo.text import token_bytes
from zoo.text.token_bytes import TokenBytes

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")

PROMPT = "Once upon a time"
SMILE = "😀"


@pytest.fixture(scope="module")
def llm() -> Any:
    return zoo.load("stories260k")


@pytest.fixture(scope="module")
def smiling(tmp_path_factory) -> Any:
    """A client of a model with a token for each byte, which writes one smile after another."""
    from starlette.testclient import TestClient

    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models
    from zoo.models.llama3 import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("smiling") / "smile"
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    four = backend.encode(SMILE).ids
    sizes = {"vocab_size": 256, "hidden_size": 256, "intermediate_size": 8, "num_hidden_layers": 1}
    config = LlamaConfig.from_dict(
        {**sizes, "model_type": "llama", "num_attention_heads": 2, "max_position_embeddings": 64}
    )
    model = LlamaForCausalLM.from_config(config)
    head = np.zeros((256, 256), np.float32)
    for a, b in zip(four, four[1:] + four[:1], strict=True):
        head[b, a] = 50
    model.base_model.embeddings.word, model.head.weight = np.eye(256, dtype=np.float32), head
    layer = model.base_model.layers[0]
    layer.attention.out.weight = np.zeros_like(layer.attention.out.weight)
    layer.mlp.down.weight = np.zeros_like(layer.mlp.down.weight)
    model.base_model.norm.weight = np.ones(256, np.float32)
    zoo.save(model, folder)
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    served = Models([str(folder)])
    served.load()
    yield TestClient(application(served))
    served.stop()


def complete(client, **asked) -> dict:
    body = {"model": "stories260k", "prompt": PROMPT, "temperature": 0, **asked}
    if asked.get("model", "") is None:
        del body["model"]
    answer = client.post("/v1/completions", json=body)
    assert answer.status_code == 200, answer.text
    if not body.get("stream"):
        return answer.json()["choices"][0]
    chunks = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line and line != "data: [DONE]"]
    text, logprobs, reason = "", {}, None
    for choice in (c for chunk in chunks for c in chunk["choices"] if c["index"] == 0):
        text += choice["text"]
        for name, values in (choice["logprobs"] or {}).items():
            logprobs.setdefault(name, []).extend(values)
        reason = choice["finish_reason"] or reason
    return {"text": text, "logprobs": logprobs or None, "finish_reason": reason, "index": 0}


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", [PROMPT, "", " ", "The dog"])
def test_names_join_to_the_text_at_their_offsets(prompt, stream, client):
    answer = complete(client, prompt=prompt, max_tokens=20, logprobs=2, stream=stream)
    found = answer["logprobs"]
    assert "".join(found["tokens"]) == answer["text"]
    at = np.cumsum([len(prompt), *map(len, found["tokens"])])
    assert found["text_offset"] == at[:-1].tolist()
    assert len({len(values) for values in found.values()}) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("as_tokens", [False, True])
def test_an_echo_with_its_log_probabilities(as_tokens, stream, client, llm):
    ids = llm.prompt_ids(PROMPT)
    prompt = ids if as_tokens else PROMPT
    alone = complete(client, prompt=prompt, max_tokens=5, logprobs=3)
    answer = complete(client, prompt=prompt, max_tokens=5, logprobs=3, echo=True, stream=stream)
    assert answer["text"] == PROMPT + alone["text"]
    found = answer["logprobs"]
    assert found["tokens"][0] == "<s>"
    assert "".join(found["tokens"][1:]) == answer["text"]
    assert found["token_logprobs"][0] is found["top_logprobs"][0] is None
    n = len(ids)
    wanted = log_softmax(llm.model(np.array([ids]))[0])
    np.testing.assert_allclose(found["token_logprobs"][1:n], [wanted[i, ids[i + 1]] for i in range(n - 1)], atol=1e-4)
    for i, top in enumerate(found["top_logprobs"][1:n]):
        np.testing.assert_allclose(list(top.values())[:3], np.sort(wanted[i])[::-1][: len(top)][:3], atol=1e-4)
        assert top[found["tokens"][i + 1]] == pytest.approx(found["token_logprobs"][i + 1])
        assert list(top.values()) == sorted(top.values(), reverse=True)
    assert {name: values[n:] for name, values in found.items()} == alone["logprobs"]
    assert found["text_offset"][:n] == [0, *np.cumsum([0, *map(len, found["tokens"][1 : n - 1])]).tolist()]


def test_a_prompt_is_scored_without_an_answer(client, llm):
    answer = complete(client, max_tokens=0, logprobs=1, echo=True)
    assert (answer["text"], answer["finish_reason"]) == (PROMPT, "length")
    found = answer["logprobs"]["token_logprobs"]
    assert np.exp(-np.mean(found[1:])) == pytest.approx(llm.perplexity(PROMPT), rel=1e-5)
    assert complete(client, max_tokens=0, echo=True)["text"] == PROMPT
    assert complete(client, max_tokens=0)["text"] == ""
    assert complete(client, max_tokens=0, echo=True, stream=True) == complete(client, max_tokens=0, echo=True)
    whole = [1] * 512  # as long as the context: nothing can follow
    body = {"model": "stories260k", "prompt": whole, "max_tokens": 0, "echo": True, "logprobs": 0}
    raw = client.post("/v1/completions", json=body).json()
    assert len(raw["choices"][0]["logprobs"]["tokens"]) == raw["usage"]["total_tokens"] == 512


@pytest.mark.parametrize("stream", [False, True])
def test_several_echoes(stream, client):
    prompts = [PROMPT, "Tom and Lily"]
    body = {"model": "stories260k", "prompt": prompts, "max_tokens": 4, "temperature": 0, "n": 2, "stream": stream}
    plain = client.post("/v1/completions", json={**body, "stream": False}).json()["choices"]
    answer = client.post("/v1/completions", json={**body, "echo": True})
    if stream:
        texts = [""] * 4
        for line in answer.text.split("\n\n")[:-2]:
            for choice in json.loads(line[6:])["choices"]:
                texts[choice["index"]] += choice["text"]
    else:
        texts = [choice["text"] for choice in answer.json()["choices"]]
    assert texts == [prompts[i // 2] + choice["text"] for i, choice in enumerate(plain)]


def test_the_chosen_token_is_among_the_likeliest(client):
    for _ in range(3):
        found = complete(client, temperature=5.0, max_tokens=30, logprobs=1)["logprobs"]
        for token, logprob, top in zip(
            *[found[name] for name in ("tokens", "token_logprobs", "top_logprobs")], strict=True
        ):
            assert top[token] == logprob
            assert 1 <= len(top) <= 2
    assert [list(top) for top in complete(client, max_tokens=3, logprobs=0)["logprobs"]["top_logprobs"]] == [
        [name] for name in complete(client, max_tokens=3, logprobs=0)["logprobs"]["tokens"]
    ]


def test_no_likely_token_is_lost_behind_another_of_the_same_text(client, llm):
    """Sentencepiece has tokens for bytes beside those for characters."""
    for top in complete(client, max_tokens=30, logprobs=20)["logprobs"]["top_logprobs"]:
        assert len(top) == 20


def test_parts_of_a_character(smiling):
    asked: dict[str, Any] = {"model": None, "prompt": f"a {SMILE}", "max_tokens": 8, "logprobs": 2}
    answer = complete(smiling, **asked)
    assert answer["text"] == SMILE * 2
    parts = ["bytes:\\xf0", "bytes:\\x9f", "bytes:\\x98", "bytes:\\x80"]
    assert answer["logprobs"]["tokens"] == parts * 2
    assert answer["logprobs"]["text_offset"] == [3, 3, 3, 3, 4, 4, 4, 4]
    assert [next(iter(top)) for top in answer["logprobs"]["top_logprobs"]] == parts * 2
    assert complete(smiling, **asked, stream=True)["logprobs"] == answer["logprobs"]
    echoed = complete(smiling, **asked, echo=True)["logprobs"]
    assert echoed["tokens"] == ["a", " ", *parts * 3]
    assert echoed["text_offset"] == [0, 1, *[2] * 4, *[3] * 4, *[4] * 4]
    assert echoed["token_logprobs"][3:] == pytest.approx([0.0] * 11, abs=1e-4)


def test_places_and_names_are_those_of_openai():
    """An answer of gpt-3.5-turbo-instruct to a prompt of five characters, published with its tokens' offsets."""
    from zoo.apps.serve.logprobs import PromptToken, TokenReport

    tokens = [
        "，",
        b"\xe9\x80",
        b"\x82",
        "合",
        "出",
        "门",
        b"\xe6\x97",
        b"\x85",
        "行",
        "\n\n",
        "\n\n",
        "Yes",
        ",",
        " the",
    ]
    named = ["，", "bytes:\\xe9\\x80", "bytes:\\x82", *tokens[3:6], "bytes:\\xe6\\x97", "bytes:\\x85", *tokens[8:]]
    data = [token.encode() if isinstance(token, str) else token for token in tokens]
    level = {byte: character for character, byte in token_bytes._BYTES.items()}
    vocab = {"".join(level[byte] for byte in one): i for i, one in enumerate(dict.fromkeys([b"a", *data]))}
    backend = Tokenizer(models.BPE(vocab, []))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    ids = [vocab["".join(level[byte] for byte in one)] for one in data]
    report = TokenReport(TokenBytes(SimpleNamespace(backend=backend)), [0], 5)  # type: ignore[arg-type]
    found = report.of_completion(PromptToken(i, -1.0, ()) for i in ids)
    assert found["tokens"] == named
    assert found["text_offset"] == [5, 6, 6, 7, 8, 9, 10, 10, 11, 12, 14, 16, 19, 20]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat(stream, client, folders):
    task = zoo.load(folders["chat"])
    asked = {"model": "chat", "messages": [{"role": "user", "content": "Hello"}], "max_completion_tokens": 12}
    answer = client.post("/v1/chat/completions", json={**asked, "logprobs": True, "top_logprobs": 3, "stream": stream})
    if stream:
        choices = [json.loads(line[6:])["choices"][0] for line in answer.text.split("\n\n")[:-2]]
        text = "".join(choice["delta"].get("content") or "" for choice in choices)
        content = [one for choice in choices for one in (choice["logprobs"] or {"content": []})["content"]]
    else:
        (choice,) = answer.json()["choices"]
        text, content = choice["message"]["content"], choice["logprobs"]["content"]
        assert choice["logprobs"]["refusal"] is None
    assert b"".join(bytes(one["bytes"] or ()) for one in content).decode(errors="replace") == text
    find = TokenBytes(task.tokenizer)
    for one in content:
        assert len(one["top_logprobs"]) == 3
        for shown in (one, *one["top_logprobs"]):
            assert shown["token"] == _name(shown["bytes"]) or shown["bytes"] is None
    special = task.tokenizer.backend.token_to_id("<|eot_id|>")
    assert special is None or find(special) is None


def _name(data: list[int]) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(chr(byte) if byte < 128 else f"\\x{byte:02x}" for byte in data)
