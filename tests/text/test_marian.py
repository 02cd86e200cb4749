"""Marian's two SentencePiece models and its vocab.json, against transformers in both directions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import zoo
from tests.text.tokenizer_samples import CORPUS, TEXTS, differences, sentencepiece_model, write
from zoo.errors import TokenizerError, ZooError
from zoo.text.tokenizer import Tokenizer

sentencepiece = pytest.importorskip("sentencepiece", reason="needs sentencepiece, which trains the models")
transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

CODES = (">>fr<<", ">>de<<")
FLAGS = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}


def _files(
    source: bytes, target: bytes, missing: int = 0, config: dict[str, Any] | None = None, order: int = 0
) -> dict[str, Any]:
    """A folder as Helsinki-NLP's: the ids of both models' pieces in an order of their own, but for some."""
    pieces: dict[str, None] = {}
    for data in (source, target):
        model = sentencepiece.SentencePieceProcessor(model_proto=data)
        own = [i for i in range(len(model)) if not model.is_control(i) and not model.is_unknown(i)]
        pieces.update(dict.fromkeys(map(model.id_to_piece, own)))
    known = sorted(pieces)
    random.Random(order).shuffle(known)
    tokens = ["</s>", "<unk>", *known[missing:], *CODES, "<pad>"]
    named = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de", **(config or {})}
    vocab = {token: i for i, token in enumerate(tokens)}
    return {"source.spm": source, "target.spm": target, "vocab.json": vocab, "tokenizer_config.json": named}


@pytest.fixture(scope="module")
def target():
    """A model of fewer pieces."""
    return sentencepiece_model(vocab_size=100, normalization_rule_name="nfkc")


MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "identity": {"normalization_rule_name": "identity"},
    "spaces": {"add_dummy_prefix": False, "remove_extra_whitespaces": False},
    "symbols": {"user_defined_symbols": ["<x>", "hello"]},
    "small letters": {"normalization_rule_name": "nmt_nfkc_cf"},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "pieces without an id": {"missing": 25},
    "tidy": {"config": {"clean_up_tokenization_spaces": True, "model_max_length": 20}},
    "added": {"config": {"added_tokens_decoder": {"0": {"content": "</s>", **FLAGS}}}},
}


@pytest.mark.parametrize(
    ("model", "settings"), [*((model, {}) for model in MODELS.values()), *(({}, more) for more in SETTINGS.values())]
)
def test_both_directions(model, settings, target, tmp_path):
    folder = write(tmp_path, _files(sentencepiece_model(**model), target, **settings))
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), Tokenizer.from_folder(folder)
    assert not differences(theirs, ours)
    for text in TEXTS:
        wanted = theirs(text_target=text)["input_ids"]
        assert ours.target(text, truncation=False).input_ids[0].tolist() == wanted, text
        assert ours.target.decode(wanted) == ours.decode(wanted) == theirs.decode(wanted, skip_special_tokens=True)
        for limit in (2, 5):
            wanted = theirs(text, truncation=True, max_length=limit)["input_ids"]
            assert ours(text, max_length=limit).input_ids[0].tolist() == wanted, text
    assert theirs.supported_language_codes == [*CODES]
    assert ours.all_special_ids == set(theirs.all_special_ids)


def test_bytes_of_unknown_letters(target, tmp_path):
    folder = write(tmp_path, _files(sentencepiece_model(byte_fallback=True), target, missing=3))
    theirs, ours = transformers.AutoTokenizer.from_pretrained(folder), Tokenizer.from_folder(folder)
    assert not differences(theirs, ours)


@pytest.mark.filterwarnings("ignore:.*max_new_tokens")
def test_a_checkpoint_translates_as_in_transformers(target, tmp_path):
    """From source.spm's pieces, the code of a language first, to target.spm's."""
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    files = _files(sentencepiece_model(), target)
    size = len(files["vocab.json"])
    config = transformers.MarianConfig(
        vocab_size=size, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, pad_token_id=size - 1, eos_token_id=0,
        decoder_start_token_id=size - 1, max_position_embeddings=64, init_std=1.0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval()
    model.save_pretrained(tmp_path)
    write(tmp_path, files)
    theirs, task = transformers.AutoTokenizer.from_pretrained(tmp_path), zoo.load(tmp_path)
    for text in (">>fr<< the cat sat", *CORPUS[:3]):
        ids = model.generate(**theirs(text, return_tensors="pt"), max_new_tokens=8, num_beams=1, do_sample=False)
        assert task(text, max_new_tokens=8, num_beams=1) == theirs.decode(ids[0], skip_special_tokens=True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"vocab.json": {"</s>": 0, "a": 1}}, "no '<unk>', the unknown token"),
        ({"vocab.json": {"</s>": 0, "<unk>": 0}}, "1 tokens share an id"),
        ({"vocab.json": {"</s>": "0", "<unk>": 1}}, "vocab.json"),
        ({"target.spm": None}, "target.spm"),
        ({"source.spm": b"no model"}, "source.spm: not a SentencePiece model"),
        ({"tokenizer_config.json": {"tokenizer_class": "MarianTokenizer", "separate_vocabs": True}}, "separate_vocabs"),
        (
            {"tokenizer_config.json": {"tokenizer_class": "MarianTokenizer", "sp_model_kwargs": {"nbest_size": 3}}},
            "sp_model_kwargs",
        ),
    ],
)
def test_what_is_refused(change, says, target, tmp_path):
    files = {**_files(sentencepiece_model(), target), **change}
    write(tmp_path, {name: content for name, content in files.items() if content is not None})
    with pytest.raises(ZooError, match=says):
        Tokenizer.from_folder(tmp_path)


def test_a_bpe_model_is_refused(target, tmp_path):
    write(tmp_path, _files(sentencepiece_model(model_type="bpe"), target))
    with pytest.raises(TokenizerError, match=r"source.spm: not a unigram model"):
        Tokenizer.from_folder(tmp_path)


def test_tokens_have_their_ids(target, tmp_path):
    files = _files(sentencepiece_model(), target)
    tokenizer = Tokenizer.from_folder(write(tmp_path, files))
    vocab = files["vocab.json"]
    assert tokenizer.vocabulary() == vocab
    assert tokenizer.vocab_size == len(vocab)
    assert tokenizer.id_of(">>fr<<") == vocab[">>fr<<"]
    assert tokenizer.tokens([*vocab.values(), 10**6]) == [*vocab, None]
    assert tokenizer.pad_token_id == len(vocab) - 1
    assert not tokenizer.fits_tokenizer_json
    batch = tokenizer(["hello world", "the"])
    assert batch.input_ids[1, -1] == tokenizer.pad_token_id
    assert np.array_equal(batch.attention_mask, batch.input_ids != tokenizer.pad_token_id)
    saved = tokenizer.save(tmp_path / "again")
    assert {path.name for path in saved} == set(files)
    assert (
        Tokenizer.from_folder(tmp_path / "again")("hello").input_ids.tolist() == tokenizer("hello").input_ids.tolist()
    )
