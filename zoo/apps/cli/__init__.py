"""The command `zoo`: `run` for a checkpoint's task, `map` for that on files, `chat` to talk with one, `info` for what
is in it, `lock` for which files it is, `export` for other formats, `finetune` to train it, `table` for the tables of a
page, `example` for a page to try that with, `grits` for how well two tables agree, `demo` for that
in the browser."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TextIO

from ... import __version__, plugins, set_num_threads
from ...errors import ZooError
from ...tasks import IMAGE_TASKS, TASKS
from .descriptions import (
    CHAT,
    DEMO,
    DEMO_MORE,
    EXAMPLE,
    EXPORT,
    FINETUNE,
    FINETUNE_MORE,
    GRITS,
    INFO,
    LOCK,
    LOCK_MORE,
    RUN,
    RUN_JSON,
)
from .map_arguments import add_engine, map_parser

DESCRIPTION = """\
zoo runs checkpoints of the Hugging Face hub on NumPy, or on torch with --device.

A terminal gets tables; a pipe, or --json, gets JSON.  Exit status: 0 all went well, 1 a checkpoint or an input cannot
be used, 2 the command line cannot.  HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE mean what they mean to
huggingface_hub; NO_COLOR leaves out colours and bars, OMP_NUM_THREADS or --threads limits the threads."""

TABLE = """\
Find the tables of documents and write their cells: with -o to a file or folder, otherwise to stdout.

Each DOCUMENT is a PDF, an image (TIFF, GIF and WebP with all of their pages), a folder of these, a pattern such as
'scans/*.pdf', or '-' for stdin.  The text comes from a PDF's text layer, or from --words, the words of the page with
their boxes; without either it is read, by zoo-read unless --ocr names another engine or --reader a TrOCR checkpoint.

The tables are found by zoo-table-detect and taken apart by zoo-table-structure, small models of print that come with
zoo; --detection and --structure name others, such as Microsoft's."""

TABLE_MORE = """\
-o FILE takes the tables of all pages: .xlsx with a sheet for each, .html, .md, .json, .csv (out-1.csv, out-2.csv, ...
of several tables), and of many documents .jsonl, a line for each page as soon as it is done, or .parquet, a row for
each table.  -o FOLDER gets files for each document in the forms that --format lists, and tables.jsonl.

What is wrong with a page or a document is said at the end, with exit status 1; all others are written.  --resume goes
on after a job was stopped: what tables.jsonl has of the same pages, by content, and the same options, stays.

The words are a JSON list of objects: {"text": "Total", "box": [x0, y0, x1, y1]}, in pixels of the page as it is seen
upright, and "confidence" if it is known.

  zoo table report.pdf --pages 3-7 -o tables.xlsx
  zoo table invoices/ 'more/*.pdf' -o out --jobs 2 --format csv,json
  zoo table page.png --words words.json -o tables.xlsx
  zoo table table.png --no-detection --reader microsoft/trocr-base-printed -o table.csv
  zoo table page.png --detection microsoft/table-transformer-detection \\
    --structure microsoft/table-transformer-structure-recognition-v1.1-all
  zoo table page.png --overlay cells.png --json
  zoo table report.pdf -o tables.xlsx --review review.html
  zoo table 's3://bucket/*.pdf' -o tables --engine ray --jobs 16"""

DEVICE = "cpu (NumPy, the default); onnx, onnx:cuda, ... (ONNX Runtime); cuda, cuda:1, torch:cpu"


