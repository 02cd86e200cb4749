"""Unpickling that builds plain values and calls nothing but what the caller lists.

The unpickler is Python's own, in its form in Python, whose table of opcodes a subclass may replace: only those that
torch.save writes for tensors are left (protocols 2 to 5, also from Python 2), each is counted, and names resolve to
what the caller lists.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import CheckpointError, ZooError

PICKLE_LIMIT = 16 << 20  # bytes
STEP_LIMIT = 2_000_000  # about 30,000 tensors; an opcode is a step, and what takes longer is several
_CALL, _COPY = 10, 2
# Python hashes an integer to itself: larger keys could be chosen so that all of them collide.
_KEY_LIMIT = 1 << 16

_OPCODES = (
    *("PROTO", "FRAME", "STOP", "MARK", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"),
    *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINSTRING", "SHORT_BINSTRING", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("SETITEM", "SETITEMS", "GLOBAL", "STACK_GLOBAL", "REDUCE", "BINPERSID"),
)


class Items(dict):
    """A dict or OrderedDict of a pickle: keys are names or small numbers, whose hash is cheap, and each occurs once."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is not str and (type(key) not in (int, bool) or not -_KEY_LIMIT < key < _KEY_LIMIT):
            raise ValueError(f"a key of type {type(key).__name__}, names or numbers below {_KEY_LIMIT} were expected")
        if type(key) is str:
            key.encode()  # a message may quote it: no half of a surrogate pair
        if key in self:
            raise ValueError(f"the key {str(key)[:200]!r} twice")
        super().__setitem__(key, value)


# Typed as Any: the stubs know this class only as an alias of the one in C, which has no table of opcodes.
_PythonUnpickler: Any = pickle._Unpickler


class GuardedUnpickler(_PythonUnpickler):
    """Reads the pickles in `data` one after the other with `load`; `at` is the end of the last one.

    names: "module name" -> the value that stands for it, a function where a pickle may call it.  OrderedDict is built
    in.  persistent_load: turns a persistent id into a value.  where: what messages begin with.  All pickles together
    take at most STEP_LIMIT steps.  Every failure is a CheckpointError.
    """

    def __init__(self, data: bytes, where: object, names: Mapping[str, Any], persistent_load: Callable[[Any], Any]):
        self._file = io.BytesIO(data)
        super().__init__(self._file, encoding="utf-8")
        self.where, self.names, self.persistent_load = where, names, persistent_load
        self._steps = 0

    @property
    def at(self) -> int:
        return self._file.tell()

    def load(self) -> Any:
        self.memo = {}
        try:
            return super().load()
        except ZooError:
            raise
        except EOFError:
            problem = "it ends in the middle"
        except (pickle.UnpicklingError, LookupError, TypeError, ValueError, AttributeError, struct.error) as e:
            problem = f"{type(e).__name__}: {str(e)[:200]}"
        raise CheckpointError(f"{self.where}: a damaged or unusual pickle, near byte {self.at}: {problem}")

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module} {name}"
        if full == "collections OrderedDict":
            return self._ordered_items
        if full not in self.names:
            raise CheckpointError(
                f"{self.where}: it holds {module[:100]}.{name[:100]}, which zoo does not load (nothing was run): "
                "expected a state dict of tensors; where the checkpoint can be trusted, convert it to safetensors"
            )
        return self.names[full]

    def count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > STEP_LIMIT:
            raise ValueError(f"more than {STEP_LIMIT} steps")

    def _ordered_items(self, pairs: list[Any] | None = None) -> Items:
        """Python 2 hands over the items in a list, Python 3 sets them afterwards."""
        made = Items()
        self.count(_COPY * len(pairs or ()))
        for key, value in pairs or ():
            made[key] = value
        return made

    def _build(self) -> None:
        """Sets attributes: a state dict has `_metadata`, which nobody reads, and no other value may have any."""
        state = self.stack.pop()
        if type(state) is not Items or type(self.stack[-1]) is not Items:
            raise ValueError(f"attributes of a {type(self.stack[-1]).__name__}")

    def _refuse(self) -> None:
        raise ValueError("an opcode that torch.save does not write for tensors")


def _count_steps(code: int, operation: Callable[[Any], None]) -> Callable[[GuardedUnpickler], None]:
    steps = _CALL if code in (pickle.REDUCE[0], pickle.BINPERSID[0]) else 1

    def step(self: GuardedUnpickler) -> None:
        self.count(steps)
        operation(self)

    return step


_listed = {getattr(pickle, name)[0] for name in _OPCODES}
_operations = dict.fromkeys(range(256), GuardedUnpickler._refuse)
_operations |= {code: operation for code, operation in _PythonUnpickler.dispatch.items() if code in _listed}
_operations |= {pickle.EMPTY_DICT[0]: lambda self: self.append(Items()), pickle.BUILD[0]: GuardedUnpickler._build}
GuardedUnpickler.dispatch = {code: _count_steps(code, operation) for code, operation in _operations.items()}
