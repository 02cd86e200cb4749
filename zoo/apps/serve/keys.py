"""The API keys of a server's clients, and whose key a request has sent."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path

from ...errors import InputError

MAX_KEYS, MAX_BYTES = 1000, 1 << 20  # each key is compared with what a request sends
_KEY = re.compile(r"[!-~]{1,512}")  # what a header can have
# The name of the client whose request is being answered; "": there are no keys.  What is remembered of a request's
# prompt is remembered for this client alone.
client: ContextVar[str] = ContextVar("client", default="")


class Keys:
    """Keys and the names of the clients that have them.  Two keys of one name are one client's, who changes them."""

    def __init__(self, names: Mapping[str, str]):
        self._names = [(_digest(key), name) for key, name in names.items()]

    def client_of(self, key: str) -> str | None:
        """The name of the client with a key, or None; the time does not tell how much of which key it resembles."""
        given, found = _digest(key), None
        for known, name in self._names:
            if hmac.compare_digest(known, given):
                found = name
        return found


def read_keys(path: str | os.PathLike[str]) -> dict[str, str]:
    """The keys of a file and their clients' names: `KEY` or `KEY NAME` in a line, where a comment begins with #.

    A key without a name is a client of its own.  InputError, which has no key in it, names the line.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        lines = data.decode("utf-8").splitlines()
    except OSError as e:
        raise InputError(f"the keys cannot be read: {e}") from None
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: expected UTF-8, but byte {e.start} is {e.reason}") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{path} has more than {MAX_BYTES:,} bytes, expected a key in each line")
    keys: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].split()
        if not words:
            continue
        if len(words) > 2:
            raise InputError(f"{path}, line {number} has {len(words)} words, expected a key and perhaps a name")
        if not _KEY.fullmatch(words[0]):
            raise InputError(f"{path}, line {number}: expected a key of 1 to 512 visible ASCII characters")
        if words[0] in keys:
            raise InputError(f"{path}, line {number} has the key of an earlier line: expected each key once")
        keys[words[0]] = words[1] if len(words) == 2 else f"line {number}"  # no name has a space
    if not 0 < len(keys) <= MAX_KEYS:
        raise InputError(f"{path} has {len(keys):,} keys, expected 1 to {MAX_KEYS:,}")
    return keys


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
