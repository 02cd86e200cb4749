"""Ways to change an input: of bytes, of JSON, of pickles, of marked-up text, each keeping most of the structure."""

from __future__ import annotations

import copy
import json
import pickletools
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

Mutator = Callable[[random.Random, bytes], bytes]
MAX_BYTES = 1 << 16  # inputs stay small: size itself is bounded elsewhere, and tested there

_EDGES = [0, 1, 2, 3, 7, 8, 16, 127, 128, 255, 256, 1023, 32767, 32768, 65535, 65536, 2**24, 2**31 - 1, 2**31]
_EDGES += [2**32 - 1, 2**32, 2**53, 2**61 - 1, 2**63 - 1, 2**63, 2**64 - 1]


def of_bytes(words: Sequence[bytes] = (), head: int = 0) -> Mutator:
    """Some changes of bytes; `words` are put in now and then, and most changes lie in the first `head` bytes."""

    def mutate(rng: random.Random, data: bytes) -> bytes:
        out = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 3, 5, 9))):
            size = min(len(out), head) if head and rng.random() < 0.7 else len(out)
            at = rng.randrange(size + 1)
            match rng.randrange(8):
                case 0:
                    out[at : at + 1] = bytes([rng.randrange(256)])
                case 1 if at < len(out):
                    out[at] ^= 1 << rng.randrange(8)
                case 2:
                    form = rng.choice("BHIQ")
                    number = rng.choice(_EDGES) % (1 << 8 * struct.calcsize(form))
                    packed = struct.pack(rng.choice("<>") + form, number)
                    out[at : at + len(packed)] = packed
                case 3:
                    del out[at : at + rng.choice((1, 2, 4, 8, 64))]
                case 4:
                    out[at:at] = out[at : at + rng.choice((1, 4, 16, 256))] * rng.choice((1, 1, 2, 30))
                case 5 if words:
                    word = rng.choice(words)
                    out[at : at + rng.choice((0, len(word)))] = word
                case 6:
                    del out[at:]
                case _:
                    other = rng.randrange(len(out) + 1)
                    out[at : at + 8] = out[other : other + 8]
        return bytes(out[:MAX_BYTES])

    return mutate


_VALUES: list[Any] = [None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e-300, 1e308, float("nan"), float("inf")]
_VALUES += [10**30, 2**63, 2**31, 2**20, 10**9, -(2**63)]
_VALUES += ["", "x", "0", "a" * 300, "\0", "\ud800", "é\u200b\ufeff", "../x", "/etc/passwd", "con"]
_VALUES += [[], {}, [[]], [0] * 50, {"": None}, [None], [-1], [1, 2], [[1, 2], [3, 4]], {"height": 1, "width": 0}]


def of_json(values: Sequence[Any] = ()) -> Mutator:
    """Changes of nodes anywhere in a JSON text: other values and types, gone, doubled, moved, renamed, nested."""
    choices = [*_VALUES, *values]
    raw = of_bytes([b"{", b"}", b"[", b"]", b",", b":", b'"', b"NaN", b"1e999", b"\\ud800", b"9" * 50, b"[" * 2000])

    def mutate(rng: random.Random, data: bytes) -> bytes:
        try:
            root = json.loads(data)
        except (ValueError, RecursionError):
            return raw(rng, data)
        try:
            for _ in range(rng.choice((1, 1, 1, 2, 4))):
                root = _change_node(rng, root, choices)
            text = json.dumps(root, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):  # a node was put into itself
            return raw(rng, data)
        return raw(rng, text) if rng.random() < 0.1 else text[: 1 << 20]

    return mutate


