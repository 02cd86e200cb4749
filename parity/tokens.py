"""A tokenizer against transformers' and the tokenizers library: 2,000 strings in 40 scripts, there and back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from zoo.errors import InputError
from zoo.text.tokenizer import Tokenizer

from .reference import read_tokenizer

STRINGS = 2000
# Script -> first and last code points of its letters, in one block or several.
SCRIPTS: dict[str, tuple[tuple[int, int], ...]] = {
    "Latin": ((0x41, 0x5A), (0x61, 0x7A)),
    "Latin with accents": ((0xC0, 0x17F),),
    "Vietnamese": ((0x1EA0, 0x1EF9), (0x61, 0x7A)),
    "phonetic": ((0x250, 0x2AF),),
    "Greek": ((0x391, 0x3A1), (0x3B1, 0x3C9)),
    "polytonic Greek": ((0x1F00, 0x1F15), (0x1F20, 0x1F45)),
    "Cyrillic": ((0x410, 0x44F),),
    "Armenian": ((0x531, 0x556), (0x561, 0x587)),
    "Georgian": ((0x10D0, 0x10F0),),
    "Hebrew": ((0x5D0, 0x5EA),),
    "Hebrew with points": ((0x5D0, 0x5EA), (0x5B0, 0x5BC)),
    "Arabic": ((0x627, 0x63A), (0x641, 0x64A)),
    "Arabic with vowels": ((0x627, 0x63A), (0x64B, 0x652)),
    "Persian and Urdu": ((0x67E, 0x686), (0x6A9, 0x6AF), (0x6CC, 0x6D3)),
    "Syriac": ((0x710, 0x72C),),
    "Thaana": ((0x780, 0x7A5),),
    "Devanagari": ((0x905, 0x939), (0x93E, 0x94D)),
    "Bengali": ((0x985, 0x98C), (0x995, 0x9A8), (0x9BE, 0x9C4)),
    "Gurmukhi": ((0xA15, 0xA28), (0xA3E, 0xA42)),
    "Gujarati": ((0xA95, 0xAA8), (0xABE, 0xAC5)),
    "Tamil": ((0xB92, 0xB95), (0xBAE, 0xBB9), (0xBBE, 0xBC2)),
    "Telugu": ((0xC15, 0xC28), (0xC3E, 0xC44)),
    "Kannada": ((0xC95, 0xCA8), (0xCBE, 0xCC4)),
    "Malayalam": ((0xD15, 0xD28), (0xD3E, 0xD44)),
    "Sinhala": ((0xD9A, 0xDB1),),
    "Thai": ((0xE01, 0xE2E), (0xE30, 0xE3A)),
    "Lao": ((0xE94, 0xE97), (0xEB0, 0xEB9)),
    "Tibetan": ((0xF40, 0xF47), (0xF71, 0xF7E)),
    "Burmese": ((0x1000, 0x1021), (0x102B, 0x1032)),
    "Khmer": ((0x1780, 0x17A2), (0x17B6, 0x17C5)),
    "Ethiopic": ((0x1200, 0x1246),),
    "Cherokee": ((0x13A0, 0x13EF),),
    "Canadian syllables": ((0x1401, 0x1450),),
    "Mongolian": ((0x1820, 0x1842),),
    "hiragana": ((0x3041, 0x3094),),
    "katakana": ((0x30A1, 0x30FA),),
    "half-width katakana": ((0xFF66, 0xFF9D),),
    "Chinese": ((0x4E00, 0x9FA5),),
    "rare Chinese": ((0x20000, 0x200FF),),
    "Hangul": ((0xAC00, 0xD7A3),),
    "Hangul in letters": ((0x1100, 0x1112), (0x1161, 0x1175)),
    "full-width Latin": ((0xFF21, 0xFF3A), (0xFF41, 0xFF5A)),
    "mathematical letters": ((0x1D400, 0x1D433),),
}
SPACES = (" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2009", "\u3000", "\u200b", "\u2028", "\x85")
MARKS = (*",.;:!?'\"()-–—…«»“”’·、。，؟।/\\&%$€£#@*_+=<>[]{}|~^`", "...", "--", "''", "\u0301", "\u0308", "\ufeff")
NUMBERS = ("0", "7", "42", "1999", "3.14", "1,000,000", "12:30", "٣٤٥", "१२३", "½", "²", "Ⅳ", "1e-5", "0x1F")
EMOJI = ("😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇨🇭", "☺️", "❤", "1️⃣", "🧑🏿‍🚀", "\U0001fae8")
CODE = (
    "def f(x):\n    return x**2  # squares",
    "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
    "SELECT name FROM t WHERE id = 'a''b';",
    "https://example.org/a?b=c&d=e_f#g",
    "user.name+tag@mail.example.com",
    'C:\\Users\\x\t{"k": [1, null]}',
    "camelCaseName snake_case_name CONST_NAME kebab-case",
    "I don't, you'll, we've; it's he'd",
)
ODD = ("", " ", "\n", "a", " a", "a ", "\x00", "\x07b", "\ud7ff", "\ufffd", "\U0010ffff", "e\u0301" * 9, "aa" * 200)


class Difference(NamedTuple):
    """How many strings differ in one respect, and the first: what zoo makes of it, and what the other."""

    what: str
    differing: int
    text: str = ""
    ours: str = ""
    theirs: str = ""


def sample_strings(special: Sequence[str], seed: int = 0, count: int = STRINGS) -> Iterator[str]:
    """Strings in all scripts: words, numbers, marks, emoji, code, odd spaces, special tokens inside of texts."""
    rng = random.Random(seed)
    yield from ODD
    yield from CODE
    names = list(SCRIPTS)
    for i in range(count - len(ODD) - len(CODE)):
        script = SCRIPTS[names[i % len(names)]]
        parts = []
        for _ in range(rng.randint(1, 9)):
            kind = rng.random()
            if kind < 0.6:
                block = rng.choice(script if rng.random() < 0.85 else SCRIPTS[rng.choice(names)])
                parts.append("".join(chr(rng.randint(*block)) for _ in range(rng.randint(1, 9))))
            elif kind < 0.95:
                parts.append(rng.choice(rng.choice((MARKS, NUMBERS, EMOJI, CODE))))
            elif special:
                parts.append(rng.choice(special))
            parts.append(rng.choice(SPACES) if rng.random() < 0.8 else "")
        yield "".join(parts)


def compare_tokenizer(folder: Path, seed: int = 0) -> list[Difference]:
    """The ways in which zoo's tokenizer of a folder could differ, and in how many strings it does.

    Beside transformers' ids, offsets and texts stand the ids of the tokenizers library from tokenizer.json as it is,
    where there is one: transformers changes some of these files as its classes say, and zoo follows transformers.
    """
    ours, theirs = Tokenizer.from_folder(folder), read_tokenizer(folder)
    special = [token for token in theirs.all_special_tokens if token]
    texts = list(sample_strings(special, seed))
    rows = ours.encode_batch(texts, truncation=False).rows
    wanted = theirs(texts, truncation=False, return_offsets_mapping=theirs.is_fast)
    found = [_difference("ids", texts, [list(row.ids) for row in rows], wanted["input_ids"])]
    if theirs.is_fast:
        offsets = [[tuple(pair) for pair in row] for row in wanted["offset_mapping"]]
        found.append(_difference("offsets", texts, [list(row.offsets) for row in rows], offsets))
    ids = wanted["input_ids"]
    for skip, what in ((False, "texts of ids"), (True, "texts of ids without special tokens")):
        written = [ours.decode(row, skip_special_tokens=skip) for row in ids]
        found.append(_difference(what, texts, written, theirs.batch_decode(ids, skip_special_tokens=skip)))
    path = folder / "tokenizer.json"
    if path.is_file():
        import tokenizers

        raw = tokenizers.Tokenizer.from_file(str(path))
        raw.no_padding()
        raw.no_truncation()
        of_file = [raw.encode(text).ids for text in texts]
        found.append(_difference("ids of tokenizer.json as it is", texts, [list(row.ids) for row in rows], of_file))
    return found


def _difference(what: str, texts: Sequence[str], ours: Sequence[Any], theirs: Sequence[Any]) -> Difference:
    if len(ours) != len(texts) or len(theirs) != len(texts):
        raise InputError(f"{what}: {len(ours)} and {len(theirs)} rows for {len(texts)} strings")
    wrong = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
    if not wrong:
        return Difference(what, 0)
    shortest = min(wrong, key=lambda i: len(texts[i]))
    return Difference(what, len(wrong), texts[shortest], *(_shorten(side[shortest]) for side in (ours, theirs)))


def _shorten(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 200 else f"{shown[:200]}..."


def print_tokenizer(name: str, folder: Path, seed: int, say: Callable[[str], None] = print) -> bool:
    """Compare a checkpoint's tokenizer and print what was found; -> True if zoo's is transformers'."""
    found = compare_tokenizer(folder, seed)
    equal = not any(one.differing for one in found if "as it is" not in one.what)
    say(f"{name}: {'equal' if equal else 'DIFFERS'} on {STRINGS} strings in {len(SCRIPTS)} scripts")
    for one in found:
        say(f"  {one.what}: {f'{one.differing} differ' if one.differing else 'equal'}")
        if one.differing:
            say(f"    {one.text!r}\n      zoo    {one.ours}\n      other  {one.theirs}")
    return equal
