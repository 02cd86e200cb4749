"""`zoo table`: the tables of a page, to a terminal, a pipe or files."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zoo

from ..errors import TableError, ZooError
from ..tables import Table, TableExtractor, draw_tables, read_words
from ..tables.export import write, write_text
from ..tables.extract import DETECTION, STRUCTURE
from ..tables.table import PAGE, TEXTS, suffix_of
from . import UsageError
from .terminal import Terminal, clean, clip

WIDEST = 40  # columns of a terminal that a cell may take


def table(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    suffix = _check(args)
    words = None if args.words is None else read_words(args.words)

    def loaded(name: str, task: str) -> Any:
        return zoo.load(name, task=task, device=args.device, local_files_only=args.local_files_only, lock=args.lock)

    extractor = TableExtractor(
        loaded(args.structure or STRUCTURE, "detect"),
        None if args.no_detection else loaded(args.detection or DETECTION, "detect"),
        reader=None if args.reader is None else loaded(args.reader, "read"),
        threshold=args.threshold,
        padding=args.padding,
    )
    found = extractor(args.page, words)
    if not found:
        hint = "" if args.no_detection else ", and --no-detection takes the whole image for a table"
        raise ZooError(f"{args.page}: no table found; a --threshold below {args.threshold:g} finds more{hint}")
    if words and not any(cell.text for one in found for cell in one.cells):
        warnings.warn(
            f"none of the {len(words)} words of {args.words} is in a table: are their boxes in pixels of {args.page}?",
            stacklevel=1,
        )
    written = []
    if args.overlay is not None:
        image = draw_tables(args.page, found)
        write(args.overlay, lambda part: image.save(part, format="PNG"))
        written.append(args.overlay)
    if args.output is not None:
        written += _save(found, Path(args.output), suffix, args.safe)
    else:
        _show(found, args)
    if written:
        print("zoo: wrote", ", ".join(str(path) for path in written), file=sys.stderr)


def _check(args: argparse.Namespace) -> str:
    """The suffix of the output, "" for none; refuse what does not go together before anything is loaded."""
    if args.no_detection and args.detection is not None:
        raise UsageError("--no-detection takes the image for a table: give no --detection with it")
    if args.words is not None and args.reader is not None:
        raise UsageError("--words are the text of the page, and --reader reads it: give one of them")
    if not 0 <= args.threshold <= 1:
        raise UsageError(f"--threshold {args.threshold:g} is not in 0 ... 1")
    for written in filter(None, (args.output, args.overlay)):
        for read in filter(None, (args.page, args.words)):
            if os.path.exists(written) and os.path.exists(read) and os.path.samefile(written, read):
                raise UsageError(f"{written} would be written over, and it is read")
    if args.safe and (args.output is None or Path(args.output).suffix.lower() != ".csv"):
        raise UsageError("--safe is for -o FILE.csv: a spreadsheet takes no text of the other formats for a formula")
    if args.output is None:
        return ""
    if args.json:
        raise UsageError("--json is for stdout, and -o names a file, whose suffix says what it gets")
    try:
        suffix = suffix_of(args.output)
    except TableError as e:
        raise UsageError(str(e)) from None
    if suffix != ".json" and args.words is None and args.reader is None:
        raise UsageError(
            f"{args.output} would hold no text: give --words FILE or --reader NAME "
            "(without them the cells have boxes only, which .json and --overlay show)"
        )
    if suffix == ".xlsx" and importlib.util.find_spec("openpyxl") is None:
        raise UsageError("XLSX wants the package openpyxl: pip install 'zoo[tables]'")
    return suffix


def _save(tables: Sequence[Table], path: Path, suffix: str, safe: bool) -> list[Path]:
    """Write the tables as the suffix says; the files written."""
    if suffix == ".csv":  # the one format that holds no more than one
        paths = [path.with_name(f"{path.stem}-{i}{path.suffix}") for i in range(1, len(tables) + 1)]
        paths = paths if len(tables) > 1 else [path]
        for one, to in zip(tables, paths, strict=True):
            write_text(one.to_csv(safe=safe), to)
        return paths
    if suffix == ".xlsx":
        from ..tables.as_xlsx import save_xlsx

        save_xlsx(tables, path)
    elif suffix == ".json":
        write_text(_json(tables), path)
    elif suffix == ".html":
        write_text(PAGE + "\n".join(one.to_html() for one in tables), path)
    else:
        write_text("\n".join(map(TEXTS[suffix], tables)), path)
    return [path]


def _json(tables: Sequence[Table]) -> str:
    """An array, also of one."""
    return json.dumps([one.to_dict() for one in tables], ensure_ascii=False, allow_nan=False) + "\n"


def _show(tables: Sequence[Table], args: argparse.Namespace) -> None:
    """A terminal gets the text, or where there is none what is known of the table; anything else gets JSON."""
    as_json = args.json or not sys.stdout.isatty()
    terminal = Terminal(sys.stdout, plain_text=not as_json)
    if as_json:
        return terminal.line(_json(tables).rstrip("\n"))
    for i, one in enumerate(tables, 1):
        place = ", ".join(f"{v:.0f}" for v in one.box)
        terminal.title(f"table {i} of {len(tables)}")
        spanning = sum(cell.row_span * cell.column_span > 1 for cell in one.cells)
        terminal.fields(
            [
                ("at", f"({place})"),
                ("score", f"{one.score:.4f}"),
                ("rows", f"{one.shape[0]}, of the header {one.header_rows}"),
                ("columns", str(one.shape[1])),
                ("cells", f"{len(one.cells)}, spanning {spanning}"),
            ]
        )
        if args.words is None and args.reader is None:
            terminal.line("  no text: give --words FILE or --reader NAME")
        else:
            terminal.table([[clip(clean(text), WIDEST) for text in row] for row in one.rows(repeat=False)])
