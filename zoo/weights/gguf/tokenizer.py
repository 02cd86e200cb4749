"""GGUFTokenizer: from a GGUF file's tokens to the tokenizer.json and tokenizer_config.json of the same tokenizer.

Their parts are then checked like those of any checkpoint's files.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import ConfigError, TokenizerError, nearest
from .metadata import Metadata
from .splits import split_of

# Of `tokenizer.ggml.token_type`.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
# The role's name here and in the keys, which spell it so.
ROLES = {
    "bos": "bos",
    "eos": "eos",
    "unk": "unknown",
    "sep": "seperator",
    "pad": "padding",
    "cls": "cls",
    "mask": "mask",
}
# Control tokens that end an answer, as llama.cpp knows them by their texts.
ENDS = ("<|eot_id|>", "<|im_end|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>")
SPACE = "▁"
BYTES = [f"<0x{i:02X}>" for i in range(256)]
HUGGING_FACE = "tokenizer.huggingface.json"


class Vocabulary:
    """The vocabulary in the metadata."""

    def __init__(self, m: Metadata):
        self.m = m
        self.texts: list[str] = m.texts("tokenizer.ggml.tokens")
        found = _token_numbers(m, "token_type", len(self.texts), "iu")
        self.types = np.full(len(self.texts), NORMAL) if found is None else found
        if len(set(self.texts)) != len(self.texts):
            raise TokenizerError(f"tokenizer.ggml.tokens: {len(self.texts) - len(set(self.texts))} texts occur twice")

    def of(self, *kinds: int) -> Iterable[tuple[int, str]]:
        return ((int(i), self.texts[i]) for i in np.flatnonzero(np.isin(self.types, kinds)))

    def role(self, name: str, default: int | None = None) -> str | None:
        """The token of a role; llama.cpp's default where the file names none, and the text is as a control token's."""
        index = self.m.integer(f"tokenizer.ggml.{ROLES[name]}_token_id", None)
        if index is None and default is not None and default < len(self.texts) and self.types[default] != NORMAL:
            index = default
        return self.texts[index] if index is not None and index < len(self.texts) else None

    def scores(self) -> list[float]:
        found = _token_numbers(self.m, "scores", len(self.texts), "fiu")
        if found is None:
            raise TokenizerError("the metadata has no 'tokenizer.ggml.scores', which a tokenizer of pieces needs")
        if not np.isfinite(found).all():
            raise TokenizerError("tokenizer.ggml.scores: not all are finite numbers")
        return found.astype(np.float64).tolist()


def _token_numbers(m: Metadata, name: str, count: int, kinds: str) -> np.ndarray | None:
    found = m.numbers(f"tokenizer.ggml.{name}", None)
    if found is not None and (len(found) != count or found.dtype.kind not in kinds):
        raise TokenizerError(
            f"tokenizer.ggml.{name} has {len(found)} items of type {found.dtype}, expected one for each token ({count})"
        )
    return found


class GGUFTokenizer:
    """The tokenizer of a GGUF file; TokenizerError if it is damaged or of a kind that is not implemented."""

    def __init__(self, m: Metadata):
        self.m = m
        with _as_tokenizer_errors():
            model = m.text("tokenizer.ggml.model")
            if model not in _MODELS:
                raise TokenizerError(
                    f"tokenizer.ggml.model is {model[:100]!r}, which is not implemented, only {', '.join(_MODELS)} are"
                    f"{nearest(model, _MODELS)}"
                )
            self.tokens = Vocabulary(m)
            roles_of, self._make = _MODELS[model]
            self.roles = roles_of(self.tokens)

    def tokenizer_json(self) -> bytes | None:
        """The tokenizer.json that the file itself holds; None if it has only tokens."""
        with _as_tokenizer_errors():
            text = self.m.text(HUGGING_FACE, None)
        return text.encode() if text else None

    def rename(self, index: int, text: str) -> None:
        """Call a token otherwise, and let no text be cut through it."""
        old, self.tokens.texts = self.tokens.texts[index], list(self.tokens.texts)
        self.tokens.texts[index] = text
        self.tokens.types = self.tokens.types.copy()
        self.tokens.types[index] = CONTROL
        self.roles = {role: text if token == old else token for role, token in self.roles.items()}

    def json(self) -> dict[str, Any]:
        """The object of a tokenizer.json, made of the tokens."""
        with _as_tokenizer_errors():
            return self._make(self.tokens, self.roles)

    def config(self, positions: int) -> dict[str, Any]:
        """The object of a tokenizer_config.json; positions: the tokens of the longest text."""
        config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": positions}
        config |= {f"{role}_token": token for role, token in self.roles.items() if token is not None}
        if template := _templates(self.m):
            config["chat_template"] = template
        return config


@contextmanager
def _as_tokenizer_errors() -> Iterator[None]:
    try:
        yield
    except ConfigError as e:
        raise TokenizerError(str(e)) from None


def _templates(m: Metadata) -> Any:
    """A text, or several by name; None where there is none."""
    main = m.text("tokenizer.chat_template", None)
    names = m.texts("tokenizer.chat_templates", [])
    if not names:
        return main
    named = [{"name": name, "template": m.text(f"tokenizer.chat_template.{name}")} for name in names]
    return named if main is None else [{"name": "default", "template": main}, *named]


def _added_tokens(tokens: Vocabulary) -> list[dict[str, Any]]:
    """Control and user-defined tokens, and what stands for an unknown one, which no text is cut through."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [
        {"id": i, "content": text, **flags, "special": bool(tokens.types[i] != USER_DEFINED)}
        for i, text in tokens.of(CONTROL, USER_DEFINED, UNKNOWN)
        if text
    ]


