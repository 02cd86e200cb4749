"""The bytes that each token of a vocabulary adds to a text: one token alone may be a part of a character."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a byte's token in sentencepiece's vocabularies


class TokenBytes:
    """The bytes of a tokenizer's tokens, as its decoder writes them; each is found once."""

    def __init__(self, tokenizer: Tokenizer):
        self._backend = tokenizer.backend
        self._found: dict[tuple[int, bool], bytes | None] = {}

    def __call__(self, token: int, is_first: bool = False) -> bytes | None:
        """What a token adds after other text, or as the first of one; None for a special token, which adds nothing.

        Decoders may drop a space at the beginning of a text.
        """
        key = token, is_first
        if key not in self._found:
            self._found[key] = self._bytes(token, is_first)
        return self._found[key]

    def name(self, token: int, is_first: bool = False) -> str:
        """A token's text; "bytes:\\xf0\\x9f" for parts of characters, as OpenAI writes them; its `piece` if special."""
        data = self(token, is_first)
        if data is None:
            return self.piece(token)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(chr(byte) if byte < 128 else f"\\x{byte:02x}" for byte in data)

    def piece(self, token: int) -> str:
        """A token as the vocabulary has it; "token_id:70000" where models have more tokens than it."""
        return self._backend.id_to_token(token) or f"token_id:{token}"

    def _bytes(self, token: int, is_first: bool) -> bytes | None:
        piece = self._backend.id_to_token(token)
        if piece is None or token in self._special_ids:
            return None
        if self._is_byte_level and token not in self._added_tokens:
            return _from_byte_level(piece)
        if self._has_bytes and (found := _BYTE.fullmatch(piece)):
            return bytes([int(found[1], 16)])
        before = [] if is_first else self._prefix
        text = self._backend.decode([*before, token])
        start = self._backend.decode(before)
        # Where the decoder joins a token with the one before it, its own text is the best there is.
        return (text[len(start) :] if text.startswith(start) else self._backend.decode([token])).encode()

    @cached_property
    def _added_tokens(self) -> dict[int, Any]:
        return self._backend.get_added_tokens_decoder()

    @cached_property
    def _special_ids(self) -> set[int]:
        return {token for token, added in self._added_tokens.items() if added.special}

    @cached_property
    def _prefix(self) -> list[int]:
        """An ordinary token, to decode others after it."""
        return self._backend.encode("a", add_special_tokens=False).ids[-1:]

    @cached_property
    def _decoders(self) -> list[str]:
        """The kinds of the decoder and of those that it is a sequence of."""
        decoder: Any = self._backend.decoder
        if decoder is None:
            return []
        state = json.loads(decoder.__getstate__())
        return [part["type"] for part in (state, *state.get("decoders", ()))]

    @cached_property
    def _is_byte_level(self) -> bool:
        return "ByteLevel" in self._decoders

    @cached_property
    def _has_bytes(self) -> bool:
        return "ByteFallback" in self._decoders


def _byte_characters() -> dict[str, int]:
    """The character that stands for each byte in vocabularies of GPT-2's kind: itself, or 256 and further ones."""
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_characters()


def _from_byte_level(piece: str) -> bytes:
    """The bytes of a token of a byte-level vocabulary; its own where it has other characters, as decoders do."""
    if all(character in _BYTES for character in piece):
        return bytes(_BYTES[character] for character in piece)
    return piece.encode()
