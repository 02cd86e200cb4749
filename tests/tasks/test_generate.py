"""Generate: text from a prompt, chats, streams; the checkpoint that comes with zoo writes what was published."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from chat_checkpoint import write_chat_checkpoint

import zoo
from zoo.errors import HubError, InputError, UnsupportedError
from zoo.tasks.generate import Generate, Generation

ROOT = Path(__file__).parents[2]
# What karpathy/llama2.c's test_all.py expects of stories260K without sampling, 200 steps from the beginning.
PUBLISHED = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a "
    "big, red ball. She wanted to play with it, but it was too high.\nLily's mom said, \"Lily, let's go to the park.\" "
    "Lily was sad and didn't know what to do. She said, \"I want to play with your ball, but I can't find it.\"\nLily "
    "was sad and didn't know what to do. She said, \"I'm sorry, Lily. I didn't know what to do.\"\nLily didn't want to "
    "help her mom, so she"
)


@pytest.fixture(scope="module")
def llm() -> Generate:
    return zoo.load("stories260k")


@pytest.fixture(scope="module")
def chatty(tmp_path_factory) -> Generate:
    return zoo.load(write_chat_checkpoint(tmp_path_factory.mktemp("chatty")))


def test_the_published_story(llm):
    assert llm("", max_new_tokens=200) == PUBLISHED
    assert "".join(llm.stream("", max_new_tokens=200)) == PUBLISHED
    begin = "Once upon a time"
    assert PUBLISHED.startswith(begin + llm(begin, max_new_tokens=150))


def test_the_published_story_on_torch():
    pytest.importorskip("torch", reason="needs torch")
    assert PUBLISHED.startswith(zoo.load("stories260k", device="torch:cpu")("", max_new_tokens=40))


def test_lists_and_details(llm):
    prompts = ["Once upon a time", "The dog", "Lily and Tom went to the"]
    alone = [llm(prompt, max_new_tokens=20) for prompt in prompts]
    assert llm(prompts, max_new_tokens=20) == alone
    assert llm(iter(prompts), max_new_tokens=20) == alone
    found = llm(prompts[0], max_new_tokens=20, details=True)
    assert isinstance(found, Generation)
    assert (found.text, found.reason, len(found.tokens)) == (alone[0], "length", 20)
    assert all(token.logprob <= 0 for token in found.tokens)
    assert found.score == pytest.approx(np.mean([token.logprob for token in found.tokens]), rel=1e-5)
    assert "".join(token.token for token in found.tokens) == alone[0]
    beams = llm(prompts, num_beams=4, num_return_sequences=2, max_new_tokens=10, details=True)
    assert [len(row) for row in beams] == [2, 2, 2]
    assert all(row[0].score >= row[1].score for row in beams)


def test_a_story_ends_by_itself(llm):
    found = llm("The end. They were happy.", details=True)
    assert found.reason == "stop"
    assert found.tokens[-1].token_id == 1
    assert "<s>" not in found.text


def test_the_context_is_the_limit(llm):
    long = "the cat " * 150
    tokens = len(llm.tokenizer.backend.encode(long).ids)
    found = llm(long, details=True, eos_token_id=511)
    assert (found.reason, len(found.tokens)) == ("length", 512 - tokens)
    with pytest.raises(InputError, match=r"max_new_tokens is 300, but after a prompt of .* room for"):
        llm(long, max_new_tokens=300)
    with pytest.raises(InputError, match=r"texts\[1\]: the prompt has .* tokens, and the model's context is 512"):
        llm(["a", "the cat " * 400])


def test_seeds_and_sampling(llm):
    options = {"do_sample": True, "temperature": 1.2, "max_new_tokens": 12}
    first = llm(["Once", "Once"], seed=5, **options)
    assert first == llm(["Once", "Once"], seed=5, **options)
    assert first[0] == llm("Once", seed=5, **options)
    assert first[0] != first[1]
    assert "".join(llm.stream("Once", seed=5, **options)) == first[0]
    assert len({llm("Once", **options) for _ in range(4)}) > 1
    assert len(set(llm("Once", seed=1, num_return_sequences=5, **options))) > 1


def test_texts_to_stop_at(llm):
    assert llm("Once upon a time", stop_strings="girl") == ", there was a little "
    assert llm("Once upon a time", stop_strings=["She", "Lil"], num_beams=3) == ", there was a little girl named "
    assert "".join(llm.stream("Once upon a time", stop_strings=["named Lily"])) == ", there was a little girl "


def test_perplexity(llm):
    """Against the log-probabilities of all tokens at once."""
    text = PUBLISHED
    ids = llm.tokenizer.backend.encode(text).ids
    logits = llm.model(np.array([ids]))[0].astype(np.float64)
    logprobs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = math.exp(-logprobs[np.arange(len(ids) - 1), ids[1:]].mean())
    assert llm.perplexity(text) == pytest.approx(wanted, rel=1e-5)
    story, noise = llm.perplexity([text, text[::-1]])
    assert story < 2 < 100 < noise
    with pytest.raises(InputError, match="at least 2"):
        llm.perplexity("")


def test_bad_options(llm):
    for options, message in [
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"max_tokens": 4}, "max_tokens is not an option of generation: use max_new_tokens"),
        ({"temperature": 0.5}, "temperature is for sampling"),
        ({"do_sample": True, "temperature": 0}, "temperature is 0.0"),
        ({"num_beams": 300}, "too many for a vocabulary of 512|a stream has one row"),
        ({"penalty_alpha": 0.5}, "penalty_alpha = 0.5 is not implemented"),
        ({"stop_strings": [""]}, "stop_strings"),
    ]:
        with pytest.raises((InputError, UnsupportedError), match=message):
            llm("Once", **options)
        with pytest.raises((InputError, UnsupportedError), match=message):
            llm.stream("Once", **options)  # at once, not with the first piece
    for bad in (None, 3, b"x", [], ["a", None], "\ud800"):
        with pytest.raises(InputError):
            llm(bad)
    with pytest.raises(UnsupportedError, match="no chat template"):
        llm.chat([{"role": "user", "content": "hi"}])


def test_an_interrupt_leaves_all_usable(llm, monkeypatch):
    wanted = llm("Once upon a time", max_new_tokens=10)
    calls, next_logits = itertools.count(), type(llm.model).next_logits

    def interrupted(self, *args, **options):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return next_logits(self, *args, **options)

    with monkeypatch.context() as m:
        m.setattr(type(llm.model), "next_logits", interrupted)
        with pytest.raises(KeyboardInterrupt):
            llm("Once upon a time", max_new_tokens=10)
    assert llm("Once upon a time", max_new_tokens=10) == wanted
    stream = llm.stream("Once upon a time", max_new_tokens=10)
    assert next(stream)
    stream.close()
    assert llm("Once upon a time", max_new_tokens=10) == wanted


def test_the_file_says_how(chatty):
    """generation_config.json: it draws tokens; a seed and greedy choice are the caller's."""
    assert chatty.generation.do_sample
    assert chatty.generation.temperature == 0.6
    assert len(chatty.generation.eos_token_id) == 3
    drawn = {chatty("Hello", max_new_tokens=6) for _ in range(5)}
    assert len(drawn) > 1
    greedy = {chatty("Hello", max_new_tokens=6, do_sample=False) for _ in range(2)}
    assert len(greedy) == 1
    with pytest.raises(UnsupportedError, match="pass do_sample=False, or num_beams=1"):
        chatty("Hello", num_beams=2)


