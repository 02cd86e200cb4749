"""`zoo table`: the tables of documents, to a terminal, a pipe, files or folders."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ZooError, list_names, quantity
from ...files.leftovers import temporary_folder
from ...images.open import read_file
from ...tasks.progress import Progress, write_line
from ..batch.inputs import InputFile, find_inputs
from ..tables import Table, Word, draw_tables, join_pages, read_words
from ..tables.batch import ExtractorConfig, PageJob, Worker, extract_pages, tables_on_ray
from ..tables.export import write
from ..tables.pages import PageTables, page_tables
from ..tables.review import ReviewWriter
from ..tables.writers import (
    LINES,
    FileWriter,
    FolderWriter,
    JsonLinesWriter,
    ParquetWriter,
    TableWriter,
    text_of,
)
from .fastest import fastest
from .parser import UsageError
from .table_options import check_options, extractor_config, output_formats, output_suffix, stdout_format
from .terminal import Terminal, clean


def table(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    check_options(args)
    same = ("threshold", "padding", "device", "local_files_only", "lock", "dpi", "password", "photo")
    options = {name: getattr(args, name) for name in same}
    options["straighten"] = not args.no_straighten
    if args.model is None:
        config = extractor_config(args, **options)
    else:
        from ..markup.extractor import ModelExtractorConfig

        config = ModelExtractorConfig(model=args.model, **options)
    if args.words is not None:
        config = replace(config, ocr="none")
    with temporary_folder() if "-" in args.documents else nullcontext() as folder:
        documents = [_stdin(folder) if folder and name == "-" else name for name in args.documents]
        inputs, passed_over = find_inputs(documents)
        if passed_over:
            write_line(f"zoo: skipped {quantity(passed_over, 'file')} of other kinds than documents")
        if args.engine == "ray":
            _on_ray(args, config, inputs)
        elif args.words is not None or args.overlay is not None:
            _one_page(args, config, inputs)
        else:
            _all_pages(args, config, inputs)


def _on_ray(args: argparse.Namespace, config: ExtractorConfig, inputs: Sequence[InputFile]) -> None:
    from .map import report

    paths, config = [one.path for one in inputs], replace(config, device=fastest(args))
    options = {"selection": args.pages, "jobs": args.jobs, "threads": args.threads, "resume": args.resume}
    report(tables_on_ray(config, paths, args.output, **options), "document", "page")


def _one_page(args: argparse.Namespace, config: ExtractorConfig, inputs: Sequence[InputFile]) -> None:
    """Extract the tables of a single page, with words from a file or with an image of the tables found."""
    option = "--words" if args.words is not None else "--overlay"
    if len(inputs) != 1:
        raise UsageError(f"{option} is for one page, but {len(inputs)} documents were given")
    words = None if args.words is None else read_words(args.words)
    with config.open(inputs[0].path) as document:
        numbers = document.numbers(args.pages)
        if len(numbers) != 1:
            raise UsageError(
                f"{option} is for one page, but {document.name} has {len(numbers)}: choose one with --pages"
            )
        page = document.page(numbers[0])
    if words is not None:
        page = replace(page, words=words)
        _check_places(words, page.image, f"{args.words} are off the page: are their boxes in pixels of {page.name}")
    result = page_tables(config.extractor(), page, document.sha256)
    found = result.tables
    if not found:
        raise _no_table(page.name, args)
    if words and not any(cell.text for one in found for cell in one.cells):
        warnings.warn(
            f"none of the {len(words)} words of {args.words} is in a table: are their boxes in pixels of {page.name}?",
            stacklevel=1,
        )
    written = []
    if args.overlay is not None:
        image = draw_tables(page.image, found)
        write(args.overlay, lambda part: image.save(part, format="PNG"))
        written.append(Path(args.overlay))
    if stdout_format(args) is not None:
        _show([one.flat() for one in found] if args.flat else found, args)
    for output in _output(args, config, inputs):
        output.add(result if output.by_page else next(_process([result], args)))
        written += output.close()
    _say_paths(written)
    if doubtful := sum(bool(one.all_doubts) for one in found):
        _say(_tables(len(found), doubtful))


def _check_places(words: Sequence[Word], image: np.ndarray, problem: str) -> None:
    """Warn if the middles of words are off the page: their boxes may be in points, or of another resolution."""
    H, W = image.shape[:2]
    middles = [((w.box[0] + w.box[2]) / 2, (w.box[1] + w.box[3]) / 2) for w in words]
    if off := sum(not (0 <= x <= W and 0 <= y <= H) for x, y in middles):
        warnings.warn(f"{off} of the {len(words)} words of {problem}, which are {W} x {H}?", stacklevel=1)


def _all_pages(args: argparse.Namespace, config: ExtractorConfig, inputs: Sequence[InputFile]) -> None:
    """Write the tables of every page of every document, then report the pages and files with an error."""
    outputs, tally = _output(args, config, inputs), _Tally(len(inputs), len(inputs))
    worker, jobs = Worker(config), args.jobs or 1
    pages: Iterable[PageJob] = _pages(worker, inputs, args.pages, tally)
    if len(inputs) == 1:
        pages = list(pages)
        jobs = min(jobs, max(1, len(pages)))
    if tally.expected != 1:  # for a single page NumPy has finished before an engine has started
        worker.config = replace(config, device=fastest(args))
    tables, shows = list[Table](), stdout_format(args) is not None
    progress = Progress(tally.expected, None, "pages")
    with progress as advance:

        def by_page() -> Iterator[PageTables]:
            for result in _results(pages, worker, jobs, outputs):
                progress.expect(tally.expected)
                advance(1)
                tally.add(result)
                for output in outputs:
                    if output.by_page:
                        output.add(result)
                yield result

        for result in _process(by_page(), args):
            tally.tables += len(result.tables)
            tally.doubtful += sum(bool(one.all_doubts) for one in result.tables)
            if shows:
                tables += result.tables
            for output in outputs:
                if not output.by_page:
                    output.add(result)
    worker.close()
    if tally.failed and tally.pages + len(tally.failed) == 1:
        raise ZooError(tally.failed[0])
    if not tally.tables and not tally.failed and tally.pages == 1:
        raise _no_table(inputs[0].path, args)
    if shows:
        _show(tables, args)
    _say_paths([path for output in outputs for path in output.close()])
    suffix = stdout_format(args) or "" if args.output in (None, "-") else output_suffix(args.output)
    if tally.without_text and suffix not in ("", ".json"):
        write_line(f"zoo: warning: no text in the tables of {list_names(tally.without_text)}")
    tally.report([error for one in outputs if isinstance(one, FolderWriter) for error in one.failed])
    if not tally.tables and tally.pages:
        raise _no_table(_count_of(tally.pages, "page"), args)


@dataclass
class _Tally:
    """The counts and errors of a job, for the lines at its end."""

    expected: int  # pages; one of each document that was not opened yet
    documents: int
    said: set[tuple[str, str]] = field(default_factory=set)  # documents' warnings
    pages: int = 0
    tables: int = 0
    doubtful: int = 0  # tables
    failed: list[str] = field(default_factory=list)  # errors of pages and documents
    without_text: list[str] = field(default_factory=list)  # pages

    def add(self, result: PageTables) -> None:
        self.pages += 1
        for text in result.warnings:
            if (result.source, text) not in self.said:  # once for a file
                self.said.add((result.source, text))
                _say(f"warning: {result.source}: {text}" if self.documents > 1 else f"warning: {text}")
        if result.error is not None:
            self.failed.append(result.error)
        if result.tables and not any(cell.text for one in result.tables for cell in one.cells):
            self.without_text.append(f"{result.source}, page {result.page}" if result.pages > 1 else result.source)

    def report(self, unwritten: Sequence[str]) -> None:
        """Print the counts and the errors.  unwritten: errors of files.  ZooError: there are errors."""
        if self.pages > 1 or self.failed or unwritten:
            counts = (
                _count_of(self.pages, "page"),
                _count_of(self.documents, "document"),
                _tables(self.tables, self.doubtful),
            )
            _say("{} of {}, {}".format(*counts))
        elif self.doubtful:
            _say(_tables(self.tables, self.doubtful))
        for error in (*self.failed, *unwritten):
            _say(error)
        if self.failed or unwritten:
            counts = (len(self.failed), "of these could not be read"), (len(unwritten), "files could not be written")
            raise ZooError(" and ".join(f"{n} {what}" for n, what in counts if n))


def _pages(worker: Worker, inputs: Sequence[InputFile], selection: str | None, tally: _Tally) -> Iterator[PageJob]:
    """The pages of each document, which `worker` opens when its first page is asked for; errors go to `tally`."""
    for one in inputs:
        try:
            pages = worker.plan(one.path, selection)
        except ZooError as e:
            if len(inputs) == 1:
                raise
            tally.failed.append(str(e))
            tally.expected -= 1
        else:
            tally.expected += len(pages) - 1
            yield from pages


def _process(results: Iterable[PageTables], args: argparse.Namespace) -> Iterator[PageTables]:
    """Join and flatten the tables if --join and --flat ask for it."""
    for result in join_pages(results, _say) if args.join else results:
        yield replace(result, tables=tuple(one.flat() for one in result.tables)) if args.flat else result


def _say(text: str) -> None:
    write_line(f"zoo: {text}")


def _results(
    pages: Iterable[PageJob], worker: Worker, jobs: int, outputs: Sequence[TableWriter]
) -> Iterator[PageTables]:
    """The result of each page, in order: known from an earlier job, or found now."""
    lines = next((output for output in outputs if isinstance(output, JsonLinesWriter)), None)
    done = {} if lines is None else lines.done
    drawn: deque[PageJob] = deque()  # in order, until they are yielded

    def next_results() -> Iterator[PageTables]:
        while drawn and (result := done.get((drawn[0].document, drawn[0].number))) is not None:
            path = drawn.popleft().path  # the same content may have another name now
            yield replace(result, source=path, tables=tuple(replace(table, source=path) for table in result.tables))

    def new() -> Iterator[PageJob]:
        for page in pages:
            drawn.append(page)
            if (page.document, page.number) not in done:
                yield page

    for result in extract_pages(new(), worker, jobs):
        yield from next_results()
        drawn.popleft()
        yield result
    yield from next_results()


def _output(args: argparse.Namespace, config: ExtractorConfig, inputs: Sequence[InputFile]) -> list[Any]:
    """The writers of --review and of the file or folder of -o."""
    review = [] if args.review is None else [ReviewWriter(Path(args.review), config, safe=not args.raw)]
    if args.output in (None, "-"):
        return review
    suffix, path, options = (
        output_suffix(args.output),
        Path(args.output),
        {"safe": not args.raw, "types": not args.as_text},
    )
    if suffix == "/":
        names = {one.path: one.name for one in inputs}
        folder = FolderWriter(path, names, output_formats(args), options)
        return [*review, JsonLinesWriter(path / LINES, config.key(), args.resume, args.overwrite), folder]
    if suffix == ".jsonl":
        by_page = not (args.join or args.flat)
        return [*review, JsonLinesWriter(path, config.key() if by_page else "", args.resume, args.overwrite, by_page)]
    if suffix == ".parquet":
        return [*review, ParquetWriter(path)]
    if suffix == ".csv" and len(inputs) > 1:
        raise UsageError(f"-o {args.output} is for one document, but {len(inputs)} were given: name a folder")
    return [*review, FileWriter(path, suffix, options)]


def _stdin(folder: Path) -> str:
    """Copy stdin to a file, which workers can open."""
    path = folder / "stdin"
    path.write_bytes(read_file(sys.stdin.buffer, "stdin"))
    return str(path)


def _no_table(name: str, args: argparse.Namespace) -> ZooError:
    if args.model is not None:
        return ZooError(f"{name}: {args.model} wrote no table")
    hint = "" if args.no_detection else ", or --no-detection if the whole image is one table"
    return ZooError(f"{name}: no table found; try a --threshold below {args.threshold:g}{hint}")


def _tables(count: int, doubtful: int) -> str:
    return _count_of(count, "table") + (f", {doubtful} doubtful" if doubtful else "")


def _count_of(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _say_paths(paths: Sequence[Path]) -> None:
    if paths:
        print("zoo: wrote", list_names(list(map(str, paths))), file=sys.stderr)


def _show(tables: Sequence[Table], args: argparse.Namespace) -> None:
    """Print the tables: their texts, or the format of --json and --format."""
    suffix = stdout_format(args)
    terminal = Terminal(sys.stdout, plain_text=not suffix)
    if suffix:
        return terminal.verbatim(text_of(tables, suffix, safe=not args.raw))
    sources = {one.source for one in tables}
    for i, one in enumerate(tables, 1):
        terminal.title(f"table {i} of {len(tables)}")
        spanning = sum(cell.row_span * cell.column_span > 1 for cell in one.cells)
        fields = {
            "document": one.source or "" if len(sources) > 1 else "",
            "page": " to ".join(dict.fromkeys(map(str, (one.pages[0], one.pages[-1])))) if one.pages else "",
            "at": f"({', '.join(f'{v:.0f}' for v in one.box)})",
            "turned": f"{one.angle:g} degrees clockwise" if one.angle else "",
            "score": f"{one.score:.4f}",
            "rows": f"{one.shape[0]}, of the header {one.header_rows}",
            "columns": str(one.shape[1]),
            "cells": f"{len(one.cells)}, spanning {spanning}",
            "doubts": "; ".join(one.all_doubts),
        }
        terminal.fields([(name, text) for name, text in fields.items() if text])
        if not any(cell.text for cell in one.cells):
            terminal.line("  no text")
        else:
            terminal.table([[clean(text) for text in row] for row in one.rows(repeat=False)])
