"""Clients that people use, unchanged, against a server that listens on this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="needs msgspec, of the extra serve")
uvicorn = pytest.importorskip("uvicorn", reason="needs uvicorn, of the extra serve")

STORY = "Once upon a time"
KEY = "secret"
GREETING = [{"role": "user", "content": "Hi"}]
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


@pytest.fixture(scope="module")
def address(models) -> Iterator[str]:
    """The address of a server that demands KEY."""
    from zoo.apps.serve.app import application
    from zoo.apps.serve.listening import address_of, listen

    with listen("127.0.0.1", 0) as at:
        # Without the lifespan, which would load and stop the models that other tests use too.
        config = uvicorn.Config(
            application(models, keys={KEY: "tests"}), log_level="critical", lifespan="off", ws="none"
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield address_of("127.0.0.1", at)
        server.should_exit = True
        thread.join()


@pytest.fixture
def openai() -> Any:
    return pytest.importorskip("openai", reason="needs openai, the client")


@pytest.fixture
def client(openai, address) -> Any:
    with openai.OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as client:
        yield client


@pytest.fixture
def vectors(folders) -> np.ndarray:
    """The vectors of "a" and "b"."""
    import zoo

    return zoo.load(str(folders["embed"]), device="cpu")(["a", "b"])


def test_openai_embeddings(client, vectors):
    assert "stories260k" in [model.id for model in client.models.list().data]
    for options in ({}, {"encoding_format": "float"}):  # without, it asks for base64
        found = client.embeddings.create(model="model", input=["a", "b"], **options)
        np.testing.assert_allclose([one.embedding for one in found.data], vectors, atol=1e-5)
    assert len(client.embeddings.create(model="model", input="a", dimensions=64).data[0].embedding) == 64


def test_openai_chats(client):
    options = {"model": "chat", "messages": GREETING, "max_tokens": 8}
    whole = client.chat.completions.create(**options, logprobs=True, top_logprobs=1)
    assert len(whole.choices[0].logprobs.content) == whole.usage.completion_tokens
    parts = [*client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})]
    assert "".join(p.choices[0].delta.content or "" for p in parts[:-1]) == whole.choices[0].message.content
    assert parts[-1].usage == whole.usage
    assert parts[-2].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert client.chat.completions.create(**options, tools=[WEATHER]).choices[0].finish_reason == "length"
    several = client.chat.completions.create(**options, n=3, seed=1, temperature=1.0)
    assert len({choice.message.content for choice in several.choices}) == 3


def test_openai_responses(client):
    asked = {"model": "chat", "instructions": "Be brief.", "input": "Hi", "max_output_tokens": 8, "store": False}
    whole = client.responses.create(**asked)
    assert (whole.status, whole.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert whole.usage.output_tokens == 8
    events = [*client.responses.create(**asked, stream=True)]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert (events[-1].type, events[-1].response.output_text) == ("response.incomplete", text)
    assert text == whole.output_text
    goes_on = [{"role": "user", "content": "Hi"}, *(item.to_dict() for item in whole.output)]
    assert client.responses.create(**{**asked, "input": [*goes_on, {"role": "user", "content": "And?"}]}).output


def test_openai_completions(client):
    text = client.completions.create(model="stories260k", prompt=STORY, max_tokens=12, n=2, temperature=0)
    assert [choice.text for choice in text.choices] == [", there was a little girl named Lily. She"] * 2
    stopped = client.completions.create(model="stories260k", prompt=STORY, stop=[" girl"], temperature=0)
    assert (stopped.choices[0].text, stopped.choices[0].finish_reason) == (", there was a little", "stop")


def test_openai_schemas(client):
    pytest.importorskip("llguidance", reason="needs llguidance, of the extra guided")
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {**schema, "additionalProperties": False}}}
    found = client.chat.completions.create(model="chat", messages=GREETING, max_tokens=40, response_format=form)
    assert set(json.loads(found.choices[0].message.content)) == {"ok"}


def test_openai_errors(openai, client, address):
    with pytest.raises(openai.NotFoundError, match="is not served here"):
        client.embeddings.create(model="x", input="a")
    with pytest.raises(openai.BadRequestError) as e:
        client.completions.create(model="stories260k", prompt="a " * 2000)
    assert e.value.code == "context_length_exceeded"
    with pytest.raises(openai.AuthenticationError), openai.OpenAI(base_url=f"{address}/v1", api_key="x") as other:
        other.models.list()


def test_langchain(address, vectors):
    langchain = pytest.importorskip("langchain_openai", reason="needs langchain-openai, a client")
    options = {"base_url": f"{address}/v1", "api_key": KEY, "max_retries": 0}
    # With the check it would send ids of OpenAI's own tokenizer.
    embed = langchain.OpenAIEmbeddings(model="model", check_embedding_ctx_length=False, **options)
    np.testing.assert_allclose(embed.embed_documents(["a", "b"]), vectors, atol=1e-5)
    np.testing.assert_allclose(embed.embed_query("a"), vectors[0], atol=1e-5)
    llm = langchain.ChatOpenAI(model="chat", max_tokens=8, **options)
    whole = llm.invoke("Hi")
    assert whole.usage_metadata["output_tokens"] == 8
    assert "".join(part.content for part in llm.stream("Hi")) == whole.content
    assert llm.bind_tools([WEATHER]).invoke("Hi").tool_calls == []
    story = langchain.OpenAI(model="stories260k", max_tokens=12, temperature=0, **options)
    assert story.invoke(STORY) == ", there was a little girl named Lily. She"


def test_llama_index(address, vectors):
    reason = "needs llama-index-embeddings-openai-like and llama-index-llms-openai-like, the clients"
    embeddings = pytest.importorskip("llama_index.embeddings.openai_like", reason=reason)
    llms = pytest.importorskip("llama_index.llms.openai_like", reason=reason)
    options = {"api_base": f"{address}/v1", "api_key": KEY, "max_retries": 0}
    embed = embeddings.OpenAILikeEmbedding(model_name="model", **options)
    np.testing.assert_allclose(embed.get_text_embedding_batch(["a", "b"]), vectors, atol=1e-5)
    np.testing.assert_allclose(embed.get_query_embedding("a"), vectors[0], atol=1e-5)
    llm = llms.OpenAILike(model="chat", is_chat_model=True, max_tokens=8, temperature=0, **options)
    message = llms.base.ChatMessage(role="user", content="Hi")
    whole = llm.chat([message]).message.content
    assert [*llm.stream_chat([message])][-1].message.content == whole
    story = llms.OpenAILike(model="stories260k", max_tokens=12, temperature=0, **options)
    assert story.complete(STORY).text == ", there was a little girl named Lily. She"


def test_curl(address, vectors):
    if (curl := shutil.which("curl")) is None:
        pytest.skip("needs curl")

    def asked(path: str, *options: str) -> str:
        command = [curl, "--silent", "--show-error", "--max-time", "60", *options, address + path]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    key = ("-H", f"Authorization: Bearer {KEY}")
    # Without a content type curl says that the body is a form.
    found = json.loads(asked("/v1/embeddings", *key, "-d", '{"model": "model", "input": ["a", "b"]}'))
    np.testing.assert_allclose([one["embedding"] for one in found["data"]], vectors, atol=1e-5)
    body = {"model": "stories260k", "prompt": STORY, "max_tokens": 12, "temperature": 0, "stream": True}
    lines = asked("/v1/completions", *key, "--no-buffer", "-d", json.dumps(body)).split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    texts = [json.loads(line.removeprefix("data: "))["choices"][0]["text"] for line in lines[:-2]]
    assert "".join(texts) == ", there was a little girl named Lily. She"
    status = ("-o", "/dev/null", "-w", "%{http_code}")
    assert asked("/v1/models", *status) == "401"
    assert asked("/health", *status) == "200"
    assert asked("/v1/embeddings", *key, *status, "-d", "{") == "400"
