"""Tokenizers from each kind of file, the effect of each setting, and damaged files."""

from __future__ import annotations

import json
import random
import shutil

import pytest

from zoo.errors import TokenizerError, ZooError
from zoo.text.sentencepiece_model import read_sentencepiece
from zoo.text.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "Hello", "##s", "caf", "##e", "##é", "你", "好", "!"]
BPE = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "a": 5, "b": 6, "ab": 7, "Ġ": 8, "Ġa": 9}


def _bert(folder, vocab=VOCAB, **files):
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    return _write(folder, **files)


def _roberta(folder, vocab=BPE, merges="#version: 0.2\na b\nĠ a\n", **files):
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    (folder / "merges.txt").write_text(merges, encoding="utf-8")
    return _write(folder, **files)


def _write(folder, **files):
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def _pieces(*texts, model_type=1):
    """A SentencePiece model with the score 0 everywhere."""
    message = b""
    for text in texts:
        piece = b"\x0a" + bytes([len(text.encode())]) + text.encode() + b"\x15\0\0\0\0"
        message += b"\x0a" + bytes([len(piece)]) + piece
    return message + b"\x12\x02\x18" + bytes([model_type])


def _words(tokenizer, text):
    return tokenizer.tokens(tokenizer(text).input_ids[0])[1:-1]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, ["hello", "caf", "##e", "你", "好"]),
        ({"do_lower_case": False}, ["Hello", "caf", "##é", "你", "好"]),
        ({"do_lower_case": False, "strip_accents": True}, ["Hello", "caf", "##e", "你", "好"]),
        ({"strip_accents": False}, ["hello", "caf", "##é", "你", "好"]),
        ({"tokenize_chinese_chars": False, "never_split": ["café"]}, ["hello", "caf", "##e", "[UNK]"]),
    ],
)
def test_wordpiece_settings(tmp_path, config, words):
    assert _words(Tokenizer.from_folder(_bert(tmp_path, tokenizer_config=config)), "Hello café 你好") == words


def test_config_outranks_the_normalizer_of_tokenizer_json(tmp_path):
    built = Tokenizer.from_folder(_bert(tmp_path))
    built.backend.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "vocab.txt").unlink()
    assert _words(Tokenizer.from_folder(tmp_path), "Hello") == ["hello"]
    _write(tmp_path, tokenizer_config={"do_lower_case": False, "tokenizer_class": "BertTokenizerFast"})
    assert _words(Tokenizer.from_folder(tmp_path), "Hello") == ["Hello"]


def test_truncation_and_padding_inside_tokenizer_json_do_not_act(tmp_path):
    backend = Tokenizer.from_folder(_bert(tmp_path)).backend
    backend.enable_truncation(4, direction="left")
    backend.enable_padding(length=128, direction="left", pad_id=0, pad_token="[PAD]")
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer(["hello " * 9]).input_ids.shape == (1, 11)
    assert (tokenizer.padding_side, tokenizer.truncation_side, tokenizer.pad_token) == ("left", "left", "[PAD]")


def test_mask_takes_the_space_before_it(tmp_path):
    """transformers 4 and every hub repository's own files agree; 5.23 forgets it where only the vocabulary is given."""
    tokenizer = Tokenizer.from_folder(_roberta(tmp_path))
    assert _words(tokenizer, "ab <mask> a") == ["ab", "<mask>", "Ġa"]


@pytest.mark.parametrize("kind", ["string", "object"])
def test_added_and_special_tokens(tmp_path, kind):
    """Ids of added tokens follow the vocabulary; special_tokens_map.json outranks tokenizer_config.json."""
    mask = "[M]" if kind == "string" else {"content": "[M]", "lstrip": False, "normalized": False}
    tokenizer = Tokenizer.from_folder(
        _bert(
            tmp_path,
            added_tokens={"new": 14, "[M]": 15},
            special_tokens_map={"mask_token": mask, "bos_token": "[CLS]"},
            tokenizer_config={"mask_token": "[MASK]", "model_max_length": int(1e30)},
        )
    )
    assert (tokenizer.mask_token, tokenizer.mask_token_id, tokenizer.id_of("new")) == ("[M]", 15, 14)
    assert (tokenizer.bos_token_id, tokenizer.eos_token, tokenizer.eos_token_id) == (2, None, None)
    assert tokenizer.vocab_size == 16
    assert {2, 3, 15} <= tokenizer.all_special_ids
    assert 14 not in tokenizer.all_special_ids
    assert _words(tokenizer, "hello[M]new!") == ["hello", "[M]", "new", "!"]
    assert tokenizer.model_max_length is None
    assert Tokenizer.from_folder(tmp_path, model_max_length=77).model_max_length == 77


