"""A pickle reader that can build plain values and nothing else.

The standard Unpickler trusts its input: it allocates what a length or memo index asks for, and calls what it is told
to.  This one is a loop over the opcodes that torch.save writes (protocols 2 to 4, also from Python 2).  A name resolves
only to what the caller lists, lengths are checked against the bytes at hand, and anything else is an error.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from ..errors import CheckpointError, ZooError

PICKLE_LIMIT = 16 << 20  # bytes
# An opcode is a step, and what stands for more work or memory is charged more: about 30,000 tensors.
STEP_LIMIT = 2_000_000
_CALL = 10
_LINE_LIMIT = 1024
_LONG_LIMIT = 32
# Python hashes an integer to itself: larger keys could be chosen so that all of them collide.
_KEY_LIMIT = 1 << 16
# Written one after the other; some writers leave out those that are not read.
_MEMO_GAP = 1024


class Made(NamedTuple):
    """What a listed name stands for, where it may be called: `make` gets the tuple of arguments."""

    name: str
    make: Callable[[tuple], Any]


class Ordered(dict):
    """Stands for collections.OrderedDict; the attributes that a pickle sets on it (`_metadata`) are dropped."""

    __slots__ = ()


class PickleReader:
    """The pickles in data[at:], one after the other: `at` moves to the end of each that is read.

    `names` is "module name" -> a Made, or an inert value; `persistent` turns a persistent id into one.
    `where` is what messages name.  All pickles together take at most STEP_LIMIT steps.  Every failure is a
    CheckpointError.
    """

    def __init__(self, data: bytes, where: object, names: Mapping[str, Any], persistent: Callable[[Any], Any]):
        self.data, self.where, self.names, self.persistent = data, where, names, persistent
        self.at = 0
        self._steps = 0
        self._begin()

    def _begin(self) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # what lies under each mark
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        self._begin()
        try:
            return self._load()
        except ZooError:
            raise
        except (IndexError, KeyError, TypeError, ValueError, OverflowError, struct.error) as e:
            self._fail(f"{type(e).__name__}: {str(e)[:200]}")

    def _load(self) -> Any:
        data, operations, stop = self.data, _OPERATIONS, pickle.STOP[0]
        while True:
            self._steps += 1
            if self._steps > STEP_LIMIT:
                self._fail(f"more than {STEP_LIMIT} steps")
            if self.at >= len(data):
                self._fail("it ends in the middle")
            op = data[self.at]
            self.at += 1
            if op == stop:
                if self._below or len(self._stack) != 1:
                    self._fail("it stops in the middle")
                return self._stack[0]
            operation = operations.get(op)
            if operation is None:
                self._fail(f"the opcode {bytes([op])!r}, which torch.save does not write for tensors")
            operation(self)

    def _fail(self, what: str) -> NoReturn:
        raise CheckpointError(f"{self.where}: a damaged or unusual pickle, near byte {self.at}: {what}")

    def _charge(self, steps: int) -> None:
        self._steps += steps

    def _take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            self._fail(f"{count} bytes wanted, {len(self.data) - self.at} left")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + _LINE_LIMIT)
        if end < 0:
            self._fail("a name without an end")
        return self._take(end + 1 - self.at)[:-1].decode()

    def _is(self, value: Any, kind: type) -> Any:
        if type(value) is not kind:
            self._fail(f"a {type(value).__name__} where a {kind.__name__} was wanted")
        return value

    def _to_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _put(self, index: int) -> None:
        if index > len(self._memo) + _MEMO_GAP:
            self._fail(f"the memo's entry {index} after {len(self._memo)} others")
        self._memo[index] = self._stack[-1]

    def _get(self, index: int) -> None:
        self._stack.append(self._memo[index])

    def _long(self, size: int) -> None:
        if size > _LONG_LIMIT:
            self._fail(f"an integer of {size} bytes")
        self._stack.append(int.from_bytes(self._take(size), "little", signed=True))

    def _text(self, size: int) -> None:
        self._stack.append(self._take(size).decode())

    def _tuple(self, count: int) -> None:
        if len(self._stack) < count:
            self._fail("too little on the stack")
        self._stack[-count:] = [tuple(self._stack[-count:])]

    def _append(self) -> None:
        item = self._stack.pop()
        self._is(self._stack[-1], list).append(item)

    def _extend(self) -> None:
        items = self._to_mark()
        self._is(self._stack[-1], list).extend(items)

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set(self._stack[-1], key, value)

    def _set_items(self) -> None:
        items = self._to_mark()
        for key, value in zip(items[::2], items[1::2], strict=True):
            self._set(self._stack[-1], key, value)

    def _set(self, target: Any, key: Any, value: Any) -> None:
        # Only keys of constant cost: the hash of a nested tuple can take time without end.
        if type(target) not in (dict, Ordered) or type(key) not in (str, int, bool):
            self._fail(f"a key of type {type(key).__name__} in a {type(target).__name__}")
        if type(key) is int and not -_KEY_LIMIT < key < _KEY_LIMIT:
            self._fail(f"the key {key} in a dict, names or numbers below {_KEY_LIMIT} were expected")
        if key in target:
            self._fail(f"the key {str(key)[:200]!r} twice")
        target[key] = value

    def _global(self) -> None:
        module, name = self._line(), self._line()
        self._stack.append(self._named(module, name))

    def _stack_global(self) -> None:
        name, module = self._is(self._stack.pop(), str), self._is(self._stack.pop(), str)
        self._stack.append(self._named(module[:_LINE_LIMIT], name[:_LINE_LIMIT]))

    def _named(self, module: str, name: str) -> Any:
        full = f"{module} {name}"
        if full not in self.names:
            raise CheckpointError(
                f"{self.where}: it holds {module[:100]}.{name[:100]}, which zoo does not load (nothing was run): "
                "a state dict of tensors was wanted; where the checkpoint can be trusted, convert it to safetensors"
            )
        return self.names[full]

    def _reduce(self) -> None:
        arguments, made = self._is(self._stack.pop(), tuple), self._is(self._stack.pop(), Made)
        # An argument may be a link to what was read before: copying it costs a step an item, each time.
        self._charge(_CALL + len(arguments))
        self._charge(sum(2 * len(a) for a in arguments[:8] if isinstance(a, list | tuple | dict)))
        self._stack.append(made.make(arguments) if self._steps <= STEP_LIMIT else None)

    def _build(self) -> None:
        self._is(self._stack.pop(), dict)
        self._is(self._stack[-1], Ordered)

    def _persistent(self) -> None:
        self._charge(_CALL)
        self._stack.append(self.persistent(self._stack.pop()))

    def _protocol(self) -> None:
        if (protocol := self._take(1)[0]) not in (2, 3, 4):
            self._fail(f"protocol {protocol}, torch.save writes 2")


# The opcodes that torch.save writes for tensors, by their byte.
_OPERATIONS: dict[int, Callable[[PickleReader], object]] = {
    op[0]: operation
    for op, operation in {
        pickle.BINPUT: lambda r: r._put(r._take(1)[0]),
        pickle.LONG_BINPUT: lambda r: r._put(r._number(4)),
        pickle.MEMOIZE: lambda r: r._put(len(r._memo)),
        pickle.BINGET: lambda r: r._get(r._take(1)[0]),
        pickle.LONG_BINGET: lambda r: r._get(r._number(4)),
        pickle.BININT1: lambda r: r._push(r._take(1)[0]),
        pickle.BININT2: lambda r: r._push(r._number(2)),
        pickle.BININT: lambda r: r._push(int.from_bytes(r._take(4), "little", signed=True)),
        pickle.LONG1: lambda r: r._long(r._take(1)[0]),
        pickle.LONG4: lambda r: r._long(r._number(4)),
        pickle.BINFLOAT: lambda r: r._push(struct.unpack(">d", r._take(8))[0]),
        pickle.NONE: lambda r: r._push(None),
        pickle.NEWTRUE: lambda r: r._push(True),
        pickle.NEWFALSE: lambda r: r._push(False),
        pickle.SHORT_BINUNICODE: lambda r: r._text(r._take(1)[0]),
        pickle.SHORT_BINSTRING: lambda r: r._text(r._take(1)[0]),
        pickle.BINUNICODE: lambda r: r._text(r._number(4)),
        pickle.BINSTRING: lambda r: r._text(r._number(4)),
        pickle.BINUNICODE8: lambda r: r._text(r._number(8)),
        pickle.MARK: PickleReader._mark,
        pickle.EMPTY_TUPLE: lambda r: r._push(()),
        pickle.TUPLE1: lambda r: r._tuple(1),
        pickle.TUPLE2: lambda r: r._tuple(2),
        pickle.TUPLE3: lambda r: r._tuple(3),
        pickle.TUPLE: lambda r: r._push(tuple(r._to_mark())),
        pickle.EMPTY_LIST: lambda r: r._push([]),
        pickle.APPEND: PickleReader._append,
        pickle.APPENDS: PickleReader._extend,
        pickle.EMPTY_DICT: lambda r: r._push({}),
        pickle.SETITEM: PickleReader._set_item,
        pickle.SETITEMS: PickleReader._set_items,
        pickle.GLOBAL: PickleReader._global,
        pickle.STACK_GLOBAL: PickleReader._stack_global,
        pickle.REDUCE: PickleReader._reduce,
        pickle.BUILD: PickleReader._build,
        pickle.BINPERSID: PickleReader._persistent,
        pickle.PROTO: PickleReader._protocol,
        pickle.FRAME: lambda r: r._take(8),
    }.items()
}
