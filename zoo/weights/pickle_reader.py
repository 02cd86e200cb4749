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

PICKLE_LIMIT = 16 << 20  # bytes: about 100,000 tensors
STEP_LIMIT = 5_000_000
_LINE_LIMIT = 1024
_LONG_LIMIT = 1024


class Made(NamedTuple):
    """What a listed name stands for, where it may be called: `make` gets the tuple of arguments."""

    name: str
    make: Callable[[tuple], Any]


class Ordered(dict):
    """Stands for collections.OrderedDict; the attributes that a pickle sets on it (`_metadata`) are dropped."""


class PickleReader:
    """The pickles in data[at:], one after the other: `at` moves to the end of each that is read.

    `names` is "module name" -> a Made, or an inert value; `persistent` turns a persistent id into one.
    `where` is what messages name.  Every failure is a CheckpointError.
    """

    def __init__(self, data: bytes, where: object, names: Mapping[str, Any], persistent: Callable[[Any], Any]):
        self.data, self.where, self.names, self.persistent = data, where, names, persistent
        self.at = 0
        self._steps = 0

    def load(self) -> Any:
        try:
            return self._load()
        except ZooError:
            raise
        except (IndexError, KeyError, TypeError, ValueError, struct.error) as e:
            self._fail(f"{type(e).__name__}: {str(e)[:200]}")

    def _fail(self, what: str) -> NoReturn:
        raise CheckpointError(f"{self.where}: a damaged or unusual pickle, near byte {self.at}: {what}")

    def _take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            self._fail(f"{count} bytes wanted, {len(self.data) - self.at} left")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def _number(self, form: str) -> Any:
        return struct.unpack("<" + form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + _LINE_LIMIT)
        if end < 0:
            self._fail("a name without an end")
        return self._take(end + 1 - self.at)[:-1].decode()

    def _load(self) -> Any:
        stack: list[Any] = []
        below: list[list[Any]] = []  # what lies under each mark
        memo: dict[int, Any] = {}

        def to_mark() -> list[Any]:
            nonlocal stack
            items, stack = stack, below.pop()
            return items

        while True:
            self._steps += 1
            if self._steps > STEP_LIMIT:
                self._fail(f"more than {STEP_LIMIT} steps")
            match op := self._take(1):
                case pickle.BINPUT:
                    memo[self._number("B")] = stack[-1]
                case pickle.LONG_BINPUT:
                    memo[self._number("I")] = stack[-1]
                case pickle.MEMOIZE:
                    memo[len(memo)] = stack[-1]
                case pickle.BINGET:
                    stack.append(memo[self._number("B")])
                case pickle.LONG_BINGET:
                    stack.append(memo[self._number("I")])
                case pickle.BININT1:
                    stack.append(self._number("B"))
                case pickle.BININT2:
                    stack.append(self._number("H"))
                case pickle.BININT:
                    stack.append(self._number("i"))
                case pickle.LONG1 | pickle.LONG4:
                    size = self._number("B" if op == pickle.LONG1 else "I")
                    if size > _LONG_LIMIT:
                        self._fail(f"an integer of {size} bytes")
                    stack.append(int.from_bytes(self._take(size), "little", signed=True))
                case pickle.BINFLOAT:
                    stack.append(struct.unpack(">d", self._take(8))[0])
                case pickle.NONE:
                    stack.append(None)
                case pickle.NEWTRUE:
                    stack.append(True)
                case pickle.NEWFALSE:
                    stack.append(False)
                case pickle.SHORT_BINUNICODE | pickle.SHORT_BINSTRING:
                    stack.append(self._take(self._number("B")).decode())
                case pickle.BINUNICODE | pickle.BINSTRING:
                    stack.append(self._take(self._number("I")).decode())
                case pickle.BINUNICODE8:
                    stack.append(self._take(self._number("Q")).decode())
                case pickle.MARK:
                    below.append(stack)
                    stack = []
                case pickle.EMPTY_TUPLE:
                    stack.append(())
                case pickle.TUPLE1 | pickle.TUPLE2 | pickle.TUPLE3:
                    count = op[0] - pickle.TUPLE1[0] + 1
                    if len(stack) < count:
                        self._fail("too little on the stack")
                    stack[-count:] = [tuple(stack[-count:])]
                case pickle.TUPLE:
                    items = to_mark()
                    stack.append(tuple(items))
                case pickle.EMPTY_LIST:
                    stack.append([])
                case pickle.APPEND:
                    item = stack.pop()
                    self._is(stack[-1], list).append(item)
                case pickle.APPENDS:
                    items = to_mark()
                    self._is(stack[-1], list).extend(items)
                case pickle.EMPTY_DICT:
                    stack.append({})
                case pickle.SETITEM:
                    value, key = stack.pop(), stack.pop()
                    self._put(stack[-1], key, value)
                case pickle.SETITEMS:
                    items = to_mark()
                    for key, value in zip(items[::2], items[1::2], strict=True):
                        self._put(stack[-1], key, value)
                case pickle.GLOBAL:
                    module, name = self._line(), self._line()
                    stack.append(self._named(module, name))
                case pickle.STACK_GLOBAL:
                    name, module = stack.pop(), stack.pop()
                    stack.append(self._named(module, name))
                case pickle.REDUCE:
                    arguments, made = self._is(stack.pop(), tuple), stack.pop()
                    stack.append(self._is(made, Made).make(arguments))
                case pickle.BUILD:
                    self._is(stack.pop(), dict)
                    self._is(stack[-1], Ordered)
                case pickle.BINPERSID:
                    stack.append(self.persistent(stack.pop()))
                case pickle.PROTO:
                    if (protocol := self._number("B")) not in (2, 3, 4):
                        self._fail(f"protocol {protocol}, torch.save writes 2")
                case pickle.FRAME:
                    self._take(8)
                case pickle.STOP:
                    if below or len(stack) != 1:
                        self._fail("it stops in the middle")
                    return stack[0]
                case _:
                    self._fail(f"the opcode {op!r}, which torch.save does not write for tensors")

    def _is(self, value: Any, kind: type) -> Any:
        if type(value) is not kind:
            self._fail(f"a {type(value).__name__} where a {kind.__name__} was wanted")
        return value

    def _put(self, target: Any, key: Any, value: Any) -> None:
        # Only keys of constant cost: the hash of a nested tuple can take time without end.
        if type(target) not in (dict, Ordered) or type(key) not in (str, int, bool):
            self._fail(f"a key of type {type(key).__name__} in a {type(target).__name__}")
        if key in target:
            self._fail(f"the key {str(key)[:200]!r} twice")
        target[key] = value

    def _named(self, module: Any, name: Any) -> Any:
        full = f"{self._is(module, str)} {self._is(name, str)}"
        if full not in self.names:
            raise CheckpointError(
                f"{self.where}: it holds {module[:100]}.{name[:100]}, which zoo does not load (nothing was run): "
                "a state dict of tensors was wanted; where the checkpoint can be trusted, convert it to safetensors"
            )
        return self.names[full]
