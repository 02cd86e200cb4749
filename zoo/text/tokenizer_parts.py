"""What transformers' tokenizer classes say of a text, as the parts of a tokenizer.json, from their settings.

Each function is named after the class: the model's options, normalizer, pre_tokenizer and decoder.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import TokenizerError
from .sentencepiece_model import SentencePieceModel
from .sentencepiece_normalizer import Segments, SentencePieceNormalizer
from .vocabulary_files import Vocabulary

Part = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What a class makes its parts from."""

    config: Mapping[str, Any]  # tokenizer_config.json
    roles: Mapping[str, str]  # "unk" -> its text
    vocabulary: Vocabulary

    def flag(self, name: str, default: bool) -> bool:
        """A setting that is true or false."""
        value = self.config.get(name, default)
        if not isinstance(value, bool):
            raise TokenizerError(f"tokenizer_config.json: {name} is {value!r}, expected true or false")
        return value

    def choice(self, name: str) -> bool | None:
        """A setting that is true, false or null."""
        return None if self.config.get(name) is None else self.flag(name, False)

    @property
    def charsmap(self) -> list[Part]:
        rules = self.vocabulary.charsmap
        return [] if rules is None else [{"type": "Precompiled", "precompiled_charsmap": rules}]

    def index(self, token: str, default: int | None) -> int | None:
        """The place of a piece whose score is 0 in a vocabulary of pieces."""
        found = (i for i, piece in enumerate(self.vocabulary.model["vocab"]) if [*piece] == [token, 0.0])
        return next(found, default)


def sequence(kind: str, *parts: Part) -> Part:
    """Parts of a kind, "normalizers", "pretokenizers" or "decoders", one after the other."""
    return {"type": "Sequence", kind: list(parts)}


def replace(old: str, new: str, regex: bool = False) -> Part:
    return {"type": "Replace", "pattern": {"Regex" if regex else "String": old}, "content": new}


def byte_level(prefix: bool = True, trim: bool = True, regex: bool = True) -> Part:
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": regex}


def metaspace(scheme: str, split: bool = True) -> Part:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def split(pattern: Part, behavior: str, invert: bool = False) -> Part:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