def _template(tokens: Vocabulary, before: str | None, after: str | None) -> dict[str, Any] | None:
    if before is None and after is None:
        return None

    def frame(name: str, kind: int) -> list[Any]:
        tokens_of = [[{"SpecialToken": {"id": t, "type_id": kind}}] if t else [] for t in (before, after)]
        return [*tokens_of[0], {"Sequence": {"id": name, "type_id": kind}}, *tokens_of[1]]

    ids = {t: tokens.texts.index(t) for t in (before, after) if t}
    special = {token: {"id": token, "ids": [i], "tokens": [token]} for token, i in ids.items()}
    pair = [*frame("A", 0), *frame("B", 1)]
    return {"type": "TemplateProcessing", "single": frame("A", 0), "pair": pair, "special_tokens": special}


def _ends(tokens: Vocabulary, roles: dict[str, str | None], bos: bool, eos: bool) -> dict[str, Any] | None:
    """The post-processor that adds special tokens, by the file's flags, or the defaults of its kind of model."""
    found: list[str | None] = []
    for name, default in (("bos", bos), ("eos", eos)):
        wanted = tokens.m.flag(f"tokenizer.ggml.add_{name}_token", default)
        if wanted and roles[name] is None:
            raise TokenizerError(f"tokenizer.ggml.add_{name}_token is true, and there is no {ROLES[name]}_token_id")
        found.append(roles[name] if wanted else None)
    return _template(tokens, *found)