def _change_node(rng: random.Random, root: Any, choices: Sequence[Any]) -> Any:
    """The tree with one node changed in place, or another root."""
    nodes = [(parent, key) for parent in _inner(root) for key in _keys(parent)]
    if not nodes or rng.random() < 0.01:
        return copy.deepcopy(rng.choice(choices))
    parent, key = rng.choice(nodes)
    value = parent[key]
    match rng.randrange(9):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, dict):
            parent[rng.choice([str(key) + "x", "", "type", str(key)[:-1], rng.choice(nodes)[1]])] = parent.pop(key)
        case 2:
            other_parent, other = rng.choice(nodes)
            parent[key] = json.loads(json.dumps(other_parent[other])) if other in _keys(other_parent) else None
        case 3 if isinstance(value, int | float):
            parent[key] = rng.choice(
                [value + 1, value - 1, -value, value * 2, value * 1000, float(value) + 0.5, str(value)]
            )
        case 4:
            parent[key] = rng.choice([[value], {"x": value}, [value] * 2, str(value), [value, value, None]])
        case 5 if isinstance(value, list) and value:
            value.insert(rng.randrange(len(value)), json.loads(json.dumps(rng.choice(value))))
        case 6 if isinstance(value, str):
            at = rng.randrange(len(value) + 1)
            parent[key] = value[:at] + rng.choice(["", "\0", "é", "(", "{", "%", "\\", " ", value]) + value[at + 1 :]
        case _:
            parent[key] = copy.deepcopy(rng.choice(choices))
    return root


def _inner(root: Any) -> list[Any]:
    """Objects and lists of a tree, some of them where there are many."""
    found, todo = [], [root]
    while todo and len(found) < 500:
        node = todo.pop()
        if isinstance(node, dict | list):
            found.append(node)
            todo += (list(node.values()) if isinstance(node, dict) else node)[:200]
    return found


def _keys(node: Any) -> list[Any]:
    return list(node)[:500] if isinstance(node, dict) else list(range(min(len(node), 500)))


def of_safetensors(rng: random.Random, data: bytes) -> bytes:
    """The header as JSON, or the bytes of all."""
    if rng.random() < 0.3 or len(data) < 8:
        return of_bytes(head=64)(rng, data)
    size = int.from_bytes(data[:8], "little")
    header = of_json(["F32", "BF16", "F4", "I64", "BOOL", "U64"])(rng, data[8 : 8 + size])
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


_OPCODES = [*(op.code.encode("latin-1") for op in pickletools.opcodes)]
_OPCODES += [b"K\1", b"M\1\1", b"J\xff\xff\xff\xff", b"\x8a\1\xff", b"X\1\0\0\0a", b"q\0", b"h\0", b"h\1"]
_OPCODES += [b"r\0\0\1\0", b"j\0\0\0\0", b")R", b"(t", b"\x85R", b"}b", b"h\0" * 40, b"(" * 40, b"]" * 40]
_OPCODES += [b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch\nFloatStorage\n"]
_OPCODES += [b"ctorch\nSize\n", b"cos\nsystem\n", b"\x8a\x08" + b"\xff" * 8]


def of_pickle(rng: random.Random, data: bytes) -> bytes:
    """A pickle's opcodes taken out, doubled, moved and put in; the bytes behind it stay."""
    try:
        begins = [at for _, _, at in pickletools.genops(data) if at is not None]
    except Exception:
        return of_bytes(_OPCODES)(rng, data)
    end = begins[-1] + 1
    parts = [data[a:b] for a, b in zip(begins, [*begins[1:], end], strict=True)]
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(parts))
        match rng.randrange(5):
            case 0 if len(parts) > 1:
                del parts[at]
            case 1:
                parts[at:at] = parts[at : at + rng.randrange(1, 9)] * rng.choice((1, 2, 50))
            case 2:
                parts[at] = of_bytes()(rng, parts[at])
            case 3:
                other = rng.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
            case _:
                parts.insert(at, rng.choice(_OPCODES))
    return b"".join(parts)[:MAX_BYTES] + data[end:]