BYTE_FALLBACK = (replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"})  # in the order of decoding
WORDS = {"type": "WhitespaceSplit"}
BYTE_BPE = {"type": "BPE", "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False}


def bert(s: Settings) -> Part:
    return {
        "model": {"type": "WordPiece", "unk_token": s.roles["unk"], "max_input_chars_per_word": 100},
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": s.flag("tokenize_chinese_chars", True),
            "strip_accents": s.choice("strip_accents"),
            "lowercase": s.flag("do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    }


def byte_level_bpe(s: Settings) -> Part:
    prefix = byte_level(s.flag("add_prefix_space", False))
    return {"model": BYTE_BPE, "normalizer": None, "pre_tokenizer": prefix, "decoder": byte_level()}


def byt5(s: Settings) -> Part:
    before = byte_level(prefix=False, regex=False)
    return {"model": BYTE_BPE, "normalizer": None, "pre_tokenizer": before, "decoder": byte_level()}


def canine(s: Settings) -> Part:
    """Characters one by one, put together as they are."""
    return {
        "model": {"type": "WordLevel", "unk_token": s.roles["pad"]},  # of which there is never need
        "normalizer": None,
        "pre_tokenizer": split({"Regex": r"[\s\S]"}, "Isolated"),
        "decoder": {"type": "Fuse"},
    }


def esm(s: Settings) -> Part:
    return {
        "model": {"type": "WordLevel", "unk_token": s.roles["unk"]},
        "normalizer": None,
        "pre_tokenizer": WORDS,
        "decoder": None,
    }


def layoutlmv3(s: Settings) -> Part:
    return {**byte_level_bpe(s), "pre_tokenizer": byte_level(s.flag("add_prefix_space", True))}


def cohere(s: Settings) -> Part:
    prefix = s.flag("add_prefix_space", False)
    digits = {"type": "Digits", "individual_digits": True}
    return {
        "model": BYTE_BPE,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": sequence("pretokenizers", digits, byte_level(prefix)),
        "decoder": byte_level(prefix),
    }


def gpt_neox(s: Settings) -> Part:
    prefix = byte_level(s.flag("add_prefix_space", False), s.flag("trim_offsets", True))
    return {**byte_level_bpe(s), "normalizer": {"type": "NFC"}, "pre_tokenizer": prefix}


QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def qwen2(s: Settings) -> Part:
    letters = byte_level(bool(s.choice("add_prefix_space")), regex=False)
    words = split({"Regex": QWEN2_WORDS}, "Isolated")
    return {
        "model": BYTE_BPE,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": sequence("pretokenizers", words, letters),
        "decoder": byte_level(),
    }


CLIP_WORDS = (
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"  # with their ends
)


def clip(s: Settings) -> Part:
    words = split({"Regex": CLIP_WORDS}, "Removed", invert=True)
    return {
        "model": {**BYTE_BPE, "end_of_word_suffix": "</w>", "unk_token": s.roles["unk"]},
        "normalizer": sequence("normalizers", {"type": "NFC"}, replace(r"\s+", " ", True), {"type": "Lowercase"}),
        "pre_tokenizer": sequence("pretokenizers", words, byte_level(False)),
        "decoder": byte_level(),
    }


def llama(s: Settings) -> Part:
    prefix = s.choice("add_prefix_space") is not False
    scheme = ("always" if s.choice("legacy") else "first") if prefix else "never"
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    return {
        "model": {"type": "BPE", "fuse_unk": True, "byte_fallback": True},
        "normalizer": None,
        "pre_tokenizer": metaspace(scheme, split=False),
        "decoder": sequence("decoders", *BYTE_FALLBACK, *strip),
    }


def gemma(s: Settings) -> Part:
    return {
        "model": {"type": "BPE", "fuse_unk": True, "byte_fallback": True, "unk_token": s.roles["unk"]},
        "normalizer": replace(" ", "▁"),
        "pre_tokenizer": split({"String": " "}, "MergedWithPrevious"),
        "decoder": sequence("decoders", *BYTE_FALLBACK),
    }


def siglip2(s: Settings) -> Part:
    return {**gemma(s), "normalizer": sequence("normalizers", {"type": "Lowercase"}, replace(" ", "▁"))}


def _pieces(unk_id: int | None, normalizer: Part | None, scheme: str = "always", words: bool = True) -> Part:
    """The parts of Unigram's classes."""
    space = metaspace(scheme)
    return {
        "model": {"type": "Unigram", "unk_id": unk_id, "byte_fallback": False},
        "normalizer": normalizer,
        "pre_tokenizer": sequence("pretokenizers", WORDS, space) if words else space,
        "decoder": space,
    }


def _adds_space(s: Settings) -> bool:
    """True if a text gets a space before it: unless that is false or null."""
    return "add_prefix_space" not in s.config or bool(s.choice("add_prefix_space"))


def _prefix(s: Settings) -> str:
    return "always" if _adds_space(s) else "never"


def xlm_roberta(s: Settings) -> Part:
    return _pieces(3, next(iter(s.charsmap), None), _prefix(s))


def camembert(s: Settings) -> Part:
    places = (i for i, piece in enumerate(s.vocabulary.model["vocab"]) if piece[0] == s.roles["unk"])
    return _pieces(next(places, 0), next(iter(s.charsmap), None), _prefix(s))


QUOTES = (replace("``", '"'), replace("''", '"'))
WITHOUT_ACCENTS = ({"type": "NFKD"}, {"type": "StripAccents"})


def albert(s: Settings) -> Part:
    accents = [] if s.flag("keep_accents", False) else WITHOUT_ACCENTS
    lower = [{"type": "Lowercase"}] if s.flag("do_lower_case", True) else []
    return _pieces(1, sequence("normalizers", *QUOTES, *accents, *lower, *s.charsmap), _prefix(s))


def xlnet(s: Settings) -> Part:
    lower = [{"type": "Lowercase"}] if s.flag("do_lower_case", False) else []
    unk_id = s.config.get("unk_id", s.vocabulary.source.ids["unk"] if s.vocabulary.source else 0)
    return _pieces(unk_id, sequence("normalizers", *QUOTES, *WITHOUT_ACCENTS, *lower, *s.charsmap))


def t5(s: Settings) -> Part:
    return _pieces(2, next(iter(s.charsmap), None))


def pegasus(s: Settings) -> Part:
    unk_id = s.index(s.roles["unk"], None)
    if unk_id is None:
        raise TokenizerError(f"{s.vocabulary.path}: no {s.roles['unk']!r} with the score 0 among its pieces")
    first = s.charsmap or [replace(r"\n", " ", True)]
    return _pieces(unk_id, sequence("normalizers", *first, replace(" {2,}", " ", True)), words=False)


def big_bird(s: Settings) -> Part:
    return _pieces(s.index(s.roles["unk"], 100), replace(" {2,}", "▁", True), _prefix(s), words=False)


def mbart(s: Settings) -> Part:
    return _pieces(3, None)


def mbart50(s: Settings) -> Part:
    return _pieces(3, sequence("normalizers", *s.charsmap, replace(" {2,}", " ", True)), words=False)


def nllb(s: Settings) -> Part:
    rules = sequence("normalizers", *s.charsmap, replace(" {2,}", " ", True)) if s.charsmap else None
    space = metaspace("always")
    return {
        "model": {"type": "BPE", "fuse_unk": True, "byte_fallback": False, "unk_token": s.roles["unk"]},
        "normalizer": rules,
        "pre_tokenizer": space,
        "decoder": space,
    }


def deberta_v2(s: Settings) -> Part:
    """As in transformers 4 where there are rules: those of 5.23 leave them out, and letters become unknown."""
    lower = [{"type": "Lowercase"}] if s.flag("do_lower_case", False) else []
    if s.charsmap:
        steps = [{"type": "Strip", "strip_left": True, "strip_right": True}, *s.charsmap, replace(" {2,}", " ", True)]
    else:
        end = {"type": "Strip", "strip_left": False, "strip_right": True}
        steps = [replace(r"\s{2,}|[\n\r\t]", " ", True), {"type": "NFC"}, end]
    punctuation = [{"type": "Punctuation", "behavior": "Isolated"}] if s.flag("split_by_punct", False) else []
    space = metaspace("always" if _adds_space(s) else "first")
    unk_id = s.config.get("unk_id", s.vocabulary.source.ids["unk"] if s.vocabulary.source else 1)
    return {
        **_pieces(s.index(s.roles["unk"], unk_id), sequence("normalizers", *lower, *steps)),
        "pre_tokenizer": sequence("pretokenizers", *punctuation, space),
        "decoder": space,
    }


MISTRAL_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def mistral_words(pre_tokenizer: Part | None) -> Part:
    """The pre-tokenizer of a Mistral file whose own splits words wrongly, which fix_mistral_regex asks for."""
    words = split({"Regex": MISTRAL_WORDS}, "Isolated")
    if pre_tokenizer is not None and pre_tokenizer.get("type") == "Sequence":
        return sequence("pretokenizers", words, *pre_tokenizer["pretokenizers"][1:])
    if pre_tokenizer is None or pre_tokenizer.get("type") == "Metaspace":
        return sequence("pretokenizers", words, byte_level(False, regex=False))
    return sequence("pretokenizers", words, pre_tokenizer)


def of_sentencepiece(s: Settings) -> Part:
    """The parts of a SentencePiece model that no class reads: what its file says, without a space before a text."""
    source = s.vocabulary.source
    fallback = source is not None and source.byte_fallback
    if s.vocabulary.model["type"] == "BPE":
        unk = source.names["unk"] if source is not None else "<unk>"
        model: Part = {"type": "BPE", "unk_token": unk, "fuse_unk": True, "byte_fallback": fallback}
    else:
        model = {"type": "Unigram", "unk_id": s.vocabulary.model["unk_id"], "byte_fallback": fallback}
    return {
        "model": model,
        "normalizer": sequence("normalizers", *s.charsmap, replace(" ", "▁")),
        "pre_tokenizer": None,
        "decoder": sequence("decoders", *(BYTE_FALLBACK if fallback else BYTE_FALLBACK[:1])),
    }


def siglip(s: Settings) -> Part:
    """Of texts that `SiglipTexts` has made."""
    source = s.vocabulary.source
    if source is None or not source.escape_whitespaces:
        raise TokenizerError(f"{s.vocabulary.path}: SigLIP needs a SentencePiece model whose spaces are '▁'")
    return {
        "model": {"type": "Unigram", "unk_id": source.ids["unk"], "byte_fallback": source.byte_fallback},
        "normalizer": None,
        "pre_tokenizer": None,
        "decoder": metaspace("always"),
    }


class ByT5Texts:
    """A text without an end that it types: it is the one that comes after each."""

    def __init__(self, s: Settings, backend: Any):
        self.end = s.roles["eos"]
        tokens = backend.get_added_tokens_decoder().values()
        own = next((token for token in tokens if token.content == self.end), None)
        self.left, self.right = (own.lstrip, own.rstrip) if own is not None else (False, False)

    def __call__(self, text: str) -> str:
        whole = text.rstrip() if self.right else text
        if not whole.endswith(self.end):
            return text
        rest = whole.removesuffix(self.end)
        return rest.rstrip() if self.left else rest


class SiglipTexts:
    """A text as SigLIP reads it: in small letters, without punctuation, with a space before it."""

    def __init__(self, s: Settings, backend: Any):
        self.lower = s.flag("do_lower_case", True)
        self.normalizer = SentencePieceNormalizer(s.vocabulary.source or SentencePieceModel([]))
        added = (token.content for token in backend.get_added_tokens_decoder().values())
        self.segments, self.end = Segments(added), s.roles.get("eos")

    def __call__(self, text: str) -> str:
        parts = self.segments.split("▁" + text.replace("▁", " "))
        if len(parts) > 1 and parts[-2] == self.end and not parts[-1].strip():
            del parts[-2:]  # an end that a text types is the one that comes after each
        parts[::2] = map(self._read, parts[::2])
        return "".join(parts)

    def _read(self, text: str) -> str:
        text = (text.lower() if self.lower else text).translate(_NO_PUNCTUATION)
        return self.normalizer(" ".join(text.split()), begins=False)


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
