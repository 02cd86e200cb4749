"""The parser of a command's arguments: argparse's, with messages of one line and the nearest guess."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ...errors import nearest


class UsageError(Exception):
    """The arguments do not fit together; some are known only when the checkpoint's task is."""


class Parser(argparse.ArgumentParser):
    """A parser that names what was meant, and does not print the whole usage at an error."""

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        if "choices" in options:
            options["type"] = _one_of(options["choices"])
        return super().add_argument(*names, **options)

    def error(self, message: str) -> NoReturn:
        if (match := re.match(r"unrecognized arguments: (--[\w-]+)", message)) is not None:
            message += nearest(match[1], [name for name in self._option_string_actions if name.startswith("--")], 1)
        self.exit(2, f"{self.prog}: {message}\n{self.prog} --help lists the arguments\n")


def _one_of(choices: Iterable[str]) -> Callable[[str], str]:
    known = list(choices)

    def choose(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(
                f"invalid choice: {text!r}, expected one of {', '.join(known)}{nearest(text, known)}"
            )
        return text

    return choose