def test_no_second_beginning(chatty):
    begin = "<|begin_of_text|>"
    options = {"max_new_tokens": 8, "do_sample": False}
    assert chatty(begin + "Hello", **options) == chatty("Hello", **options)


def test_chat(chatty):
    pytest.importorskip("jinja2", reason="needs jinja2, the extra 'chat'")
    user = [{"role": "user", "content": "Hello"}]
    other = [{"role": "system", "content": "Be brief."}, *user]
    options = {"max_new_tokens": 12, "do_sample": False}
    answer = chatty.chat(user, **options)
    assert isinstance(answer, str)
    assert chatty.chat([user, other], **options) == [answer, chatty.chat(other, **options)]
    assert "".join(chatty.stream(user, **options)) == answer
    prompt = chatty.template.render(user, add_generation_prompt=True)
    assert chatty(prompt, **options) == answer
    gone_on = [*user, {"role": "assistant", "content": answer[:3]}]
    assert isinstance(chatty.chat(gone_on, continue_final_message=True, **options), str)
    with pytest.raises(InputError, match="messages"):
        chatty.chat([])
    with pytest.raises(InputError, match="the role 'usr'"):
        chatty.chat([{"role": "usr", "content": "x"}])


def test_a_conversation_computes_what_is_new(chatty, monkeypatch):
    """Turn by turn it says what a chat of all turns at once says, and feeds the model only the turn's tokens."""
    pytest.importorskip("jinja2", reason="needs jinja2, the extra 'chat'")
    options = {"max_new_tokens": 8, "do_sample": False}
    fed, next_logits = [], type(chatty.model).next_logits

    def counted(self, ids, *args, **more):
        fed.append(np.shape(ids)[1])
        return next_logits(self, ids, *args, **more)

    monkeypatch.setattr(type(chatty.model), "next_logits", counted)
    talk = chatty.conversation(system="Be brief. " * 5, **options)
    for text in ("Hello", "Really?", "the end"):
        fed.clear()
        answer = "".join(talk.say(text))
        prompts = fed[0]
        assert talk.messages[-1] == {"role": "assistant", "content": answer}
        assert chatty.chat(talk.messages[:-1], **options) == answer
        if text != "Hello":
            assert prompts < len(chatty.chat_ids(talk.messages[:-1], {})[0]) / 2
    assert [turn["role"] for turn in talk.messages] == ["system", *["user", "assistant"] * 3]


