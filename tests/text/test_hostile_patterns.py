"""Regular expressions of tokenizer files: what real ones have is taken, what may take for ever is refused."""

from __future__ import annotations

import random
import time

import pytest

from zoo.guards.patterns import UnsafePatternError, check_pattern

SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

# What tokenizers of the hub split and replace by.
TAKEN = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES,
    "qwen3": r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES,
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{CASED}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|" + SPACES,
    "clip": r"<\|startoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "deepseek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|" + SPACES,
    "cjk": "[一-龥぀-ゟ゠-ヿ]+",
    "bloom": " ?[^(\\s|[.,!?…。，、।۔،])]+",
    "superbpe": r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))",
    "thousands": r"(?=(\d{3})+(?!\d))",
    "t5": " {2,}",
    "nllb": r" +▁",
    "seamless": r"^▁+$",
    "barthez": r"\s{2,}|[\n\r\t]",
    "a group": r"(?: ?[^\s\p{L}]+[\r\n]*|\s+(?!\S))",
}
REFUSED = [
    *(r"(a+)+$", r"(a|a)*b", r"(a*)*", r"a*a*a*b", r"a*a*b", r".*.*x", r"[^☃]*☃", r".*☃", r"[\s\S]*x", "(a?){30}a{30}"),
    *("a?" * 30 + "a" * 30, r"(\w+\s?)+$", r"(a)\1", r"(?:a|aa)+$", r"(?:(?:a|b)|c)*d", "a{1,100}" * 3 + "b"),
    *(
        r"((a+)b?)*c",
        r"(?=a*)(?=a*b)c",
        r"(?>a+)",
        r"(?R)",
        "[a&&b]",
        "(a",
        "a)",
        "*a",
        "[a",
        "a*",
        "(?:a*|b)",
        "x" * 3000,
    ),
    *(
        r"(?:a+a+)b",
        "(a|a)" * 12 + "b",
        r"a+(?:a+b)?c",
        r"(?!a*a*b)c",
        r"[\s\p{L}]*x",
        r"(?:\w\w?)+x",
        "(" * 99,
        r"\g<1>",
        r"a{1,3}+b",
        r"[]|a]*[]|a]*[]|a]*x",
        r"a{12345}b{12345}",
    ),
]


@pytest.mark.parametrize("pattern", TAKEN.values(), ids=TAKEN)
def test_patterns_of_real_tokenizers_are_taken(pattern):
    check_pattern(pattern)


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_patterns_that_can_take_for_ever_are_refused(pattern):
    with pytest.raises(UnsafePatternError):
        check_pattern(pattern)


def test_random_patterns_that_are_taken_are_fast():
    """Whatever passes runs on runs of its own characters, the worst of texts, without end in sight for none."""
    from tokenizers import Regex, normalizers

    random.seed(0)
    signs = [
        "a",
        "b",
        "[ab]",
        "a",
        "(a|b)",
        "(?:a",
        ")",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{1,3}",
        "+?",
        r"\s",
        "(?!",
        "$",
        "(?=",
    ]
    taken = 0
    for _ in range(5_000):
        pattern = "".join(random.choices(signs, k=random.randint(2, 9)))
        try:
            check_pattern(pattern)
            normalizer = normalizers.Replace(Regex(pattern), "c")
        except Exception:
            continue
        taken += 1
        start = time.process_time()
        normalizer.normalize_str("a" * 600 + "b" * 300 + " " * 300)
        assert time.process_time() - start < 2, pattern
    assert taken > 100