def of_stream(rng: random.Random, data: bytes) -> bytes:
    """A torch file of the older form: five pickles and storages."""
    pieces, at = [], 0
    try:
        for _ in range(5):
            *_, (_, _, last) = pickletools.genops(data[at:])
            assert last is not None
            pieces.append(data[at : at + last + 1])
            at += last + 1
    except Exception:
        return of_bytes(_OPCODES)(rng, data)
    which = rng.choice((0, 1, 2, 3, 3, 3, 3, 3, 3, 4))
    pieces[which] = of_pickle(rng, pieces[which])
    rest = of_bytes()(rng, data[at:]) if rng.random() < 0.1 else data[at:]
    return b"".join(pieces) + rest


def of_zip(rng: random.Random, data: bytes) -> bytes:
    """A torch file of the newer form: its members changed and written again, or the bytes of the zip."""
    if rng.random() < 0.4:
        return of_bytes([b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7"])(rng, data)
    try:
        with zipfile.ZipFile(BytesIO(data)) as file:
            members = [(name, file.read(name)) for name in file.namelist()]
    except Exception:
        return of_bytes()(rng, data)
    for i, (name, body) in enumerate(members):
        if name.endswith(".pkl"):
            members[i] = name, of_pickle(rng, body)
        elif rng.random() < 0.1:
            members[i] = rng.choice([name + "x", "../" + name, name[:-1], "archive/data.pkl"]), body
    if rng.random() < 0.1:
        rng.shuffle(members)
    return zip_members(dict(members), rng.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED,)))


def zip_members(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file of the members, the same at any time of day."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, body in members.items():
            file.writestr(zipfile.ZipInfo(name), body, compression)
    return out.getvalue()


def of_text(pattern: str, words: Sequence[str]) -> Mutator:
    """Pieces of a text that `pattern` finds, and what lies between, taken out, doubled, moved, put in."""
    split, raw = re.compile(f"({pattern})", re.S), of_bytes([word.encode() for word in words])

    def mutate(rng: random.Random, data: bytes) -> bytes:
        parts = split.split(data.decode("utf-8", "replace"))
        for _ in range(rng.choice((1, 1, 2, 3, 6))):
            at = rng.randrange(len(parts)) if parts else 0
            match rng.randrange(5):
                case 0:
                    del parts[at : at + rng.choice((1, 1, 3))]
                case 1:
                    parts[at:at] = parts[at : at + rng.randrange(1, 6)] * rng.choice((1, 2, 20))
                case 2 if parts:
                    parts[at] = raw(rng, parts[at].encode()).decode("utf-8", "replace")
                case 3 if parts:
                    parts.append(parts.pop(at))
                case _:
                    parts.insert(at, rng.choice(words))
        return "".join(parts).encode("utf-8", "surrogatepass")[:MAX_BYTES]

    return mutate


def of_png(rng: random.Random, data: bytes) -> bytes:
    """The chunks of a PNG, with checksums that are right."""
    out, at, chunks = bytearray(data[:8]), 8, []
    while at + 8 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not chunks:
            break
        i = rng.randrange(len(chunks))
        kind, body = chunks[i]
        match rng.randrange(5):
            case 0:
                del chunks[i]
            case 1:
                chunks[i:i] = [chunks[i]] * rng.choice((1, 5, 300))
            case 2:
                chunks.insert(
                    i, (rng.choice([b"tRNS", b"zTXt", b"iCCP", b"acTL", b"fcTL", b"eXIf", b"PLTE", b"abCd"]), body[:50])
                )
            case _:
                chunks[i] = kind, of_bytes(head=16)(rng, body)
    for kind, body in chunks:
        out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return bytes(out[: 4 * MAX_BYTES])


def of_image(rng: random.Random, data: bytes) -> bytes:
    """The chunks of a PNG, the first bytes of anything else."""
    if data.startswith(b"\x89PNG") and rng.random() < 0.8:
        return of_png(rng, data)
    words = [b"\xff\xda", b"\xff\xe1\xff\xffExif\0\0II*\0", b"\xff\xc2", b"!\xfe", b",", b"VP8X", b"ANMF"]
    words += [b"\x01\x00\x03\x00"]
    return of_bytes(words, head=256)(rng, data)