def test_added_tokens_decoder(tmp_path):
    decoder = {"4": {"content": "[MASK]", "lstrip": True, "special": True}, "14": {"content": "wide", "special": False}}
    config = {"added_tokens_decoder": decoder, "additional_special_tokens": ["[X]"]}
    tokenizer = Tokenizer.from_folder(_bert(tmp_path, tokenizer_config=config, special_tokens_map={"cls_token": "no"}))
    assert tokenizer.cls_token == "[CLS]"
    assert (tokenizer.id_of("wide"), tokenizer.id_of("[X]")) == (14, 15)
    assert tokenizer("hello [MASK]").offsets[0].tolist()[1:3] == [[0, 5], [5, 12]]


def test_class_decides_between_files(tmp_path):
    _bert(_roberta(tmp_path), tokenizer_config={"tokenizer_class": "RobertaTokenizerFast"})
    assert Tokenizer.from_folder(tmp_path).cls_token == "<s>"
    _write(tmp_path, tokenizer_config={"tokenizer_class": "BertTokenizer"})
    assert Tokenizer.from_folder(tmp_path).cls_token == "[CLS]"


def test_fairseq_order_of_a_sentencepiece_model(tmp_path):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(_pieces("<unk>", "<s>", "</s>", "▁a", "b"))
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer(["ab a", "a"]).input_ids.tolist() == [[0, 4, 5, 4, 2], [0, 4, 2, 1, 1]]
    assert tokenizer("a", "ab").input_ids.tolist() == [[0, 4, 2, 2, 4, 5, 2]]
    assert not tokenizer("a", "ab").token_type_ids.any()
    assert tokenizer.tokens(range(8)) == ["<s>", "<pad>", "</s>", "<unk>", "▁a", "b", "<mask>", None]


def test_sentencepiece_reader_against_the_official_one(folder):
    sentencepiece = pytest.importorskip("sentencepiece")
    path = folder("trocr-small") / "sentencepiece.bpe.model"
    official = sentencepiece.SentencePieceProcessor(model_file=str(path))
    pieces = read_sentencepiece(path.read_bytes(), path).pieces
    count = official.get_piece_size()
    assert [piece.text for piece in pieces] == [official.id_to_piece(i) for i in range(count)]
    assert [piece.score for piece in pieces] == [official.get_score(i) for i in range(count)]


def test_save_copies_the_files(load, folder, tmp_path):
    written = load("roberta").save(tmp_path / "new" / "folder")
    assert {path.name for path in written} == {
        "vocab.json",
        "merges.txt",
        "tokenizer_config.json",
        "special_tokens_map.json",
    }
    assert all(path.read_bytes() == (folder("roberta") / path.name).read_bytes() for path in written)
    assert load("roberta").save(folder("roberta"))  # onto itself: nothing happens
    assert Tokenizer.from_folder(tmp_path / "new" / "folder")("hello").input_ids.tolist() == [[0, 42891, 2]]


def _bad_folders():
    def bad(name, says, make):
        return pytest.param(make, says, id=name)

    yield bad("nothing", "expected tokenizer.json, vocab.txt", lambda f: (f / "model.bin").touch())
    yield bad("no merges", "without merges.txt", lambda f: (_roberta(f), (f / "merges.txt").unlink()))
    yield bad("broken json", "tokenizer.json", lambda f: _write(f, tokenizer='{"version": "1.0", "model"'))
    yield bad("empty json", "empty", lambda f: _write(f, tokenizer=""))
    yield bad("deep json", "tokenizer.json", lambda f: _write(f, tokenizer="[" * 10**6))
    yield bad("html", "tokenizer.json", lambda f: _write(f, tokenizer="<html>"))
    yield bad("lfs", "git lfs pull", lambda f: _write(f, tokenizer="version https://git-lfs.github.com/spec/v1\noid"))
    yield bad("config list", "tokenizer_config.json", lambda f: _bert(f, tokenizer_config=[]))
    yield bad("lower case", "do_lower_case", lambda f: _bert(f, tokenizer_config={"do_lower_case": "yes"}))
    yield bad("max length", "model_max_length", lambda f: _bert(f, tokenizer_config={"model_max_length": -1}))
    yield bad("side", "padding_side", lambda f: _bert(f, tokenizer_config={"padding_side": "top"}))
    other = {"tokenizer_class": "BertJapaneseTokenizer"}
    yield bad("class", "BertJapaneseTokenizer((?!did you mean).)*$", lambda f: _bert(f, tokenizer_config=other))
    yield bad("class type", "tokenizer_class", lambda f: _bert(f, tokenizer_config={"tokenizer_class": 3}))
    yield bad("special type", "mask_token", lambda f: _bert(f, special_tokens_map={"mask_token": {"lstrip": True}}))
    yield bad("special empty", "mask_token", lambda f: _bert(f, special_tokens_map={"mask_token": ""}))
    yield bad("added gap", "has the id 14, not 99", lambda f: _bert(f, added_tokens={"new": 99}))
    yield bad("added type", "added_tokens.json", lambda f: _bert(f, added_tokens={"new": "x"}))
    yield bad("decoder id", "expected an id", lambda f: _bert(f, tokenizer_config={"added_tokens_decoder": {"x": "a"}}))
    yield bad("decoder type", "not an object", lambda f: _bert(f, tokenizer_config={"added_tokens_decoder": [1]}))
    yield bad("no unk", r"no '\[UNK\]'", lambda f: _bert(f, VOCAB[2:]))
    yield bad("no cls", r"no '\[CLS\]'", lambda f: _bert(f, [t for t in VOCAB if t != "[CLS]"]))
    yield bad("latin-1", "not UTF-8 at byte 3", lambda f: (f / "vocab.txt").write_bytes(b"caf\xe9\n"))
    yield bad("empty vocab", "empty", lambda f: (f / "vocab.txt").touch())
    yield bad("vocab ids", "whole number", lambda f: _roberta(f, {**BPE, "c": -1}))
    yield bad("vocab shared ids", "share an id", lambda f: _roberta(f, {**BPE, "c": 1}))
    yield bad("vocab no cls", "no '<s>'", lambda f: _roberta(f, {"a": 0}))
    yield bad("unknown merge", "line 2: the token 'zz'", lambda f: _roberta(f, merges="#version: 0.2\nzz a"))
    yield bad("merge of three", "line 1: 'a b a'", lambda f: _roberta(f, merges="a b a"))
    spm = "sentencepiece.bpe.model"
    yield bad("spm bpe", "of type BPE", lambda f: (f / spm).write_bytes(_pieces("<unk>", "<s>", "</s>", model_type=2)))
    yield bad(
        "spm order", "expected <unk>, <s>, </s>", lambda f: (f / spm).write_bytes(_pieces("<pad>", "</s>", "<unk>"))
    )
    yield bad("spm empty", "no pieces", lambda f: (f / spm).touch())
    yield bad("spm cut", "SentencePiece", lambda f: (f / spm).write_bytes(_pieces("<unk>", "<s>", "</s>")[:-7]))
    yield bad("spm text", "SentencePiece", lambda f: (f / spm).write_bytes(b"\x0a\x03\x0a\x01\xff"))
    yield bad("spm varint", "SentencePiece", lambda f: (f / spm).write_bytes(b"\xff" * 99))


