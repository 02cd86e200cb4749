"""The options of `zoo table`: what they mean, and which exclude each other."""

from __future__ import annotations

import argparse
import importlib.util
import os
from pathlib import Path
from typing import Any

from ...errors import TableError
from ...optional import pip_install
from ..tables.batch import ExtractorConfig
from ..tables.extract import DETECTION, STRUCTURE
from ..tables.table import SUFFIXES, TEXTS, suffix_of
from ..tables.writers import FOR_ALL
from .parser import UsageError


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that exclude each other before anything is loaded."""
    check_finding(args)
    if args.model is not None:
        found = ("detection", "structure", "no_detection", "ocr", "reader", "padding")
        for name in (*(name for name in found if getattr(args, name)), *(["threshold"] * (args.threshold != 0.5))):
            raise UsageError(f"--model reads whole pages: leave out --{name.replace('_', '-')}")
    if args.words is not None and args.reader is not None:
        raise UsageError("--words are the text of the page, and --reader reads it: give one of them")
    if args.ocr is not None and args.words is not None:
        raise UsageError("--ocr reads the page, and --words are its text: give one of them")
    if not 0 <= args.threshold <= 1:
        raise UsageError(f"--threshold {args.threshold:g} is not in 0 ... 1")
    for written in filter(None, (args.output, args.overlay, args.review)):
        for read in filter(None, (*args.documents, args.words)):
            if os.path.isfile(written) and os.path.exists(read) and os.path.samefile(written, read):
                raise UsageError(f"{written} is both an input and an output: choose another name for the output")
    shown = stdout_format(args)
    suffix = shown or "" if args.output in (None, "-") else output_suffix(args.output)
    if args.engine == "ray":
        return _check_ray(args, suffix)
    if args.raw and args.review is None and suffix != ".csv" and not (suffix == "/" and ".csv" in output_formats(args)):
        raise UsageError("--raw is for CSV: in the other formats no text can run as a formula")
    if args.as_text and ".xlsx" not in (suffix, *(output_formats(args) if suffix == "/" else ())):
        raise UsageError("--as-text is for XLSX: the other formats keep every cell as text anyway")
    if args.format is not None and shown is None and suffix != "/":
        raise UsageError("--format is for -o FOLDER and for stdout: the format of a file is that of its suffix")
    if args.resume and args.overwrite:
        raise UsageError("--resume keeps what is there and --overwrite replaces it: give one of them")
    if args.overwrite and suffix not in ("/", ".jsonl"):
        raise UsageError("--overwrite is for -o FOLDER and -o FILE.jsonl: any other FILE is replaced")
    if args.resume and suffix not in ("/", ".jsonl"):
        raise UsageError("--resume needs -o FOLDER or -o FILE.jsonl")
    if args.resume and suffix == ".jsonl" and (args.join or args.flat):
        raise UsageError("--resume with --join or --flat needs -o FOLDER, which records the tables of each page")
    if args.join and (args.words is not None or args.overlay is not None):
        raise UsageError("--join is for several pages, --words and --overlay for one: leave one of them out")
    for name in ("json", "text"):
        if getattr(args, name) and shown is None:
            raise UsageError(f"--{name} is for stdout: the format of the file that -o names is that of its suffix")
    is_image = len(args.documents) == 1 and Path(args.documents[0]).suffix.lower() not in ("", ".pdf")
    has_no_text = is_image and os.path.isfile(args.documents[0]) and args.ocr == "none"
    if suffix in (".csv", ".html", ".md", ".xlsx") and has_no_text:
        output = args.output if shown is None else f"--format {args.format}"
        raise UsageError(f"{output} would have no text with --ocr none: write .json or --overlay, which show boxes")
    if ".xlsx" in (suffix, *output_formats(args)) and importlib.util.find_spec("openpyxl") is None:
        raise UsageError(f"XLSX requires the package openpyxl: {pip_install('tables')}")


def check_finding(args: argparse.Namespace) -> None:
    """Refuse options for finding tables that exclude each other."""
    if args.no_detection and args.detection is not None:
        raise UsageError("--no-detection treats the whole image as one table: leave out --detection")
    if args.ocr is not None and args.reader is not None:
        raise UsageError("--ocr reads the page, and --reader its cells: give one of them")


def _check_ray(args: argparse.Namespace, suffix: str) -> None:
    """Refuse options that --engine ray does not have: it only writes rows of tables."""
    if suffix not in ("/", ".parquet"):
        raise UsageError("--engine ray writes Parquet: -o FOLDER, or -o FILE.parquet")
    for name in ("words", "overlay", "review", "format", "json", "raw", "as_text", "join", "flat"):
        if getattr(args, name):
            raise UsageError(
                f"--engine ray writes rows of tables to Parquet alone: leave out --{name.replace('_', '-')}"
            )
    if "-" in args.documents:
        raise UsageError("--engine ray reads files: '-' needs --engine local")


def extractor_config(args: argparse.Namespace, **more: Any) -> ExtractorConfig:
    """The config that the options for finding and reading tables say; more: its other fields."""
    detection = None if args.no_detection else args.detection or DETECTION
    return ExtractorConfig(args.structure or STRUCTURE, detection, args.reader, args.ocr, **more)


def output_suffix(output: str) -> str:
    """The suffix of the file that -o names; "/" for a folder."""
    path = Path(output)
    if output.endswith(("/", os.sep)) or path.is_dir() or not path.suffix:
        return "/"
    if path.suffix.lower() in FOR_ALL:
        return path.suffix.lower()
    try:
        return suffix_of(output)
    except TableError as e:
        raise UsageError(f"{e}; {', '.join(FOR_ALL)}, or a folder") from None


def stdout_format(args: argparse.Namespace) -> str | None:
    """The suffix of the format that goes to stdout, "" for text to read; None if nothing goes there."""
    given = [f"--{name}" for name in ("json", "format", "text") if getattr(args, name)]
    if args.output not in (None, "-") or (args.output is None and args.review is not None and not given):
        return None
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other: give one of them")
    if args.format is None:
        return ".json" if args.json else ""
    suffix, *others = output_formats(args)
    if others:
        raise UsageError(f"--format {args.format} is for -o FOLDER: stdout gets one format")
    if suffix not in TEXTS:
        raise UsageError(f"--format {args.format} is for files: name one with -o, such as -o tables{suffix}")
    return suffix


def output_formats(args: argparse.Namespace) -> list[str]:
    """The suffixes of --format, each once."""
    found = [f".{name.strip().lower().removeprefix('.')}" for name in (args.format or "csv").split(",")]
    for suffix in found:
        if suffix not in SUFFIXES:
            raise UsageError(f"--format {args.format}: {suffix} is not one of {', '.join(SUFFIXES)}")
    return list(dict.fromkeys(found))
