"""The special tokens that tokenizers put around a text and a pair of texts, by transformers' classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TokenizerError, nearest

if TYPE_CHECKING:
    import tokenizers

Token = tuple[str, int]


class Tokens(NamedTuple):
    """A tokenizer without its post-processor, and what decides it."""

    backend: tokenizers.Tokenizer
    roles: Mapping[str, str]
    config: Mapping[str, Any]  # tokenizer_config.json
    is_file: bool  # True if there is a tokenizer.json
    where: object  # for messages

    def of(self, role: str) -> Token:
        """The token of a role, with its id."""
        if role not in self.roles:
            raise TokenizerError(f"{self.where}: no {role}_token, which goes around each text")
        return self.token_and_id(self.roles[role])

    def token_and_id(self, token: str) -> Token:
        index = self.backend.token_to_id(token)
        if index is None:
            raise TokenizerError(f"{self.where}: {token!r}, which goes around each text, is not in the vocabulary")
        return token, index


Maker = Callable[[Tokens], Any]  # -> a post-processor; None: as it is in the file


def _template(where: object, single: list[str], pair: list[str], tokens: list[Token]) -> Any:
    """A post-processor; $A and $B are the texts, and ":1" after a piece is its segment."""
    from tokenizers import processors

    from .tokenizer_json import translate_rust_errors

    with translate_rust_errors(f"{where}: special tokens {', '.join(repr(token) for token, _ in tokens)}"):
        return processors.TemplateProcessing(single=single, pair=pair, special_tokens=tokens)


def cls_sep(t: Tokens) -> Any:
    """[CLS] A [SEP], and B [SEP] in segment 1."""
    cls, sep = t.of("cls"), t.of("sep")
    single = [f"{cls[0]}:0", "$A:0", f"{sep[0]}:0"]
    return _template(t.where, single, [*single, "$B:1", f"{sep[0]}:1"], [cls, sep])


def cls_sep_one_segment(t: Tokens) -> Any:
    """[CLS] A [SEP], and B [SEP], all in one segment."""
    cls, sep = t.of("cls"), t.of("sep")
    single = [cls[0], "$A", sep[0]]
    return _template(t.where, single, [*single, "$B", sep[0]], [cls, sep])


def cls_sep_sep(t: Tokens) -> Any:
    """[CLS] A [SEP], and [SEP] B [SEP], all in one segment."""
    cls, sep = t.of("cls"), t.of("sep")
    single = [cls[0], "$A", sep[0]]
    return _template(t.where, single, [*single, sep[0], "$B", sep[0]], [cls, sep])


def cls_eos(t: Tokens) -> Any:
    """<cls> A <eos>, and B <eos>, all in one segment."""
    cls, eos = t.of("cls"), t.of("eos")
    single = [cls[0], "$A", eos[0]]
    return _template(t.where, single, [*single, "$B", eos[0]], [cls, eos])


def albert(t: Tokens) -> Any:
    """That of the file, or else what flags ask for, or else [CLS] A [SEP]."""
    if t.backend.post_processor is not None:
        return None
    return by_flags(t) if {"add_bos_token", "add_eos_token"} & t.config.keys() else cls_sep(t)


def _roberta(t: Tokens, begin: str, end: str, trim: bool, prefix: bool) -> Any:
    from tokenizers import processors

    return processors.RobertaProcessing(t.of(end), t.of(begin), trim_offsets=trim, add_prefix_space=prefix)


def roberta(t: Tokens) -> Any:
    """<s> A </s>, and </s> B </s>, with offsets as the settings say."""
    flags = [t.config.get("trim_offsets", True), t.config.get("add_prefix_space", False)]
    for name, value in zip(("trim_offsets", "add_prefix_space"), flags, strict=True):
        if not isinstance(value, bool):
            raise TokenizerError(f"tokenizer_config.json: {name} is {value!r}, expected true or false")
    return _roberta(t, "cls", "sep", *flags)


def layoutlmv3(t: Tokens) -> Any:
    """<s> A </s>, and </s> B </s>, whose words all have a space before them, the first one too."""
    return _roberta(t, "cls", "sep", True, t.config.get("add_prefix_space", True))


def luke(t: Tokens) -> Any:
    """<s> A </s>, and </s> B </s>, with offsets of words without the space before them."""
    return _roberta(t, "cls", "sep", True, True)


def mpnet(t: Tokens) -> Any:
    """<s> A </s>, and </s> B </s>."""
    return _roberta(t, "cls", "sep", True, False)


def clip(t: Tokens) -> Any:
    """<|startoftext|> A <|endoftext|>."""
    return _roberta(t, "bos", "eos", False, False)


def bos_eos(t: Tokens) -> Any:
    """<s> A </s>, and </s> B </s>, all in one segment."""
    bos, eos = t.of("bos"), t.of("eos")
    return _template(t.where, [bos[0], "$A", eos[0]], [bos[0], "$A", eos[0], eos[0], "$B", eos[0]], [bos, eos])


def one_each(t: Tokens) -> Any:
    """A </s>, and B </s>."""
    end = t.of("eos")
    return _template(t.where, ["$A", end[0]], ["$A", end[0], "$B", end[0]], [end])


def one_eos(t: Tokens) -> Any:
    """A </s>, and A B </s>."""
    end = t.of("eos")
    return _template(t.where, ["$A", end[0]], ["$A", "$B", end[0]], [end])


def xlnet(t: Tokens) -> Any:
    """A <sep> <cls>, and A <sep> B <sep> <cls>, the last in segment 2."""
    sep, cls = t.of("sep"), t.of("cls")
    first = ["$A:0", f"{sep[0]}:0"]
    pair = [*first, "$B:1", f"{sep[0]}:1", f"{cls[0]}:2"]
    return _template(t.where, [*first, f"{cls[0]}:2"], pair, [sep, cls])


def by_flags(t: Tokens) -> Any:
    """What add_bos_token and add_eos_token ask for; beside a tokenizer.json they count for nothing."""
    asked = {role: not t.is_file and t.config.get(f"add_{role}_token", False) for role in ("bos", "eos")}
    for role, value in asked.items():
        if not isinstance(value, bool):
            raise TokenizerError(f"tokenizer_config.json: add_{role}_token is {value!r}, expected true or false")
    begin, end = ([t.of(role)] if asked[role] and role in t.roles else [] for role in ("bos", "eos"))
    single, second = (
        [*(f"{token}:{segment}" for token, _ in begin), text, *(f"{token}:{segment}" for token, _ in end)]
        for segment, text in ((0, "$A:0"), (1, "$B:1"))
    )
    return _template(t.where, single, [*single, *second], [*begin, *end])


def of_file(t: Tokens) -> Any:
    """That of the file, or else what the flags ask for."""
    return None if t.backend.post_processor is not None else by_flags(t)


def whisper(t: Tokens) -> Any:
    """The beginning of a transcript, with the language and the task if they are set, A, and the end."""
    names = ["<|startoftranscript|>"]
    for name in ("language", "task"):
        if (value := t.config.get(name)) is not None:
            token = f"<|{str(value).lower()}|>"
            if t.backend.token_to_id(token) is None:
                known = [text[2:-2] for text in t.backend.get_vocab() if text.startswith("<|") and text.endswith("|>")]
                guess = nearest(str(value), known)
                raise TokenizerError(f"tokenizer_config.json: {name} is {value!r}, and there is no {token}{guess}")
            names.append(token)
    if not t.config.get("predict_timestamps"):
        names.append("<|notimestamps|>")
    if any(t.backend.token_to_id(name) is None for name in names):  # a vocabulary of words alone
        return None
    begin, end = [t.token_and_id(name) for name in names], t.of("eos")
    first = [*(f"{token}:0" for token, _ in begin), "$A:0"]
    return _template(t.where, [*first, f"{end[0]}:0"], [*first, "$B:1", f"{end[0]}:1"], [end, *begin])


def _language(t: Tokens, default: str = "en_XX") -> Token:
    language = t.config.get("src_lang") or default
    if not isinstance(language, str):
        raise TokenizerError(f"tokenizer_config.json: src_lang is {language!r}, expected a code such as {default!r}")
    return t.token_and_id(language)


def language_last(t: Tokens, default: str = "en_XX") -> Any:
    """A </s> and the language, as mBART."""
    end, language = t.of("eos"), _language(t, default)
    after = [end[0], language[0]]
    return _template(t.where, ["$A", *after], ["$A", "$B", *after], [end, language])


def language_first(t: Tokens, default: str = "en_XX") -> Any:
    """The language, A </s>, as mBART-50."""
    end, language = t.of("eos"), _language(t, default)
    return _template(t.where, [language[0], "$A", end[0]], [language[0], "$A", "$B", end[0]], [language, end])


def nllb(t: Tokens) -> Any:
    """The language, A </s>; or as mBART, if the file asks for what NLLB's first version did."""
    legacy = t.config.get("legacy_behaviour", False)
    if not isinstance(legacy, bool):
        raise TokenizerError(f"tokenizer_config.json: legacy_behaviour is {legacy!r}, expected true or false")
    return (language_last if legacy else language_first)(t, "eng_Latn")


def change_language(backend: tokenizers.Tokenizer, languages: Collection[str], language: Token) -> None:
    """Put the token of another of `languages` around each text."""
    from tokenizers import processors

    state = json.loads(backend.post_processor.__getstate__())
    for piece in (*state["single"], *state["pair"]):
        if (token := piece.get("SpecialToken")) is not None and token["id"] in languages:
            token["id"] = language[0]
    others = {name: token for name, token in state["special_tokens"].items() if name not in languages}
    own = {"id": language[0], "ids": [language[1]], "tokens": [language[0]]}
    state["special_tokens"] = {**others, language[0]: own}
    made = processors.TemplateProcessing(single=["$A"], pair=["$A", "$B"], special_tokens=[])
    made.__setstate__(json.dumps(state).encode())
    backend.post_processor = made
