"""`zoo map`: a task over files, by processes of this machine or by Ray."""

from __future__ import annotations

import argparse

from ...errors import InputError, quantity
from ...tasks import find_task
from ...tasks.progress import write_line
from ..batch import Summary, map_files
from .call_options import check_options, given_options
from .fastest import fastest

WHERE = ("revision", "local_files_only", "lock")
LOADING = (*WHERE, "device", "dtype", "weights", "adapter", "graphs")


def map(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    kind = find_task(args.name, task=args.task, **{name: getattr(args, name) for name in WHERE}).kind
    check_options(args, kind)
    args.device = fastest(args)
    named = {name: getattr(args, name) for name in ("question", "context") if getattr(args, name) is not None}
    summary = map_files(
        args.name,
        args.inputs,
        args.output,
        task=args.task or kind.name,
        text=args.text,
        pair=args.pairs,
        keep=None if args.keep is None else [name for name in args.keep.split(",") if name],
        options=given_options(args, kind),
        format=args.format,
        rows=args.rows,
        engine=args.engine,
        jobs=args.jobs,
        threads=args.threads,
        resume=args.resume,
        root=args.root,
        trust_rows=args.trust_rows,
        raw=args.raw,
        **named,
        **{name: getattr(args, name) for name in LOADING if getattr(args, name) is not None},
    )
    report(summary, "row")


def report(summary: Summary, unit: str, failed: str = "row") -> None:
    """Print the result of a job.  InputError: some of the input could not be used."""
    known = f", {summary.known} of them from before" if summary.known else ""
    write_line(f"zoo: wrote {summary.output}: {quantity(summary.rows, unit)}{known}")
    for text in summary.shown:
        write_line(f"zoo: {text}")
    if summary.errors:
        raise InputError(f"{quantity(summary.errors, failed)} could not be used: the column 'error' says why")