@pytest.mark.parametrize(("make", "says"), list(_bad_folders()))
def test_bad_files(tmp_path, make, says):
    make(tmp_path)
    with pytest.raises(TokenizerError, match=says):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json", "sentencepiece.bpe.model", "merges.txt", "vocab.json"])
def test_mutated_files_load_or_end_in_one_error(tmp_path, name):
    """Bytes changed, cut or doubled at random: no exception but ZooError gets out, a Rust panic neither."""
    random.seed(name)
    if name == "sentencepiece.bpe.model":
        (tmp_path / name).write_bytes(_pieces("<unk>", "<s>", "</s>", "▁a", "b", "▁hello"))
    elif name in {"merges.txt", "vocab.json"}:
        _roberta(tmp_path)
    else:
        Tokenizer.from_folder(_bert(tmp_path)).backend.save(str(tmp_path / "tokenizer.json"))
        if name == "vocab.txt":
            (tmp_path / "tokenizer.json").unlink()
    original = (tmp_path / name).read_bytes()
    outcomes = set()
    for _ in range(300):
        data = bytearray(original)
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(data))
            action = random.randrange(3)
            if action == 0:
                data[at] = random.randrange(256)
            elif action == 1:
                del data[at : at + random.randint(1, 9)]
            else:
                data[at:at] = data[at : at + random.randint(1, 9)]
        (tmp_path / name).write_bytes(data)
        try:
            Tokenizer.from_folder(tmp_path)("hello a ab", "b")
            outcomes.add("loads")
        except ZooError:
            outcomes.add("refused")
    assert outcomes == {"loads", "refused"}


def test_damaged_normalisation_rules(folder, tmp_path):
    """The character map of a SentencePiece model goes to Rust as it is."""
    source = folder("trocr-small")
    data = (source / "sentencepiece.bpe.model").read_bytes()
    rules = read_sentencepiece(data, source).charsmap
    at = data.index(rules)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(source / name, tmp_path)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(data[:at] + b"\xff" * 64 + data[at + 64 :])
    with pytest.raises(TokenizerError, match="normalisation rules"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("config", "typed"),
    [({}, True), ({"model_input_names": ["input_ids", "attention_mask"]}, False), ({"tokenizer_class": "Own"}, True)],
)
def test_segments_of_pairs(tmp_path, config, typed):
    """A tokenizer.json of an unknown class is taken by its own word; `model_input_names` may drop the segments."""
    Tokenizer.from_folder(_bert(tmp_path)).backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_folder(_write(tmp_path, tokenizer_config=config))
    assert tokenizer.is_pair_typed == typed
    assert tokenizer("hello", "hello").token_type_ids[0].tolist() == [0, 0, 0, int(typed), int(typed)]
