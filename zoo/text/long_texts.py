"""Long texts are cut before tokenizing if truncation keeps only the beginning, and counted if they may not be cut;
Ctrl-C interrupts the rest.

A cut between a letter and a space that a letter follows leaves the tokens before it unchanged if the tokenizer treats
the two sides apart.  Normalizers of the known kinds do, except a replacement of more than the space itself.  After them
either a pre-tokenizer splits there, or no token of the vocabulary reaches across, so that no merge and no path of
Unigram can, which is looked at for ASCII's letters alone.  Where each ideograph is a word, a cut is between two of
them, too.  Added tokens may reach across: the cut stays further away than the longest of them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InputError

if TYPE_CHECKING:
    import tokenizers

T = TypeVar("T")

LONG_TEXT = 1 << 16  # characters from which a text is cut
MARGIN = 1 << 10  # characters that are kept beyond the last token that counts
PER_TOKEN = 8  # characters, the first guess
CUT = 16  # tokens that a text may have more for being cut
MAX_UNCUT = 1 << 19  # characters of a text that cannot be cut: a token takes 600 bytes, and may be a single character

_ASCII = re.compile(r"[A-Za-z](?= [A-Za-z])")
_LETTERS = re.compile(r"[^\W\d_](?= [^\W\d_])")
_IDEOGRAPHS = re.compile(rf"{_LETTERS.pattern}|[\u4e00-\u9fff](?=[\u4e00-\u9fff])")
_SPACE_INSIDE = re.compile(r"[A-Za-z][ ▁Ġ]")
_SPACE_REGEXES = (" {2,}", r"\s+", r"\s{2,}|[\n\r\t]", r"\n", r"[\n\r\t]")
_SPLITTING = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
_LOCAL = {"Punctuation", "Digits", "CharDelimiterSplit", "Split"}


def interruptible(call: Callable[[], T]) -> T:
    """Call a function in another thread if this is the main one, so that Ctrl-C works while it runs; its result.

    After Ctrl-C the thread still runs to its end: it cannot be stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True, name="zoo-tokenizer")
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    if failure:
        raise failure[0]
    return result[0]


def ids_within(backend: tokenizers.Tokenizer, text: str, tokens: int, special: bool) -> list[int]:
    """The tokens of a text.  InputError where there are more than `tokens`, which of a long text is found in parts.

    backend: one that does not truncate.  special: with the special tokens that a text gets.
    """
    if len(text) < LONG_TEXT:
        return backend.encode(text, add_special_tokens=special).ids  # type: ignore[no-any-return]
    # A word that is cut in two may have some tokens more.
    found = 0
    for at in range(0, len(text), LONG_TEXT):
        found += max(0, len(backend.encode_batch([text[at : at + LONG_TEXT]], add_special_tokens=False)[0]) - CUT)
        if found > tokens:
            problem = f"the text has more than {tokens} tokens in its first {min(len(text), at + LONG_TEXT)} characters"
            raise InputError(f"{problem}, and the most is {tokens}")
    return backend.encode_batch([text], add_special_tokens=special)[0].ids  # type: ignore[no-any-return]


def beginning(backend: tokenizers.Tokenizer, text: str, tokens: int, boundary: re.Pattern[str]) -> str:
    """The part of a text with the same first `tokens` tokens.

    backend: one that does not truncate.  boundary: its places to cut, from `boundaries`.
    """
    reach = MARGIN + 4 * max((len(t.content) for t in backend.get_added_tokens_decoder().values()), default=0)
    size = max(LONG_TEXT // 4, tokens * PER_TOKEN)
    while size < min(len(text), MAX_UNCUT):
        found = boundary.search(text, size, MAX_UNCUT)
        if found is None:
            break
        ends = backend.encode(text[: found.end()], add_special_tokens=False).offsets
        if len(ends) >= tokens and (tokens == 0 or ends[tokens - 1][1] + reach < found.end()):
            return text[: found.end()]
        size = found.end() * 4
    return text


def boundaries(backend: tokenizers.Tokenizer) -> re.Pattern[str] | None:
    """A pattern of places at which the tokens before do not depend on the text after; None if none are known."""
    normalizers = parts_of(backend.normalizer)
    if not all(_keeps_spaces_apart(part) for part in normalizers):
        return None
    splits = False
    for part in parts_of(backend.pre_tokenizer):
        kind = part["type"]
        if kind in _SPLITTING or (kind == "Metaspace" and part.get("split", True)):
            splits = True
        elif kind == "ByteLevel":
            splits = splits or part.get("use_regex", True)
        elif kind not in (*_LOCAL, "Metaspace") or (kind == "Split" and not _is_local(part["pattern"])):
            return None
    if splits:
        return _IDEOGRAPHS if any(part.get("handle_chinese_chars") for part in normalizers) else _LETTERS
    if type(backend.model).__name__ not in ("BPE", "Unigram"):
        return None
    return None if any(map(_SPACE_INSIDE.search, backend.get_vocab(with_added_tokens=False))) else _ASCII


def parts_of(component: Any) -> list[dict[str, Any]]:
    """The parts that a normalizer or pre-tokenizer is made of, as tokenizer.json has them."""
    if component is None:
        return []

    def flatten(part: dict[str, Any]) -> list[dict[str, Any]]:
        inner = part.get("normalizers") or part.get("pretokenizers") or []
        return [q for p in inner for q in flatten(p)] if part["type"] == "Sequence" else [part]

    return flatten(json.loads(component.__getstate__()))


def _keeps_spaces_apart(part: dict[str, Any]) -> bool:
    if part["type"] != "Replace":
        return True
    ((kind, pattern),) = part["pattern"].items()
    if kind == "Regex":
        return pattern in _SPACE_REGEXES
    return pattern in (" ", "▁") or not re.search(r"[^\W\d_]|[ ▁]", pattern)


def _is_local(pattern: dict[str, str]) -> bool:
    """True if a pattern that splits a text looks no further than a word, or a run of spaces."""
    if "String" in pattern:
        return len(pattern["String"]) == 1
    # Those of GPT-2 and its kin: words with at most one sign before them, then runs of spaces.
    regex = pattern["Regex"]
    return regex.endswith((r"|\s+(?!\S)|\s+", r"|[^\s\p{L}\p{N}]+")) or regex in (
        r"\p{N}{1,3}",
        r"\p{N}",
        r"\d",
        "[0-9]",
    )