def _json(tokens: Vocabulary, model: dict[str, Any], **parts: Any) -> dict[str, Any]:
    empty = {"truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "post_processor": None}
    return {"version": "1.0", **empty, "added_tokens": _added_tokens(tokens), **parts, "model": model}


def _roles(tokens: Vocabulary) -> dict[str, str | None]:
    return {role: tokens.role(role) for role in ROLES}


def _byte_level(tokens: Vocabulary, roles: dict[str, str | None]) -> dict[str, Any]:
    """Byte-level BPE: tokens in GPT-2's letters for bytes, merges, and the name of how words are cut."""
    split = split_of(tokens.m.text("tokenizer.ggml.pre", None))
    merges = [_pair(i, merge) for i, merge in enumerate(tokens.m.texts("tokenizer.ggml.merges"))]
    vocab = {text: i for i, text in tokens.of(NORMAL, CONTROL, USER_DEFINED, UNKNOWN, BYTE)}
    model = {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": split.ignore_merges}
    return _json(
        tokens,
        model,
        pre_tokenizer=split.pre_tokenizer,
        post_processor=_ends(tokens, roles, split.adds_bos, False),
        decoder={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    )


def _pair(i: int, merge: str) -> list[str]:
    left, space, right = merge.partition(" ")
    if not (left and space and right) or " " in right:
        raise TokenizerError(
            f"tokenizer.ggml.merges[{i}] is {merge[:80]!r}, expected two tokens and a space between them"
        )
    return [left, right]


def _of_pieces(tokens: Vocabulary) -> dict[str, str | None]:
    return {role: tokens.role(role, {"unk": 0, "bos": 1, "eos": 2}.get(role)) for role in ROLES}


def _pieces(tokens: Vocabulary, roles: dict[str, str | None]) -> dict[str, Any]:
    """SentencePiece's BPE: the pieces' scores say which two are joined first."""
    scores = tokens.scores()
    normal = {text: i for i, text in tokens.of(NORMAL)}
    vocab = {text: i for i, text in tokens.of(NORMAL, CONTROL, USER_DEFINED, UNKNOWN, BYTE)}
    found = []
    for text, i in normal.items():
        if len(text) > MAX_PIECE:
            raise TokenizerError(f"tokenizer.ggml.tokens[{i}] has {len(text)} characters, at most {MAX_PIECE}")
        parts = [(text[:n], text[n:]) for n in range(1, len(text))]
        whole = [(normal[a], normal[b], a, b) for a, b in parts if a in normal and b in normal]
        found += [(-scores[i], left, right, a, b) for left, right, a, b in sorted(whole)]
    found.sort(key=lambda merge: merge[0])
    if roles["unk"] is None:
        raise TokenizerError("the metadata names no tokenizer.ggml.unknown_token_id")
    has_bytes = all(text in vocab for text in BYTES)
    model = {"type": "BPE", "vocab": vocab, "merges": [[a, b] for *_, a, b in found], "unk_token": roles["unk"]}
    prefix = tokens.m.flag("tokenizer.ggml.add_space_prefix", True)
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    before = [{"type": "Prepend", "prepend": SPACE}] if prefix else []
    after = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefix else []
    letters = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    decoders = [letters, {"type": "ByteFallback"}, {"type": "Fuse"}, *after]
    return _json(
        tokens,
        {**model, "byte_fallback": has_bytes, "fuse_unk": True},
        normalizer={"type": "Sequence", "normalizers": [*before, spaces]},
        post_processor=_ends(tokens, roles, True, False),
        decoder={"type": "Sequence", "decoders": decoders},
    )


MAX_PIECE = 256  # characters, each of which may be where two others join


def _of_unigram(tokens: Vocabulary) -> dict[str, str | None]:
    unknown = next((text for _, text in tokens.of(UNKNOWN)), None)
    if unknown is None:
        raise TokenizerError("tokenizer.ggml.token_type: no token is the unknown one, which Unigram needs")
    return {**_roles(tokens), "unk": unknown}


def _unigram(tokens: Vocabulary, roles: dict[str, str | None]) -> dict[str, Any]:
    """SentencePiece's Unigram, as XLM-R and T5 have it."""
    charsmap = tokens.m.numbers("tokenizer.ggml.precompiled_charsmap", None)
    normalizers: list[Any] = []
    if charsmap is not None and len(charsmap):
        rules = base64.b64encode(charsmap.tobytes()).decode()
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": rules})
    if tokens.m.flag("tokenizer.ggml.remove_extra_whitespaces", False):
        normalizers.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    scheme = "always" if tokens.m.flag("tokenizer.ggml.add_space_prefix", True) else "never"
    space = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": True}
    pieces = list(map(list, zip(tokens.texts, tokens.scores(), strict=True)))
    return _json(
        tokens,
        {"type": "Unigram", "unk_id": tokens.texts.index(str(roles["unk"])), "vocab": pieces, "byte_fallback": False},
        normalizer={"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]},
        post_processor=_ends(tokens, roles, False, True),
        decoder=space,
    )


def _of_words(tokens: Vocabulary) -> dict[str, str | None]:
    """BERT's; what begins a text may be called so, or cls."""
    stated = _roles(tokens)
    known = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
    roles = {role: stated[role] or (text if text in tokens.texts else None) for role, text in known.items()}
    roles["cls"] = stated["cls"] or stated["bos"] or roles["cls"]
    for role in ("unk", "cls", "sep"):
        if roles[role] is None:
            raise TokenizerError(f"the metadata names no tokenizer.ggml.{ROLES[role]}_token_id")
    return roles


def _word_piece(tokens: Vocabulary, roles: dict[str, str | None]) -> dict[str, Any]:
    """The file has words with a mark before them and the rest without, where vocab.txt marks the rest."""
    by_text = {text: i for i, text in enumerate(tokens.texts)}
    special = {token for token in roles.values() if token is not None}
    vocab: dict[str, int] = {}
    for i, text in enumerate(tokens.texts):
        if text.startswith(SPACE):
            text = text[1:]
        elif text not in special and tokens.types[i] == NORMAL and not (text[:1] == "[" and text[-1:] == "]"):
            text = "##" + text
        if vocab.setdefault(text, i) != i:
            raise TokenizerError(f"tokenizer.ggml.tokens: {vocab[text]} and {i} are both the word piece {text[:80]!r}")
    # The file does not say whether texts become lower case, but a vocabulary without one capital letter does.
    words = (text for text in vocab if text not in special and text[:1] != "[")
    lower = tokens.m.flag("tokenizer.ggml.normalizer.lowercase", not any(text != text.lower() for text in words))
    accents = tokens.m.flag("tokenizer.ggml.normalizer.strip_accents", None)
    ids = {roles[role]: by_text[str(roles[role])] for role in ("cls", "sep")}
    cls, sep = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ids)
    a, b = ({"Sequence": {"id": name, "type_id": kind}} for kind, name in enumerate("AB"))
    end = {"SpecialToken": {"id": roles["sep"], "type_id": 1}}
    post = {"type": "TemplateProcessing", "single": [cls, a, sep], "pair": [cls, a, sep, b, end]}
    post["special_tokens"] = {token: {"id": token, "ids": [i], "tokens": [token]} for token, i in ids.items()}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [{"id": by_text[t], "content": t, **flags} for t in sorted(special, key=lambda t: by_text[t])]
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    return _json(
        tokens,
        {
            "type": "WordPiece",
            "unk_token": roles["unk"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
        added_tokens=added,
        normalizer={**normalizer, "strip_accents": accents, "lowercase": lower},
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor=post,
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
    )


# tokenizer.ggml.model -> its special tokens by role, and its tokenizer.json.
_MODELS = {
    "gpt2": (_roles, _byte_level),
    "llama": (_of_pieces, _pieces),
    "t5": (_of_unigram, _unigram),
    "bert": (_of_words, _word_piece),
}


def end_tokens(m: Metadata, vocabulary: int) -> list[int]:
    """The ids that end an answer: of the end of a text, of a turn and of a message."""
    named = [m.integer(f"tokenizer.ggml.{role}_token_id", None) for role in ("eos", "eot", "eom")]
    tokens, types = m.texts("tokenizer.ggml.tokens", []), m.numbers("tokenizer.ggml.token_type", np.zeros(0))
    control = {tokens[i]: int(i) for i in np.flatnonzero(types[: len(tokens)] == CONTROL)}
    found = [*named, *(control.get(text) for text in ENDS)]
    return sorted({i for i in found if i is not None and i < vocabulary})
