"""Tokenizers and chat templates out of GGUF's metadata, beside the files that they were made of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_gguf import add_bytes, finish, gguf, unpacked

import zoo
from zoo.errors import TokenizerError
from zoo.text.tokenizer import Tokenizer
from zoo.weights.gguf.metadata import Metadata
from zoo.weights.gguf.splits import SPLITS, name_of
from zoo.weights.gguf.tokenizer import GGUFTokenizer, end_tokens


def same(ours: Tokenizer, theirs: Tokenizer, texts: list[str]) -> None:
    assert len(texts) > 400
    for text in texts:
        found, wanted = ours.backend.encode(text), theirs.backend.encode(text)
        assert found.ids == wanted.ids, text
        assert ours.decode(found.ids) == theirs.decode(found.ids), text


def rebuilt(path: Path, tmp_path: Path) -> Tokenizer:
    """The tokenizer of a file that has no more than one."""
    from zoo.weights.gguf.header import read_header

    return Tokenizer.from_folder(made(read_header(path).metadata, tmp_path / "made"))


def made(metadata: dict, folder: Path) -> Path:
    """A folder with the tokenizer of a file's metadata."""
    tokenizer = GGUFTokenizer(Metadata(metadata, "llama"))
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer.json()), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer.config(512)))
    return folder


def written(tmp_path: Path, fill) -> Path:
    writer = gguf.GGUFWriter(tmp_path / "vocab.gguf", "llama")
    fill(writer)
    return finish(writer, tmp_path / "vocab.gguf")


def test_pieces(stories, texts):
    """SentencePiece's BPE: merges are told from scores.  In this one the space is a space, in the file a mark."""
    ours, theirs = zoo.load(stories).tokenizer, zoo.load("stories260k").tokenizer
    same(ours, theirs, [t for t in texts if "▁" not in t])
    assert (ours.bos_token, ours.eos_token, ours.unk_token) == ("<s>", "</s>", "<unk>")
    assert ours.all_special_ids == theirs.all_special_ids


def test_bytes(chat, texts):
    folder, path = chat
    ours, theirs = zoo.load(path).tokenizer, zoo.load(folder).tokenizer
    same(ours, theirs, [*texts, "<|eot_id|> a <|start_header_id|>user"])
    assert ours.all_special_ids == theirs.all_special_ids
    assert (ours.bos_token, ours.eos_token) == (theirs.bos_token, theirs.eos_token)


