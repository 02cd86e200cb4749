"""The spaces before punctuation that some tokenizers remove from texts that they decode."""

from __future__ import annotations

REPLACEMENTS = (
    *((f" {end}", end) for end in (".", "?", "!", ",")),
    (" ' ", "'"),
    *((f" {end}", end) for end in ("n't", "'m", "'s", "'ve", "'re")),
)


def tidy_spaces(text: str) -> str:
    """A text without the spaces before punctuation and the ends of English words, as transformers removes them."""
    for before, after in REPLACEMENTS:
        text = text.replace(before, after)
    return text
