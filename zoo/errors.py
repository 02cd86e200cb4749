"""Every error that zoo raises on purpose.

A message names the file or field, what was found, what was expected and, where there is one, the nearest guess.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

# Characters of a message, which may quote a part of a large file.
MAX_MESSAGE = 2_000


class ZooError(Exception):
    """The base of all of them: `except zoo.ZooError` catches every error that a user can fix.

    argument: the argument that the error is about, if any; the message begins with it.  index: its item, from 0, if it
    is a list.  problem: the rest of the message.
    """

    def __init__(self, *args: object, argument: str | None = None, index: int | None = None):
        self.argument, self.index = argument, index
        self.problem = str(args[0]) if args else ""
        if argument is not None:
            place = argument if index is None else f"{argument}[{index}]"
            args = (f"{place}{'' if self.problem[:1] in ':[' else ' '}{self.problem}", *args[1:])
        super().__init__(*(_shorten(arg) if isinstance(arg, str) else arg for arg in args))

    def about(self, argument: str, index: int | None = None) -> ZooError:
        """This error with another argument or item."""
        problem = self.problem if self.argument is not None else f": {self}"
        return type(self)(problem, argument=argument, index=index)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE // 2]} ... {text[-MAX_MESSAGE // 4 :]}"


class CheckpointError(ZooError):
    """A weight file, or an index of weight files, is damaged, unsafe or of another format than its name says."""


class MissingWeightError(CheckpointError):
    """The model asks for a tensor that the checkpoint does not have."""


class WeightShapeError(CheckpointError):
    """A tensor's shape does not follow from the config."""


class UnusedWeightError(CheckpointError):
    """The checkpoint has tensors that the model does not know."""


class ConfigError(ZooError):
    """A config file is not readable, contradicts itself or has a value out of range."""


class UnsupportedError(ZooError):
    """A checkpoint, config or argument needs something that zoo does not implement (zoo never approximates)."""


class ResourceError(ZooError):
    """A model needs more memory than the machine has."""


class HubError(ZooError):
    """The files of a name could not be found."""


class NotFoundError(HubError):
    """No such folder, repository, revision or file."""


class AccessError(HubError):
    """The repository is gated or private, and there is no valid token."""


class OfflineError(HubError):
    """The file is not in the cache, and the network is off or out of reach."""


class LockError(ZooError):
    """A lock file is damaged, does not name the checkpoint, or names other files than were found."""


class TokenizerError(ZooError):
    """Tokenizer files are missing, damaged or of a kind that zoo does not read."""


class InputError(ZooError, ValueError):
    """An argument of a model or a task cannot be used: the message says which, and why."""


class BatchError(InputError):
    """Some of several inputs cannot be used.

    results: a result for each input, in their order, None for those with an error.  errors: input's index -> error.
    """

    def __init__(self, errors: Mapping[int, ZooError], results: Sequence[Any]):
        self.errors, self.results = dict(errors), list(results)
        shown = "; ".join(str(error) for error in [*self.errors.values()][:5])
        more = f"; and {len(self.errors) - 5} more" if len(self.errors) > 5 else ""
        super().__init__(f"{len(self.errors)} of {len(self.results)} inputs cannot be used: {shown}{more}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errors, self.results)


class TableError(InputError):
    """Cells do not form a table, or a file is no table or cannot store it: the message names the row and column."""


def nearest_file(path: str | os.PathLike[str]) -> str:
    """`nearest` among the files beside a path that does not exist."""
    folder, name = os.path.split(os.fspath(path))
    try:
        return nearest(str(name), os.listdir(folder or "."))
    except (OSError, ValueError):
        return ""


def quantity(count: int, noun: str) -> str:
    """A number with its noun, for messages: "1 row", "2,000 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def list_names(names: Sequence[str], most: int = 8) -> str:
    """The first names, with commas between them, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def check_choice(value: object, name: str, known: Collection[str]) -> None:
    """Raise InputError unless the value of the argument `name` is one of those that are known."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} is {value!r:.100}, expected one of {', '.join(known)}{nearest(str(value), known)}")


def nearest(name: str, among: Iterable[str], count: int = 3) -> str:
    """The end of an error message: `; did you mean ...?`, or "" if no name is similar."""
    if len(name) > 200:
        return ""
    import difflib  # here: most programs make no mistake, and it takes a millisecond

    near = difflib.get_close_matches(name, list(islice(among, 10_000)), count, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