class UsageError(Exception):
    """The command line asks for what does not go together; known only once the checkpoint's task is."""


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of the command with these arguments (those of the process if not given)."""
    args, parser = _parse(sys.argv[1:] if argv is None else argv)
    try:
        with warnings.catch_warnings(), _threads(args):
            warnings.showwarning = _show_warning
            command = plugins.command(args.command)
            getattr(command, args.command)(args)
            sys.stdout.flush()
        return 0
    except UsageError as e:
        parser.error(str(e))
    except ZooError as e:
        return _fail(str(e))
    except MemoryError:
        return _fail("not enough memory")
    except BrokenPipeError:  # whoever read our output has seen enough: end as other commands do
        _discard_output()
        return 141
    except OSError as e:
        _discard_output()
        return _fail(str(e))
    except KeyboardInterrupt:
        return 130


@contextlib.contextmanager
def _threads(args: argparse.Namespace) -> Iterator[None]:
    """The threads of --threads for as long as a command runs."""
    count = getattr(args, "threads", None)
    if count is None:
        yield
        return
    if (args.device or "").startswith(("torch", "cuda")):
        raise UsageError("--threads is for NumPy: torch takes its number from OMP_NUM_THREADS")
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(None)


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    """The arguments, and the parser of the command, for its errors."""
    parser, commands = _parsers()
    # What argparse does with "--" differs between its ways of parsing and its versions: here, texts follow.
    at = argv.index("--") if "--" in argv else len(argv)
    words, texts = argv[:at], argv[at + 1 :]
    first = parser.parse_args(words)
    # Options may stand among the inputs, which argparse permits only without subparsers.
    args = commands[first.command].parse_intermixed_args(first.arguments, argparse.Namespace(command=first.command))
    if texts and first.command != "run":
        commands[first.command].error("takes no INPUT")
    if texts:
        args.inputs = [*args.inputs, *texts]
    return args, commands[first.command]


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="zoo", description=DESCRIPTION, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"zoo {__version__}")
    names = ("run", "map", "chat", "info", "lock", "export", "table", "grits", "finetune", "example", "demo")
    help_text = (
        "run a checkpoint, on whole files too, talk with it, show, lock, export or train it, find and compare tables, "
        "write a page to try that with, try it all in the browser; see zoo run --help, ..."
    )
    parser.add_argument("command", choices=names, metavar=" | ".join(names), help=help_text)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what the command works on")

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("name", metavar="NAME", help="a name on the hub, 'org/name', or a folder")
    common.add_argument("--revision", help="a branch, tag or commit of the hub's repository")
    common.add_argument("--local-files-only", action="store_true", help="never use the network")
    common.add_argument("--json", action="store_true", help="JSON even in a terminal")
    locked = argparse.ArgumentParser(add_help=False)
    locked.add_argument("--lock", metavar="FILE", help="load exactly what this file names, as zoo lock wrote it")

    placed = argparse.ArgumentParser(add_help=False)
    placed.add_argument("--device", help=DEVICE)
    threads = argparse.ArgumentParser(add_help=False)
    threads.add_argument("--threads", type=_count, metavar="N", help="on the CPU (as many as the process may use)")
    placed.add_argument("--dtype", help="float32 or float64; on torch also float16 and bfloat16")
    rounded = "round the matrices to so many bits while they are loaded: less memory, faster words"
    placed.add_argument("--weights", choices=("int8", "int4"), help=rounded)
    no_graphs = "on a GPU launch kernels one by one, not as CUDA graphs"
    placed.add_argument("--no-graphs", dest="graphs", action="store_const", const=False, help=no_graphs)

    writing = argparse.ArgumentParser(add_help=False)
    writing.add_argument("--max-new-tokens", type=_count, metavar="N", help="the length of what is written (512)")
    writing.add_argument("--temperature", type=float, metavar="F", help="draw tokens, the wilder the higher; 0: do not")
    writing.add_argument("--seed", type=int, metavar="N", help="draw the same tokens each time")

    run = argparse.ArgumentParser(
        prog="zoo run",
        parents=[common, locked, placed, threads, writing],
        description=RUN,
        epilog=RUN_JSON,
        formatter_class=raw,
    )
    run.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="a text, or an image's path; '-' for the lines of stdin; after '--' it may begin with a dash",
    )
    run.add_argument("--text", action="store_true", help="what a terminal gets, into a pipe or a file too")
    run.add_argument("--adapter", metavar="FOLDER", help="a LoRA adapter, as peft and zoo finetune --lora save it")
    tasks = list(dict.fromkeys([*TASKS, *IMAGE_TASKS]))
    run.add_argument("--task", choices=tasks, metavar="TASK", help=", ".join(tasks))
    run.add_argument("--top-k", type=_count, metavar="N", help="how many labels, words, answers or documents")
    run.add_argument("--pair", action="append", metavar="TEXT", help="second text: one for each INPUT, or one for all")
    run.add_argument("--question", metavar="Q", help="for answer")
    run.add_argument("--context", metavar="C", help="for answer")
    run.add_argument("--overlay", metavar="FILE", help="for segment, detect: a PNG file for the image and its labels")
    run.add_argument("--threshold", type=float, metavar="F", help="for detect: the least score, 0 ... 1")
    run.add_argument("--lines", action="store_const", const=True, help="for read: each image has several lines")
    run.add_argument("--num-beams", type=_count, metavar="N", help="for read: texts that are tried side by side (1)")

    chat = argparse.ArgumentParser(prog="zoo chat", parents=[locked, placed, threads, writing], description=CHAT)
    chat.add_argument("name", metavar="NAME", help="a name on the hub, 'org/name', or a folder")
    chat.add_argument("--system", metavar="TEXT", help="what the answers are to be like")
    chat.add_argument("--top-p", type=float, metavar="F", help="draw from the fewest tokens with this share, 0 ... 1")
    chat.add_argument("--top-k", type=int, metavar="N", help="draw from so many tokens; 0: from all")
    chat.add_argument(
        "--min-p", type=float, metavar="F", help="draw from those of this share of the likeliest's, 0 ... 1"
    )
    chat.add_argument("--stop", action="append", metavar="TEXT", help="an answer ends before this; may be given again")
    chat.add_argument("--revision", help="a branch, tag or commit of the hub's repository")
    chat.add_argument("--local-files-only", action="store_true", help="never use the network")

    info = argparse.ArgumentParser(prog="zoo info", parents=[common, locked], description=INFO)
    lock = argparse.ArgumentParser(prog="zoo lock", description=LOCK, epilog=LOCK_MORE, formatter_class=raw)
    lock.add_argument("names", nargs="*", metavar="NAME", help="a name on the hub, 'org/name', or a folder")
    lock.add_argument("-o", "--output", metavar="FILE", default="zoo.lock", help="the lock file (zoo.lock)")
    lock.add_argument("--check", action="store_true", help="compare what is on disk with the lock")
    lock.add_argument("--revision", help="a branch, tag or commit of the hub's repository")
    lock.add_argument("--local-files-only", action="store_true", help="never use the network")
    lock.add_argument("--json", action="store_true", help="JSON even in a terminal")
    export = argparse.ArgumentParser(prog="zoo export", parents=[common, locked], description=EXPORT)
    export.add_argument("output", metavar="OUTPUT", help="the file to write, OUTPUT.gguf, or the folder")
    gguf_types = "of a .gguf file's matrices: f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0 (q8_0)"
    export.add_argument("--type", metavar="TYPE", help=gguf_types)
    export.add_argument("--precision", choices=("float32", "int8"), help="of a folder's graphs (float32)")
    export.add_argument("--standard", action="store_true", help="graphs of the ONNX standard's operators alone")
    export.add_argument("--task", choices=tasks, metavar="TASK", help="the task whose head is exported as graphs")
    export.add_argument("--web", action="store_true", help="a page beside the graphs that runs them in the browser")
    npm = "for --web: the folder of its two archives, as npm pack writes them (they are downloaded)"
    export.add_argument("--web-libraries", metavar="FOLDER", help=npm)
    finding = argparse.ArgumentParser(add_help=False)
    finding.add_argument("--detection", metavar="NAME", help="what finds the tables of a page (zoo-table-detect)")
    finding.add_argument("--structure", metavar="NAME", help="what finds rows and columns (zoo-table-structure)")
    finding.add_argument("--no-detection", action="store_true", help="each page is the image of one table")
    engines = ("zoo-read", "trocr", "rapidocr", "tesseract", "none")
    finding.add_argument("--ocr", choices=engines, help="what reads pages without a text layer (zoo-read)")
    finding.add_argument(
        "--reader", metavar="NAME", help="a TrOCR checkpoint that reads their cells, in place of --ocr"
    )
    table = argparse.ArgumentParser(
        prog="zoo table", parents=[finding, locked, threads], description=TABLE, epilog=TABLE_MORE, formatter_class=raw
    )
    table.add_argument(
        "documents", nargs="+", metavar="DOCUMENT", help="a PDF, an image, a folder, a pattern; '-' for stdin"
    )
    table.add_argument(
        "-o", "--output", metavar="FILE", help=".csv, .html, .md, .json, .xlsx, .jsonl or .parquet, or a folder"
    )
    table.add_argument("--format", metavar="LIST", help="of a folder's files: csv, json, html, md, xlsx (csv)")
    table.add_argument("--pages", metavar="N-M", help="of each document, such as 3-7,9 or 5-")
    table.add_argument("--dpi", type=float, default=144, metavar="N", help="pixels an inch of a PDF's pages (144)")
    table.add_argument("--password", metavar="TEXT", help="of an encrypted PDF")
    table.add_argument("--jobs", type=_count, metavar="N", help="processes that work side by side (1; of Ray all)")
    add_engine(table)
    table.add_argument("--resume", action="store_true", help="go on with what FOLDER or FILE.jsonl has already")
    join = "a table that goes on over pages is one, where nothing speaks against it"
    table.add_argument("--join", action="store_true", help=join)
    flat = "one header row, names such as 'Revenue / 2023'; rows under a heading are named with it"
    table.add_argument("--flat", action="store_true", help=flat)
    safe = "for a .csv file: an apostrophe before texts that a spreadsheet would take for formulas"
    table.add_argument("--safe", action="store_true", help=safe)
    types = "for .xlsx: numbers, percent and dates become such, where there is no doubt"
    table.add_argument("--types", action="store_true", help=types)
    table.add_argument("--words", metavar="FILE", help="a JSON file with the words of a page")
    table.add_argument(
        "--review",
        metavar="FILE",
        help="an HTML page to check and edit the tables on",
    )
    table.add_argument("--overlay", metavar="FILE", help="a PNG file to write a page and its cells to")
    table.add_argument(
        "--threshold", type=float, default=0.5, metavar="F", help="least score of tables, rows, ..., 0 ... 1 (0.5)"
    )
    table.add_argument(
        "--padding", type=_pixels, metavar="N", help="pixels of margin around a table (a 40th of the page)"
    )
    table.add_argument("--device", help=DEVICE)
    table.add_argument("--local-files-only", action="store_true", help="never use the network")
    table.add_argument("--json", action="store_true", help="JSON even in a terminal")
    grits = argparse.ArgumentParser(prog="zoo grits", description=GRITS)
    grits.add_argument("true", metavar="TRUE", help="a .json or .html file")
    grits.add_argument("predicted", metavar="PREDICTED", help="another one")
    grits.add_argument("--metric", action="append", choices=("top", "con", "loc"), help="one or more; by default all")
    grits.add_argument("--published", action="store_true", help="as the authors' program computes them")
    grits.add_argument("--json", action="store_true", help="JSON even in a terminal")
    finetune = argparse.ArgumentParser(
        prog="zoo finetune", parents=[locked], description=FINETUNE, epilog=FINETUNE_MORE, formatter_class=raw
    )
    finetune.add_argument("name", metavar="CHECKPOINT", help="a name on the hub, 'org/name', or a folder")
    finetune.add_argument("data", metavar="DATA", help="a .csv or .jsonl file, a folder of images, or hub:NAME[:SPLIT]")
    finetune.add_argument("-o", "--output", metavar="FOLDER", required=True, help="where the trained checkpoint goes")
    trained = ("classify", "tag", "embed", "generate", "read")
    finetune.add_argument("--task", choices=trained, metavar="TASK", help=", ".join(trained))
    finetune.add_argument("--text", metavar="COLUMN", help="what is given (text, or image)")
    finetune.add_argument("--label", metavar="COLUMN", help="what is asked (label, or text)")
    finetune.add_argument("--epochs", type=float, default=3, metavar="N", help="how often each row is seen (3)")
    finetune.add_argument("--steps", type=_count, metavar="N", help="instead of --epochs")
    finetune.add_argument("--batch-size", type=_count, default=16, metavar="N", help="rows of a step (16)")
    finetune.add_argument("--accumulate", type=_count, default=1, metavar="N", help="parts of a step (1)")
    finetune.add_argument("--learning-rate", type=float, default=5e-5, metavar="F", help="the highest (5e-5)")
    finetune.add_argument("--schedule", default="linear", metavar="S", help="linear, cosine or constant after the rise")
    finetune.add_argument("--precision", default="float32", metavar="P", help="float32, or bfloat16 where that is fast")
    finetune.add_argument("--lora", type=_count, metavar="RANK", help="train and save an adapter alone, as peft does")
    shard = "of several processes each keeps a part of the weights (FSDP2)"
    finetune.add_argument("--shard", action="store_true", help=shard)
    finetune.add_argument("--seed", type=int, default=0, metavar="N", help="of order, dropout and new weights (0)")
    finetune.add_argument("--save-every", type=_count, default=500, metavar="N", help="steps between two states (500)")
    finetune.add_argument("--device", help="torch:cpu, cuda, cuda:1; cuda where there is one")
    finetune.add_argument("--revision", help="a branch, tag or commit of the hub's repository")
    finetune.add_argument("--local-files-only", action="store_true", help="never use the network")
    example = argparse.ArgumentParser(prog="zoo example", description=EXAMPLE, formatter_class=raw)
    example.add_argument("output", nargs="?", metavar="FILE", default="page.png", help="where it goes (page.png)")
    found = {"run": run, "chat": chat, "info": info, "lock": lock, "export": export, "table": table, "grits": grits}
    mapping = map_parser([locked, placed, threads, writing], [task for task in tasks if task != "rerank"], _count)
    demo = argparse.ArgumentParser(
        prog="zoo demo", parents=[finding, locked, threads], description=DEMO, epilog=DEMO_MORE, formatter_class=raw
    )
    tab = "the checkpoint of a tab (classify, segment, read, embed or chat): a name on the hub, 'org/name', or a folder"
    demo.add_argument("--model", action="append", default=[], metavar="TAB=NAME", help=tab)
    demo.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (127.0.0.1)")
    demo.add_argument("--port", type=_port, default=7860, metavar="N", help="(7860); 0: one that is free")
    demo.add_argument("--device", help=DEVICE)
    demo.add_argument("--local-files-only", action="store_true", help="never use the network")
    return parser, {**found, "finetune": finetune, "map": mapping, "example": example, "demo": demo}


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def _pixels(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is below 0")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not in 0 ... 65535")
    return value


_count.__name__ = _pixels.__name__ = _port.__name__ = (
    "whole number"  # argparse's word for it in the message about one that is not
)


def _fail(message: str) -> int:
    print("zoo:", " ".join(message.split()), file=sys.stderr)
    return 1


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"zoo: warning: {message}", file=sys.stderr)


def _discard_output() -> None:
    """Let what is left in stdout's buffer go nowhere, instead of failing once more as the interpreter exits."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is not a file of the system
        return
