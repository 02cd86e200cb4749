"""DeBERTa's spm.model without a tokenizer.json, as microsoft/deberta-v3-base has it, against SentencePiece itself."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from zoo.errors import TokenizerError
from zoo.text.tokenizer import Tokenizer

spm = pytest.importorskip("sentencepiece", reason="needs sentencepiece, the reference")

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
TEXTS = [
    "The weather is lovely today.",
    "  spaces   between\tthem \n and  around  ",
    "Ｆｕｌｌ width, ﬁne ligatures, café and café",
    "東京 and 😀 (unknown)",
    "",
]


@pytest.fixture(scope="module")
def model():
    """A model in DeBERTa's layout: its special tokens first, but for the mask."""
    lines = [line for path in sorted(Path("docs").glob("*.md")) for line in path.read_text().splitlines() if line]
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines[:1500]),
        model_writer=out,
        vocab_size=500,
        hard_vocab_limit=False,
        minloglevel=2,
        **{f"{role}_id": i for i, role in enumerate(("pad", "bos", "eos", "unk"))},
        **dict(zip(("pad_piece", "bos_piece", "eos_piece", "unk_piece"), SPECIAL, strict=True)),
    )
    return out.getvalue()


def folder_of(path: Path, model: bytes, **config) -> Path:
    (path / "spm.model").write_bytes(model)
    (path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False, "vocab_type": "spm", **config}))
    return path


@pytest.mark.parametrize("lower", [False, True])
def test_ids_are_those_of_sentencepiece(model, lower, tmp_path):
    tokenizer = Tokenizer.from_folder(folder_of(tmp_path, model, do_lower_case=lower))
    theirs = spm.SentencePieceProcessor(model_proto=model)
    for text in TEXTS:
        wanted = theirs.encode((text.lower() if lower else text).strip())
        assert tokenizer(text).input_ids[0].tolist() == [1, *wanted, 2]
    pair = tokenizer("The weather", "is lovely")
    first, second = theirs.encode("the weather" if lower else "The weather"), theirs.encode("is lovely")
    assert pair.input_ids[0].tolist() == [1, *first, 2, *second, 2]
    assert pair.token_type_ids[0].tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert tokenizer.mask_token_id == theirs.get_piece_size() == tokenizer.vocab_size - 1
    assert tokenizer("a [MASK] b").input_ids[0].tolist().count(tokenizer.mask_token_id) == 1
    assert tokenizer.decode(tokenizer("The weather is lovely today.").input_ids[0]).strip() == (
        "the weather is lovely today." if lower else "The weather is lovely today."
    )


def test_punctuation_alone(model, tmp_path):
    tokenizer = Tokenizer.from_folder(folder_of(tmp_path, model, split_by_punct=True))
    assert "." in [token.strip("▁") for token in tokenizer.tokens(tokenizer("zoo.load").input_ids[0]) if token]


def test_another_order_of_pieces_is_refused(model, tmp_path):
    folder = folder_of(tmp_path, model.replace(b"[SEP]", b"[PES]"))
    with pytest.raises(TokenizerError, match=r"no '\[SEP\]' among its"):
        Tokenizer.from_folder(folder)
    (folder / "spm.model").write_bytes(b"nothing")
    with pytest.raises(TokenizerError, match="not a SentencePiece model"):
        Tokenizer.from_folder(folder)
