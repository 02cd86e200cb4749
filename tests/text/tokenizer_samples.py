"""Small vocabularies of every kind, texts that are hard for tokenizers, and how ours is compared with transformers'."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from zoo.text.tokenizer import Tokenizer

TEXTS = [
    *["hello world", "  hello   world  ", "hello\nworld\t x", "trailing ", "", "   ", "x" * 120, "HELLO Wörld"],
    *["straße ﬁne ①²", "\uff41\uff42\uff43 №", "你好世界 hello", "한국어 日本", "naïve cafe\u0301 ÀÉ", "e\u0301\u0301"],
    *["a\u200bb\u00a0c", "\u0000\ufffd tab\there", "\ufeffmark", "ΣΑΣ Σ", "İstanbul ŉ", "👩‍👩‍👧‍👦 family", "🦙🦙"],
    *["it ▁ is", "▁hello", "▁ ▁", "xyz☃ qq", "don't we're  I'll 12345 !!", "5,000 and 7,", "``quoted'' text"],
    *["can't . stop , now ? no !", "<mask> is <s> it", "hello<mask>world", "hello <mask> world", "[MASK] it's [CLS]"],
    *["</s>", "a </s> b", "<unk>x", "<pad> y", "<extra_id_0> and <extra_id_99>", "<x>a <x> b<x>", "the other the"],
    *["en_XX text", ">>fr<< text", ">>xx<< text", "a >>fr<< b", ">>fr<<", "<|endoftext|> a<|endoftext|>"],
    *["!hello\n \n <x>  é'</s> E[MASK]\t,5,<mask> you ▁ \n☃ the", "ﬁ  <unk>the\n\n'ß world. <s>\n ", "\n ▁ \n a☃ \n☃"],
]
CORPUS = [
    *["hello world this is the text of a corpus with the words that it has", "the cat sat on the mat and the dog"],
    *[
        "don't we're it's naïve café Straße 12345 5,000 7,",
        "你好世界 日本 한국어",
        "“quotes” and 'others' ``like these''",
    ],
    *["HELLO World, The QUICK brown fox. Is it? no !", "die katze sass auf der matte, wörter ÄÖÜ"],
] * 40
ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")


def sentencepiece_model(**options: Any) -> bytes:
    """A small SentencePiece model, a unigram one unless options say otherwise."""
    import sentencepiece

    out = io.BytesIO()
    options = {"vocab_size": 460 if options.get("byte_fallback") else 160, "character_coverage": 1.0, **options}
    sentencepiece.SentencePieceTrainer.train(  # type: ignore[attr-defined]
        sentence_iterator=iter(CORPUS), model_writer=out, hard_vocab_limit=False, minloglevel=2, **options
    )
    return out.getvalue()


def byte_level(*special: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The tokens and merges of a small byte-level BPE."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"vocab_size": 400, "special_tokens": list(special), "initial_alphabet": alphabet}
    backend.train_from_iterator(CORPUS, trainers.BpeTrainer(show_progress=False, **options))
    model = json.loads(backend.to_str())["model"]
    return model["vocab"], [(left, right) for left, right in model["merges"]]


def words() -> list[str]:
    """The tokens of a small WordPiece: letters, words, and ends of words."""
    found = sorted({word for line in CORPUS for word in re.findall(r"\w+", line)})
    letters = sorted({letter for line in CORPUS for letter in line if letter != " "})
    ends = [f"##{end}" for end in (*letters, "er", "the", "llo", "ing", "rld")]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys([*letters, *ends, *found[::2]])]


def write(folder: Path, files: dict[str, Any]) -> Path:
    """Write bytes, texts or JSON as files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def differences(theirs: Any, ours: Tokenizer, texts: list[str] = TEXTS, decodes: bool = True) -> list[Any]:
    """What differs between transformers' tokenizer and ours: (what, for which text, theirs, ours)."""
    found: list[Any] = []

    def equal(what: str, of: object, wanted: object, got: object) -> None:
        if wanted != got:
            found.append((what, of, wanted, got))

    for i, text in enumerate(texts):
        wanted, got = theirs(text)["input_ids"], ours(text, truncation=False)
        equal("ids", text, wanted, got.input_ids[0].tolist())
        if theirs.is_fast:
            more = theirs(text, return_offsets_mapping=True, return_special_tokens_mask=True)
            equal("offsets", text, [list(offset) for offset in more["offset_mapping"]], got.offsets[0].tolist())
            equal("specials", text, more["special_tokens_mask"], got.special_tokens_mask[0].astype(int).tolist())
        for skip in (True, False) if decodes else ():
            equal(
                f"decoded, {skip}",
                wanted,
                theirs.decode(wanted, skip_special_tokens=skip),
                ours.decode(wanted, skip_special_tokens=skip),
            )
        pair = texts[i * 7 % len(texts)] or "a"
        both, got = theirs(text, pair), ours(text, pair, truncation=False)
        equal("ids of pair", (text, pair), both["input_ids"], got.input_ids[0].tolist())
        if "token_type_ids" in both:
            equal("segments", (text, pair), both["token_type_ids"], got.token_type_ids[0].tolist())
    for role in ROLES:
        for name in (f"{role}_token", f"{role}_token_id"):
            equal(name, None, getattr(theirs, name), getattr(ours, name))
    for name in ("padding_side", "truncation_side"):
        equal(name, None, getattr(theirs, name), getattr(ours, name))
    limit = theirs.model_max_length
    equal("model_max_length", None, limit if limit < 10**9 else None, ours.model_max_length)
    equal("size", None, len(theirs), ours.vocab_size)
    equal("vocabulary", None, dict(theirs.get_vocab()), ours.vocabulary())
    return found
