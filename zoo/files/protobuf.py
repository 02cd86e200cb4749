"""Reads messages of protobuf (https://protobuf.dev/programming-guides/encoding/), field by field, without protobuf."""

from __future__ import annotations

from collections.abc import Iterator


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, value) of one message; a view for every wire type but varint.  ValueError: it is none."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
            yield field, value
            continue
        if wire == 2:
            size, at = read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if field == 0 or at + size > len(data):
            raise ValueError(f"field {field} at byte {at} needs {size} bytes, and {len(data) - at} are left")
        yield field, data[at : at + size]
        at += size


def message(value: int | memoryview) -> memoryview:
    """The bytes of a field that holds a message or a string."""
    if isinstance(value, int):
        raise ValueError("a number where a message or string belongs")
    return value


def text(value: int | memoryview) -> str:
    """The string of a field."""
    return bytes(message(value)).decode()


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a byte, and the byte after it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"number cut short or too long at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