def test_a_real_vocabulary_of_bytes(tmp_path, texts):
    """RoBERTa's, cut as GPT-2's: 50,265 tokens and 50,000 merges."""
    folder = tmp_path / "roberta"
    folder.mkdir()
    raw = json.loads(unpacked("roberta.tokenizer.json"))
    raw["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(raw), encoding="utf-8")
    path = written(tmp_path, lambda writer: add_bytes(writer, folder, "gpt-2"))
    from tokenizers import Tokenizer as Backend

    ours, theirs = rebuilt(path, tmp_path).backend, Backend.from_file(str(folder / "tokenizer.json"))
    for text in texts:
        if "<mask>" not in text:  # which takes the space before it along
            assert ours.encode(text).ids == theirs.encode(text).ids, text


def test_words(sentences, minilm, texts):
    ours, theirs = zoo.load(sentences).tokenizer, zoo.load(minilm).tokenizer
    same(ours, theirs, texts)
    for text in texts:
        assert ours.backend.encode(text, "b").ids == theirs.backend.encode(text, "b").ids
    for role in ("cls", "sep", "pad", "unk", "mask"):
        assert getattr(ours, f"{role}_token_id") == getattr(theirs, f"{role}_token_id")
    encoded = ours(["a", "a b c"], ["d", "e f"])
    np.testing.assert_array_equal(encoded.token_type_ids, theirs(["a", "a b c"], ["d", "e f"]).token_type_ids)


@pytest.mark.parametrize(("name", "lower"), [("bert-base-uncased", True), ("bert-base-cased", False)])
def test_words_with_capitals_keep_them(name, lower, tmp_path, texts):
    """No key says whether a text becomes lower case: the vocabulary does."""
    from made_gguf import add_words

    (tmp_path / "vocab.txt").write_bytes(unpacked(f"{name}.vocab.txt"))
    ours = rebuilt(written(tmp_path, lambda writer: add_words(writer, tmp_path)), tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
    same(ours, Tokenizer.from_folder(tmp_path), texts)


@pytest.mark.nightly
def test_pieces_of_unigram(tmp_path, texts):
    """XLM-R's 250,002, as llama.cpp's converter has them."""
    raw = json.loads(unpacked("xlm_roberta.tokenizer.json"))
    folder = tmp_path / "xlmr"
    folder.mkdir()
    raw["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(raw), encoding="utf-8")

    def fill(writer) -> None:
        import base64

        rules = base64.b64decode(_charsmap(raw["normalizer"]))
        pieces = raw["model"]["vocab"]
        kinds = [2 if text == "<unk>" else 3 if text in ("<s>", "</s>", "<pad>", "<mask>") else 1 for text, _ in pieces]
        writer.add_tokenizer_model("t5")
        writer.add_token_list([text for text, _ in pieces])
        writer.add_token_scores([score for _, score in pieces])
        writer.add_token_types(kinds)
        writer.add_precompiled_charsmap(rules)
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(2)
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(True)
        writer.add_add_space_prefix(True)

    ours = rebuilt(written(tmp_path, fill), tmp_path)
    from tokenizers import Tokenizer as Backend

    theirs = Backend.from_file(str(folder / "tokenizer.json"))
    for text in texts:
        if "<mask>" not in text:
            assert ours.backend.encode(text).ids[1:-1] == theirs.encode(text).ids, text
    assert ours.backend.encode("a").ids[0] == 0
    assert ours.backend.encode("a").ids[-1] == 2


def _charsmap(value):
    if isinstance(value, dict) and "precompiled_charsmap" in value:
        return value["precompiled_charsmap"]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for child in children if (found := _charsmap(child))), None)


def test_a_chat(chat):
    folder, path = chat
    ours, theirs = zoo.load(path), zoo.load(folder)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi <|eot_id|> there, é"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "And now?"},
    ]
    assert ours.template is not None
    assert theirs.template is not None
    for tools in (None, [{"name": "f", "parameters": {"x": 1}}]):
        found = ours.template.encode(messages, tools=tools, add_generation_prompt=True)
        assert found == theirs.template.encode(messages, tools=tools, add_generation_prompt=True)
    assert set(ours.generation.eos_token_id) == set(theirs.generation.eos_token_id)


def test_templates_by_name(chat, tmp_path):
    m = Metadata(
        {**_metadata(chat[1]), "tokenizer.chat_templates": ["rag"], "tokenizer.chat_template.rag": "x"}, "llama"
    )
    settings = GGUFTokenizer(m).config(9)
    assert [t["name"] for t in settings["chat_template"]] == ["default", "rag"]


def test_a_template_that_attacks_meets_the_same_door(chat, tmp_path):
    """A template that loops, and one that looks for Python's objects."""
    for attack in (
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ ''.__class__.__mro__ }}",
        "{{ 9 * '" + "x" * 999 + "' ",
    ):
        folder = made({**_metadata(chat[1]), "tokenizer.chat_template": attack}, tmp_path / str(len(attack)))
        from zoo.text.chat import ChatTemplate

        template = ChatTemplate.of(Tokenizer.from_folder(folder))
        assert template is not None
        with pytest.raises(zoo.ZooError):
            template.encode([{"role": "user", "content": "a"}])


def _metadata(path: Path) -> dict:
    from zoo.weights.gguf.header import read_header

    return read_header(path).metadata


def test_the_tokens_that_end_an_answer(chat):
    m = _metadata(chat[1])
    tokens = m["tokenizer.ggml.tokens"]
    found = {tokens[i] for i in end_tokens(Metadata(m, "llama"), len(tokens))}
    assert found == {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}


