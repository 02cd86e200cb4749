"""Strict, bounded reading of a checkpoint's JSON files: configs, weight indices, tokenizers."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ConfigError, NotFoundError, ZooError, nearest_file
from .inside import LFS_POINTER, check_regular

# transformers writes int(1e30) if a tokenizer has no `model_max_length`.
UNLIMITED_LENGTH = int(1e30)
# The configs and indices of the largest models on the hub have near 10 MB and 100,000 values.  Both are bounded: `[],`
# takes three bytes in a file, but a hundred in memory.
MAX_BYTES = 32 << 20
MAX_VALUES = 1_000_000
INFINITY = {"__float__": "Infinity"}  # transformers 5's form of a number that JSON does not have
_ANY_DIGIT = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))
_MANY_DIGITS = b"0" * 19  # an integer of fewer fits into 64 bits


def read_json(path: str | Path, limit: int = MAX_BYTES, error: type[ZooError] = ConfigError) -> dict[str, Any]:
    """The JSON object in a file of at most `limit` bytes of UTF-8 (a byte order mark is tolerated).

    Raises `error` for anything but a file with one object, for duplicate keys, NaN and Infinity (also as 1e999),
    integers beyond 64 bits (except UNLIMITED), half surrogates, nesting that Python cannot follow, more than
    MAX_VALUES commas and brackets; NotFoundError if there is no file.
    """
    return parse_json(read_bounded(path, limit, error), path, error, max_values=MAX_VALUES)


def read_bounded(path: str | Path, limit: int, error: type[ZooError]) -> bytes:
    """The bytes of a regular file; raises `error` if there are more than `limit`, or if it is a git-LFS pointer."""
    path = Path(path)
    try:
        found = path.stat()
        check_regular(found.st_mode, path, error)
        with path.open("rb") as file:
            data = file.read(min(found.st_size, limit) + 1)  # a read allocates what it asks for
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{path}: no such file{nearest_file(path)}") from None
    except ZooError:
        raise
    except (OSError, ValueError) as e:
        raise error(f"{path}: cannot be read: {e}") from None
    if len(data) > limit:
        raise error(f"{path}: the file has more than {limit} bytes")
    if data.startswith(LFS_POINTER):
        raise error(f"{path}: a git-LFS pointer, not the file itself: run `git lfs pull`")
    return data


def _as_it_is(found: dict[str, Any]) -> Any:
    return found


def parse_json(
    data: bytes,
    where: object,
    error: type[ZooError] = ConfigError,
    make: Callable[[dict[str, Any]], Any] = _as_it_is,
    max_values: int | None = None,
    exact: bool = True,
    infinity: bool = False,
) -> dict[str, Any]:
    """`read_json` of bytes; messages begin with `where`, `make` is called with every object, innermost first.

    exact: False is faster, but accepts numbers beyond 64 bits or a double, and duplicate keys (the last counts).
    infinity: True reads Infinity, which older configs have, as INFINITY, which those of transformers 5 have.
    """
    if max_values is not None:
        signs = np.frombuffer(data or b" ", np.uint8)  # bytes.count takes eight times as long where there are many
        found = sum(int(np.count_nonzero(signs == ord(sign))) for sign in ",[{")
        if found > max_values:
            raise error(f"{where}: more than {max_values} values ({found} commas and brackets)")
    value = _parse(data, where, error, make, "a JSON object", exact, infinity)
    if not isinstance(value, dict):
        raise error(f"{where}: expected a JSON object, found a JSON {type(value).__name__}")
    return value


def parse_json_list(data: bytes, where: object, error: type[ZooError] = ConfigError) -> list[Any]:
    """`parse_json` of one list."""
    value = _parse(data, where, error, _as_it_is, "a JSON list")
    if not isinstance(value, list):
        raise error(f"{where}: expected a JSON list, found a JSON {type(value).__name__}")
    return value


def _parse(
    data: bytes,
    where: object,
    error: type[ZooError],
    make: Callable[[dict[str, Any]], Any],
    expected: str,
    exact: bool = True,
    infinity: bool = False,
) -> Any:
    if not data.strip():
        raise error(f"{where}: empty, expected {expected}")
    try:
        value = json.loads(
            data.removeprefix(codecs.BOM_UTF8).decode(),
            object_pairs_hook=(_object if make is _as_it_is else lambda pairs: make(_object(pairs))) if exact else None,
            parse_int=_integer if exact and _MANY_DIGITS in data.translate(_ANY_DIGIT) else None,
            parse_float=_float if exact else None,
            parse_constant=_constant_or_infinity if infinity else _constant,
        )
        if re.search(rb"\\u[dD][89a-fA-F]", data):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as e:
        raise error(f"{where}: not UTF-8: {e.reason} at byte {e.start}") from None
    except UnicodeEncodeError:
        raise error(f"{where}: half of a surrogate pair in a string") from None
    except RecursionError:
        raise error(f"{where}: nested too deeply") from None
    except ValueError as e:
        raise error(f"{where}: not JSON: {e}") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:200]!r} occurs twice in one object")
            seen.add(key)
    return found


def _integer(digits: str) -> int:
    # The length is checked first: converting 10^6 digits takes quadratic time.
    if len(digits) > 40 or not (-(2**63) <= (value := int(digits)) < 2**63 or value == UNLIMITED_LENGTH):
        raise ValueError(f"the integer {digits[:40]} is beyond 64 bits")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:40]} is beyond a double")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _constant_or_infinity(name: str) -> Any:
    return dict(INFINITY) if name == "Infinity" else _constant(name)
