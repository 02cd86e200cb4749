"""The parser of a command's arguments: argparse's, with messages of one line and the nearest guess."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ...errors import nearest
from .peer_options import other_option
from .wrapping import MAX_HELP_WIDTH, terminal_columns, wrap, wrap_lines

MAX_CHOICES_WIDTH = 24  # characters of choices that stand in place of a value's name


class UsageError(Exception):
    """The arguments do not fit together; some are known only when the checkpoint's task is."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help in the width of the terminal: paragraphs are filled anew, indented lines stay."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=28, width=min(terminal_columns(), MAX_HELP_WIDTH))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = [part if re.search("^ ", part, re.M) else part.replace("\n", " ") for part in text.split("\n\n")]
        return "\n\n".join(_fill(part, width) for part in paragraphs)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(re.sub(r"\s+", " ", text).strip(), width)


def _fill(paragraph: str, columns: int) -> str:
    """A paragraph wrapped to lines; the lines of a list are each wrapped below their beginning."""
    if "\n" in paragraph or paragraph.startswith(" "):
        return wrap_lines(paragraph, columns)
    return "\n".join(wrap(re.sub(" +", " ", paragraph), columns))


class Arguments:
    """Adds arguments to a parser, called as its `add_argument`; `group` to one of its groups."""

    def __init__(self, parser: argparse.ArgumentParser, title: str | None = None):
        self.parser = parser
        groups = {group.title: group for group in parser._action_groups}
        self._to = parser if title is None else groups.get(title) or parser.add_argument_group(title)

    def __call__(self, *names: Any, **options: Any) -> argparse.Action:
        if "choices" in options:
            options["type"] = _one_of(options["choices"])
            listed = ", ".join(options["choices"])
            if "metavar" not in options and len(listed) > MAX_CHOICES_WIDTH:
                options |= {"metavar": names[-1].strip("-").upper(), "help": f"{options.get('help')}: {listed}"}
        return self._to.add_argument(*names, **options)

    def group(self, title: str) -> Arguments:
        """What adds arguments to the group of that title."""
        return Arguments(self.parser, title)


class Parser(argparse.ArgumentParser):
    """A parser that names what was meant, and does not print the whole usage at an error."""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=HelpFormatter, **options)
        self._positionals.title = "arguments"

    def error(self, message: str) -> NoReturn:
        message = message.replace("unrecognized arguments", "unknown arguments", 1)
        if (match := re.match(r"unknown arguments: .*?(--?[a-z][\w-]*)", message)) is not None:
            known = [name for name in self._option_string_actions if name.startswith("--")]
            message += other_option(match[1], known) or nearest(match[1], known, 1)
        self.exit(2, f"{self.prog}: {message}\n{self.prog} --help lists the arguments\n")


def usage_of(parser: argparse.ArgumentParser) -> str:
    """The arguments without a name; all options, which the groups list, are one word."""
    names = []
    for action in parser._get_positional_actions():
        name = str(action.metavar or action.dest)
        names.append({"*": f"[{name} ...]", "?": f"[{name}]", "+": f"{name} ..."}.get(str(action.nargs), name))
    line = " ".join([parser.prog, *names, "[options]"])
    indent = len("usage: ")
    return f"\n{' ' * indent}".join(wrap(line, terminal_columns() - indent))


def _one_of(choices: Iterable[str]) -> Callable[[str], str]:
    known = list(choices)

    def choose(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(
                f"invalid choice: {text!r}, expected one of {', '.join(known)}{nearest(text, known)}"
            )
        return text

    return choose
