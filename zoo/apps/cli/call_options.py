"""The options of a task's call on the command line, which are those of the task's row in `zoo.task_kinds`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ZooError
from ...task_kinds import TASKS, CallOption, TaskKind, find_tasks, options_of
from .parser import UsageError


def number(option: CallOption) -> Callable[[str], float]:
    """The parser of an option's number.  What is left to the task has its own message there."""

    def parse(text: str) -> float:
        value = option.type(text)
        if option.type is int and option.least is not None and value < option.least:
            raise argparse.ArgumentTypeError(f"{value} is not at least {option.least:g}")
        return value

    parse.__name__ = "whole number" if option.type is int else "number"  # argparse's word in its error messages
    return parse


def flag_of(option: CallOption) -> str:
    """--top-k"""
    return f"--{(option.flag or option.name).replace('_', '-')}"


def add_options(add: Callable[..., Any], tasks: Sequence[TaskKind], columns: bool = False) -> None:
    """Add the options of tasks to a parser.  columns: those with a value for each input name a column."""
    for option, names in options_of(tasks).items():
        of = "" if len(names) == len({task.name for task in tasks}) else f"for {_first_names(names)}: "
        given: dict[str, Any] = {"dest": option.name, "help": f"{of}{option.help}"}
        if option.each and columns:
            given |= {"metavar": "COLUMN", "help": f"{of}the column of {option.name}"}
        elif option.type is bool:
            given |= {"action": "store_const", "const": True}
        else:
            given |= {"metavar": option.metavar, "type": number(option) if option.type is not str else str}
            # A second text may be given for each input; a question or a context stands for an argument of the call.
            if option.several or (option.each and not any(option.name in task.arguments for task in tasks)):
                given["action"] = "append"
        add(flag_of(option), **given)


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and others"


def check_options(args: argparse.Namespace, *kinds: TaskKind) -> None:
    """Raise UsageError for options that a task does not have, and for one that its call needs.

    kinds: several for a name that tasks of texts and of images share.
    """
    own = [option for kind in kinds for option in kind.options]
    for option, names in options_of().items():
        given = getattr(args, option.name, None)
        if given is not None and option not in own:
            same = kinds[0].name in names  # which is also a task for other inputs
            found = f"this checkpoint reads {kinds[0].reads}s" if same else f"the task is {kinds[0].name}"
            raise UsageError(f"{flag_of(option)} is for {', '.join(names)}{' of texts' * same}, and {found}")
        if given is None and option.required and option in own and not (option.each and args.command == "map"):
            raise UsageError(f"{kinds[0].name} needs {flag_of(option)} {option.metavar}: {option.help}")


def given_options(args: argparse.Namespace, kind: TaskKind) -> dict[str, Any]:
    """The options of the task's call that were given, but for those with a value for each input."""
    values = {one.name: getattr(args, one.name, None) for one in kind.options if not one.each}
    options = {name: value for name, value in values.items() if value is not None}
    if "temperature" in options or options.keys() & {"top_p", "min_p"}:
        options["do_sample"] = options.get("temperature") != 0
        if not options["do_sample"]:
            options.pop("temperature")
    return options


def task_argument(add: Callable[..., Any], tasks: Sequence[TaskKind] = TASKS, help: str = "") -> None:
    """Add --task, which takes the names of transformers' pipelines, too."""
    names = list(dict.fromkeys(task.name for task in tasks))

    def parse(text: str) -> str:
        try:
            found = find_tasks(text)
        except ZooError as e:
            raise argparse.ArgumentTypeError(str(e)) from None
        if not set(found) & set(tasks):
            raise argparse.ArgumentTypeError(f"invalid choice: {text!r}, expected one of {', '.join(names)}")
        return text

    add("--task", type=parse, metavar="TASK", help=f"{help}{', '.join(names)}")