def test_a_tokenizer_json_in_the_file_comes_first(chat, tmp_path):
    stated = (chat[0] / "tokenizer.json").read_text(encoding="utf-8")
    m = Metadata({**_metadata(chat[1]), "tokenizer.huggingface.json": stated, "tokenizer.ggml.pre": "no-such"}, "llama")
    assert GGUFTokenizer(m).tokenizer_json() == stated.encode()


def test_flags_put_tokens_around(chat):
    metadata = _metadata(chat[1])
    for bos, eos in ((True, True), (False, True), (False, False)):
        flags = {"tokenizer.ggml.add_bos_token": bos, "tokenizer.ggml.add_eos_token": eos}
        raw = GGUFTokenizer(Metadata({**metadata, **flags}, "llama")).json()
        if not (bos or eos):
            assert raw["post_processor"] is None
        else:
            around = [p.get("SpecialToken", {}).get("id") for p in raw["post_processor"]["single"]]
            assert (around[0] == "<|begin_of_text|>", around[-1] == "<|eot_id|>") == (bos, eos)


def test_every_split_passes_the_door_and_has_a_name():
    from zoo.guards.tokenizer import check_part

    for name, split in SPLITS.items():
        check_part("pre_tokenizer", split.pre_tokenizer, name)
        found = name_of(split.pre_tokenizer, split.ignore_merges)
        assert found is not None
        assert SPLITS[found].pre_tokenizer == SPLITS[name].pre_tokenizer
    assert name_of({"type": "WhitespaceSplit"}, False) is None


WRONG = {
    "an unknown split": ({"tokenizer.ggml.pre": "llama-bbe"}, "how texts are cut is not known.*mean 'llama-bpe'"),
    "no split": ({"tokenizer.ggml.pre": None}, "not stated"),
    "no merges": ({"tokenizer.ggml.merges": None}, "no 'tokenizer.ggml.merges'"),
    "a merge of three": ({"tokenizer.ggml.merges": ["a b c"]}, r"merges\[0\] is 'a b c'"),
    "no tokens": ({"tokenizer.ggml.tokens": None}, "no 'tokenizer.ggml.tokens'"),
    "tokens twice": ({"tokenizer.ggml.tokens": ["a", "a"], "tokenizer.ggml.token_type": None}, "occur twice"),
    "too few types": ({"tokenizer.ggml.token_type": np.ones(3, np.int32)}, "has 3 items"),
    "types that are fractions": ({"tokenizer.ggml.token_type": np.ones(268, np.float32)}, "items of type float32"),
    "no score": ({"tokenizer.ggml.model": "llama"}, "no 'tokenizer.ggml.scores'"),
    "a score that is not a number": (
        {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": np.full(272, np.nan, np.float32)},
        "finite",
    ),
    "no model": ({"tokenizer.ggml.model": None}, "no 'tokenizer.ggml.model'"),
    "a beginning that is none": (
        {"tokenizer.ggml.bos_token_id": None, "tokenizer.ggml.add_bos_token": True},
        "there is no bos_token_id",
    ),
    "no words": ({"tokenizer.ggml.model": "bert"}, "names no tokenizer.ggml.unknown_token_id"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_tokenizer_lacks(name, chat):
    said, message = WRONG[name]
    metadata = {k: v for k, v in {**_metadata(chat[1]), **said}.items() if v is not None}
    count = len(metadata.get("tokenizer.ggml.tokens", ()))
    if name == "a score that is not a number":
        metadata["tokenizer.ggml.scores"] = np.full(count, np.nan, np.float32)
    if name == "types that are fractions":
        metadata["tokenizer.ggml.token_type"] = np.ones(count, np.float32)
    with pytest.raises(TokenizerError, match=message):
        GGUFTokenizer(Metadata(metadata, "llama")).json()


def test_this_is_the_vocabulary_of_the_package(stories):
    """GGUFReader finds the same tokens."""
    fields = gguf.GGUFReader(stories).fields
    assert _metadata(stories)["tokenizer.ggml.tokens"] == fields["tokenizer.ggml.tokens"].contents()
