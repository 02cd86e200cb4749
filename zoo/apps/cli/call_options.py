"""The options of a task's call on the command line, which are those of the task's row in `zoo.task_kinds`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
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
    for flag, same in _by_flag(tasks).items():
        bounds = [one.least for one, _ in same if one.least is not None]
        option = replace(same[0][0], least=min(bounds) if len(bounds) == len(same) else None)
        parts = []
        for one, names in same:
            of = "" if len(names) == len({task.name for task in tasks}) else f"for {_first_names(names)}: "
            parts.append(of + (f"the column of {one.name}" if one.each and columns else one.help))
        given: dict[str, Any] = {"dest": option.name, "help": "; ".join(parts)}
        aliases = [f"--{name.replace('_', '-')}" for name in (*option.aliases, option.name)]
        aliases = [name for name in dict.fromkeys(aliases) if name != flag]
        if option.each and columns:
            given["metavar"] = "COLUMN"
        elif option.type is bool:
            given |= {"action": "store_const", "const": not option.default}
            if option.default:  # the names without a "no"
                add(*aliases, dest=option.name, action="store_const", const=True, help=argparse.SUPPRESS)
                aliases = []
        else:
            given |= {"metavar": option.metavar, "type": number(option) if option.type is not str else str}
            # A second text may be given for each input; a question or a context stands for an argument of the call.
            if option.several or (option.each and not any(option.name in task.arguments for task in tasks)):
                given["action"] = "append"
        add(flag, **given)
        if aliases:
            add(*aliases, **given | {"help": argparse.SUPPRESS})


def _by_flag(tasks: Sequence[TaskKind]) -> dict[str, list[tuple[CallOption, tuple[str, ...]]]]:
    """Each flag with its options and their tasks: several if they have it for different things."""
    found: dict[str, list[tuple[CallOption, tuple[str, ...]]]] = {}
    for option, names in options_of(tasks).items():
        found.setdefault(flag_of(option), []).append((option, names))
    return found


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and others"


def check_options(args: argparse.Namespace, *kinds: TaskKind) -> None:
    """Raise UsageError for options that a task does not have, and for one that its call needs.

    kinds: several for a name that tasks of texts and of images share.
    """
    _take_label_count(args, kinds)
    own = {option.name: option for kind in kinds for option in kind.options}
    for flag, same in _by_flag(TASKS).items():
        option, names = same[0][0], [name for _, tasks in same for name in tasks]
        given = getattr(args, option.name, None)
        if given is not None and option.name not in own:
            is_shared = kinds[0].name in names  # with a task for other inputs
            found = f"this checkpoint reads {kinds[0].reads}s" if is_shared else f"the task is {kinds[0].name}"
            as_input = ": give the text as INPUT" if flag == "--prompt" else ""
            raise UsageError(f"{flag} is for {', '.join(names)}{' of texts' * is_shared}, and {found}{as_input}")
    for option in own.values():
        given = getattr(args, option.name, None)
        if given is None and option.required and not (option.each and args.command == "map"):
            raise UsageError(f"{kinds[0].name} needs {flag_of(option)} {option.metavar}: {option.help}")
        if given is not None and option.type is int and option.least is not None and given < option.least:
            raise UsageError(f"{flag_of(option)} {given} is not at least {option.least:g}")


def _take_label_count(args: argparse.Namespace, kinds: Sequence[TaskKind]) -> None:
    """Take --labels N as the number of labels that are shown, of a task whose checkpoints have their own."""
    text = getattr(args, "candidate_labels", None)
    counted = [kind for kind in kinds if kind.labelled and kind.option("top_k")]
    if text is None or not counted or any(kind.option("candidate_labels") for kind in kinds):
        return
    if not text.strip().isdecimal() or int(text) < 1:
        problem = f"the labels of {counted[0].name} are the checkpoint's: expected how many of them are shown"
        raise UsageError(f"--labels {text}: {problem}; --task zero-shot-classification takes labels in words")
    if args.top_k is not None:
        raise UsageError(f"--labels and --top-k are one option of {counted[0].name}: give one of them")
    args.top_k, args.candidate_labels = int(text), None


def given_options(args: argparse.Namespace, kind: TaskKind) -> dict[str, Any]:
    """The options of the task's call that were given, but for those with a value for each input."""
    values = {one.name: getattr(args, one.name, None) for one in kind.options if not one.each}
    options = {name: value for name, value in values.items() if value is not None}
    samples = {"top_p", "min_p", "top_k"} if kind.streams else {"top_p", "min_p"}
    if "temperature" in options or options.keys() & samples:
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