def test_a_conversation_survives_an_interrupt(chatty, monkeypatch):
    pytest.importorskip("jinja2", reason="needs jinja2, the extra 'chat'")
    options = {"max_new_tokens": 8, "do_sample": False}
    talk = chatty.conversation(**options)
    stream = talk.say("Hello")
    said = next(stream)
    stream.close()
    assert talk.messages[-1] == {"role": "assistant", "content": said}
    again = "".join(talk.say("Go on"))
    assert again == chatty.chat(talk.messages[:-1], **options)
    before = list(talk.messages)
    with monkeypatch.context() as m:
        m.setattr(type(chatty.model), "next_logits", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            "".join(talk.say("And now?"))
    assert talk.messages == before  # there was no answer: the question is forgotten
    assert "".join(talk.say("And now?")) == chatty.chat([*before, {"role": "user", "content": "And now?"}], **options)


def test_a_conversation_to_the_end_of_the_context(chatty):
    """The oldest turns are left out where there is no room for an answer, but never the system message."""
    pytest.importorskip("jinja2", reason="needs jinja2, the extra 'chat'")
    options = {"max_new_tokens": 60, "do_sample": False, "eos_token_id": []}
    talk = chatty.conversation("Be brief.", **options)
    while not talk.left_out:
        answer = "".join(talk.say("word"))
        assert len(talk.messages) < 30
    system, *others = talk.messages
    assert chatty.chat([system, *others[talk.left_out : -1]], **options) == answer
    before = list(talk.messages)
    with pytest.raises(InputError, match="tokens, and the model's context is 512: none can follow"):
        "".join(talk.say("word " * 600))
    assert talk.messages == before
    assert "".join(talk.say("word"))


def test_saved_and_loaded(llm, chatty, tmp_path):
    options = {"max_new_tokens": 8, "do_sample": False}
    for task, name in ((llm, "one"), (chatty, "two")):
        zoo.save(task, tmp_path / name)
        again = zoo.load(tmp_path / name)
        assert again.generation == task.generation
        assert again("Hello", **options) == task("Hello", **options)
    assert again.template is not None


def test_the_embedded_name(tmp_path, monkeypatch):
    with pytest.raises(HubError, match="only hub names have revisions"):
        zoo.load("stories260k", revision="main")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stories260k").mkdir()  # a folder here comes first, as with every name
    (tmp_path / "stories260k" / "config.json").write_text(json.dumps({"model_type": "none"}))
    with pytest.raises(HubError, match="no weight file"):
        zoo.load("stories260k")


def test_a_decoder_of_bert_writes(tiny):
    llm = zoo.load(tiny("LMHeadModel", is_decoder=True))
    assert isinstance(llm, Generate)
    assert isinstance(llm("hello world", max_new_tokens=5), str)
    with pytest.raises(UnsupportedError, match="is_decoder = False"):
        zoo.load(tiny("LMHeadModel"))


def test_neither_torch_nor_jinja_is_loaded():
    code = (
        "import sys, zoo\nzoo.load('stories260k')('Once', max_new_tokens=2)\n"
        "print([m for m in ('torch', 'jinja2', 'huggingface_hub', 'PIL', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
