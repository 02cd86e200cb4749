"""The arguments of each command: groups that several share, and its own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from ...task_kinds import TASKS, find_tasks
from . import descriptions as texts
from .call_options import add_options, task_argument
from .parser import Arguments, Parser, usage_of

Add = Arguments
LOADING, ENGINE, OUTPUT, TASK_OPTIONS, JOB = "loading", "engine", "output", "options of tasks", "jobs"  # groups
ADAPTER_HELP = "a LoRA adapter, as peft and zoo finetune --lora save it"
PHOTO_HELP = "make photos of curved or tilted pages flat first, by UVDoc"
WEIGHTS_HELP = "quantise the matrices while they are loaded: less memory, faster generation"


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of a command."""
    description, epilog = texts.COMMANDS[command]
    parser = Parser(prog=f"zoo {command}", description=description, epilog=epilog)
    for add_arguments in ARGUMENTS[command]:
        add_arguments(Arguments(parser))
    parser.usage = usage_of(parser)
    return parser


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def _not_negative(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is below 0")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not in 0 ... 65535")
    return value


_count.__name__ = _not_negative.__name__ = _port.__name__ = "whole number"  # argparse's word in its error messages


def _add_name(add: Add) -> None:
    add("name", metavar="NAME", help="a name on the hub, 'org/name', or a folder")


def _names(add: Add) -> None:
    add("names", nargs="*", metavar="NAME", help="a name on the hub, 'org/name', or a folder")


def _offline(add: Add) -> None:
    add = add.group(LOADING)
    add("--local-files-only", action="store_true", help="never use the network")


def _hub(add: Add) -> None:
    add = add.group(LOADING)
    _offline(add)
    add("--revision", help="a branch, tag or commit of the hub's repository")


def _as_json(add: Add) -> None:
    add = add.group(OUTPUT)
    add("--json", action="store_true", help="write JSON, even to a terminal")
    add("--text", action="store_true", help="write text as to a terminal, even to a pipe or a file")


def _add_lock(add: Add) -> None:
    add = add.group(LOADING)
    add("--lock", metavar="FILE", help="load exactly the files of this lock file (see zoo lock)")


def _mmproj(add: Add) -> None:
    named = "the file that reads images for a GGUF file NAME, where it is not called mmproj-NAME"
    add.group(LOADING)("--mmproj", metavar="FILE", help=named)


def _on(add: Add) -> None:
    add = add.group(ENGINE)
    device = "cpu (NumPy); onnx, onnx:cuda, ... (ONNX Runtime); openvino; cuda, cuda:1, torch:cpu (torch); auto "
    device += "(ZOO_DEVICE, or else the fastest that is installed).  The default is auto for chat, demo, map, read "
    device += "and several pages of table, and cpu otherwise"
    add("--device", help=device)


def _add_device(add: Add) -> None:
    add = add.group(ENGINE)
    _on(add)
    add("--dtype", help="float32 or float64; on torch, and with openvino where the CPU has them, float16 and bfloat16")
    add("--weights", choices=("int8", "int4"), help=WEIGHTS_HELP)
    no_graphs = "on a GPU launch kernels one by one, not as CUDA graphs"
    add("--no-graphs", dest="graphs", action="store_const", const=False, help=no_graphs)


def _threads(add: Add) -> None:
    add = add.group(ENGINE)
    add("--threads", type=_count, metavar="N", help="threads on the CPU (all that are available)")


def _finding(add: Add) -> None:
    add = add.group("models")
    add("--detection", metavar="NAME", help="checkpoint that finds tables (zoo-table-detect)")
    structure = "checkpoint that finds rows and columns (zoo-table-structure)"
    add("--structure", metavar="NAME", help=structure)
    add("--no-detection", action="store_true", help="each page is the image of one table")
    engines = ("auto", "zoo-read", "pp-ocrv6-small", "trocr", "rapidocr", "tesseract", "none")
    add("--ocr", choices=engines, help="engine that reads pages without a text layer (auto: see zoo ocr --help)")
    add("--reader", metavar="NAME", help="auto, or a checkpoint that reads cells, in place of --ocr")


def _engine(add: Add) -> None:
    add = add.group(JOB)
    add("--engine", choices=("local", "ray"), default="local", help="processes of this machine (local), or Ray")


def _run(add: Add) -> None:
    given = "a text, or a file's path; '-' for the lines of stdin; after '--' it may begin with a dash"
    add("inputs", nargs="*", metavar="INPUT", help=given)
    add.group(LOADING)("--adapter", metavar="FOLDER", help=ADAPTER_HELP)
    task_argument(add)
    add_options(add.group(TASK_OPTIONS), TASKS)
    drawn = f"for {', '.join(kind.name for kind in TASKS if kind.draws)}"
    subtitles = "for automatic-speech-recognition: subtitles of one INPUT in place of text or JSON"
    add.group(OUTPUT)("--format", choices=("srt", "vtt"), help=subtitles)
    add.group(OUTPUT)("--overlay", metavar="FILE", help=f"{drawn}: a PNG file for the image with the result on it")
    masks = "for mask-generation: a folder for the masks of one image, each a PNG file in black and white"
    add.group(OUTPUT)("--masks", metavar="FOLDER", help=masks)


def _embed(add: Add) -> None:
    add("inputs", nargs="*", metavar="INPUT", help="a text, or an image's path; '-' for the lines of stdin")
    add("-o", "--output", metavar="FILE", required=True, help="the file of vectors: .npy, .safetensors or .parquet")
    add("--resume", action="store_true", help="continue with the vectors that a job that was stopped has written")
    precisions = ("float32", "int8", "uint8", "binary", "ubinary")
    add("--precision", choices=precisions, default="float32", help="bits of a dimension; binary: one (float32)")
    add("--truncate-dim", type=_count, metavar="N", help="the first N dimensions of each vector")
    add("--as", dest="route", choices=("query", "document"), help="the prompt and layers of queries or documents")
    add("--prompt-name", metavar="NAME", help="the checkpoint's prompt to put before each text")
    add("--prompt", metavar="TEXT", help="a prompt of your own")
    add("--pooling", metavar="MODE", help="mean, cls, max, ... in place of the checkpoint's")
    add("--normalize", action="store_const", const=True, help="vectors of length 1, if not as the checkpoint says")


def _chat(add: Add) -> None:
    add_options(add, find_tasks("generate"))
    add("--system", metavar="TEXT", help="the system message, with instructions for the answers")
    add("--image", action="append", metavar="FILE", help="an image for the first message; may be repeated")
    add("--server", metavar="URL", help="a server that has the model NAME, such as zoo serve; ZOO_API_KEY is its key")


def _info(add: Add) -> None:
    add("--batch", type=_count, default=1, metavar="N", help="rows of the batch whose memory is estimated (1)")
    add("--length", type=_count, metavar="N", help="tokens of each (all that the checkpoint takes, at most 4096)")
    add("--tp", type=_count, metavar="N", help="the memory of each of N processes that share a Llama or Qwen")


def _bench(add: Add) -> None:
    task_argument(add, help="the task to measure, if not the checkpoint's own: ")
    add("--weights", choices=("int8", "int4"), help=WEIGHTS_HELP)
    all_of = "zoo, zoo-onnx, zoo-openvino, zoo-torch, sentence-transformers, transformers, llama-cpp (all that run it)"
    add("--against", metavar="LIST", help=f"contenders, of {all_of}")
    add("--seconds", type=float, default=5, metavar="F", help="for the rounds of each contender (5)")
    add("--count", type=_count, default=64, metavar="N", help="texts, pictures or new tokens of a round (64)")


def _lock(add: Add) -> None:
    _names(add)
    add("-o", "--output", metavar="FILE", default="zoo.lock", help="the lock file (zoo.lock)")
    add("--check", action="store_true", help="compare the files on disk with the lock file")


def _export(add: Add) -> None:
    add("output", metavar="OUTPUT", help="the file to write, OUTPUT.gguf, or a folder for ONNX graphs")
    gguf_types = "for a .gguf file: f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0 (q8_0)"
    add("--type", metavar="TYPE", help=gguf_types)
    add("--precision", choices=("float32", "int8"), help="for graphs: precision of matrix products (float32)")
    add("--standard", action="store_true", help="for graphs: use only operators of the ONNX standard")
    task_argument(add, help="for graphs: the task whose head is exported: ")
    add("--web", action="store_true", help="for graphs: add a page that runs them in the browser")
    npm = "for --web: a folder with the two archives from npm pack (by default they are downloaded)"
    add("--web-libraries", metavar="FOLDER", help=npm)


def _table(add: Add) -> None:
    add("documents", nargs="+", metavar="DOCUMENT", help="a PDF, an image, a folder, a pattern; '-' for stdin")
    instead = "a checkpoint of images and texts that reads whole pages, in place of all others (see zoo read --help)"
    add.group("models")("--model", metavar="NAME", help=instead)
    add = add.group(OUTPUT)
    output = ".csv, .html, .md, .json, .xlsx, .jsonl or .parquet, or a folder; '-' for stdout"
    add("-o", "--output", metavar="FILE", help=output)
    add("--format", metavar="LIST", help="of stdout: csv, json, html or md; of a folder's files: also xlsx (csv)")
    pages = add.group("pages")
    pages("--pages", metavar="N-M", help="pages of each document, such as 3-7,9 or 5-")
    pages("--dpi", type=float, default=144, metavar="N", help="resolution of a PDF's pages in pixels per inch (144)")
    pages("--password", metavar="TEXT", help="password of an encrypted PDF")
    jobs = add.group(JOB)
    jobs("--jobs", type=_count, metavar="N", help="number of processes (1; with Ray as many as fit)")
    _engine(add)
    jobs("--resume", action="store_true", help="continue with the pages that FOLDER or FILE.jsonl has already")
    jobs("--overwrite", action="store_true", help="replace the pages that FOLDER or FILE.jsonl has already")
    add("--join", action="store_true", help="join the parts of a table that continues on the next page")
    flat = "one header row, with names such as 'Revenue / 2023'; row headings become part of row names"
    add("--flat", action="store_true", help=flat)
    add("--raw", action="store_true", help="for .csv: no apostrophe before texts that spreadsheets run as formulas")
    add("--as-text", action="store_true", help="for .xlsx: write numbers, percentages and dates as texts, as read")
    pages("--words", metavar="FILE", help="a JSON file with the words of a page")
    add("--review", metavar="FILE", help="an HTML page for checking and editing the tables")
    add("--overlay", metavar="FILE", help="a PNG file for the page with its cells drawn on it")
    least = "lowest score of tables, rows, ..., 0 ... 1 (0.5)"
    pages("--threshold", type=float, default=0.5, metavar="F", help=least)
    pages("--padding", type=_not_negative, metavar="N", help="pixels of margin around a table (a 40th of the page)")
    pages("--photo", action="store_true", help=PHOTO_HELP)
    pages("--no-straighten", action="store_true", help="take pages as they are, tilted or on their side")


def _ocr(add: Add) -> None:
    add("documents", nargs="+", metavar="DOCUMENT", help="a PDF, an image, a folder, a pattern; '-' for stdin")
    add("-o", "--output", metavar="FILE", help=".txt, .json, .tsv (tesseract's columns) or .md; '-' for stdout")
    add("--format", choices=("txt", "json", "tsv", "md"), help="of stdout (txt)")
    add("--json", action="store_true", help="write JSON to stdout")
    readers = "auto (zoo-read, then pp-ocrv6-small for what that is not sure of), or a checkpoint's name (auto)"
    add("--reader", metavar="NAME", default="auto", help=readers)
    detectors = "pp-ocrv6-small-det where it is installed, or lines: the ink of one column of text is cut into lines"
    add("--detector", metavar="NAME", help=detectors)
    add("--photo", action="store_true", help=PHOTO_HELP)
    add("--pages", metavar="N-M", help="pages of each document, such as 3-7,9 or 5-")
    add("--dpi", type=float, default=144, metavar="N", help="resolution of a PDF's pages in pixels per inch (144)")
    add("--password", metavar="TEXT", help="password of an encrypted PDF")


def _read(add: Add) -> None:
    add("documents", nargs="+", metavar="DOCUMENT", help="a PDF, an image, a folder, a pattern; '-' for stdin")
    named = "the checkpoint that reads: a name on the hub, 'org/name', or a folder"
    add("--model", metavar="NAME", required=True, help=named)
    add("-o", "--output", metavar="FILE", help=".md, .html or .json; '-' for stdout")
    add("--format", choices=("md", "html", "json"), help="of stdout (md)")
    add("--json", action="store_true", help="write JSON to stdout")
    add("--prompt", metavar="TEXT", help="what is asked about each page (to convert it to DocTags or Markdown)")
    most = "the most tokens of the answer about a page (8192, or what the context has room for)"
    add("--max-new-tokens", type=_count, metavar="N", help=most)
    add("--pages", metavar="N-M", help="pages of each document, such as 3-7,9 or 5-")
    add("--dpi", type=float, default=144, metavar="N", help="resolution of a PDF's pages in pixels per inch (144)")
    add("--password", metavar="TEXT", help="password of an encrypted PDF")


def _grits(add: Add) -> None:
    add("true", metavar="TRUE", help="the true table, a .json or .html file")
    add("predicted", metavar="PREDICTED", help="the table to score, a .json or .html file")
    add("--metric", action="append", choices=("top", "con", "loc"), help="may be repeated; by default all")
    add("--published", action="store_true", help="score as the authors' program does")


def _finetune(add: Add) -> None:
    add("name", metavar="CHECKPOINT", help="a name on the hub, 'org/name', or a folder")
    add("data", metavar="DATA", help="a .csv or .jsonl file, a folder of images, or hub:NAME[:SPLIT]")
    add("-o", "--output", metavar="FOLDER", required=True, help="folder of the trained checkpoint")
    task_argument(add, [kind for kind in TASKS if kind.recipe])
    add("--text", metavar="COLUMN", help="the column of inputs (text, or image)")
    add("--label", metavar="COLUMN", help="the column of answers (label, or text)")
    add("--eval", metavar="DATA", help="rows to score the model on each epoch, as DATA; the best state is written")
    held = "without --eval the share of the rows that it is scored on, not trained on (0.1 of 20 rows or more); 0: none"
    add("--held-out", type=float, metavar="F", help=held)
    add("--epochs", type=float, default=3, metavar="N", help="passes over the data (3)")
    add("--steps", type=_count, metavar="N", help="number of steps, instead of --epochs")
    add("--batch-size", type=_count, default=16, metavar="N", help="rows in a step (16)")
    add("--accumulate", type=_count, default=1, metavar="N", help="compute a step in this many parts (1)")
    add("--learning-rate", type=float, default=5e-5, metavar="F", help="the highest learning rate (5e-5)")
    add("--schedule", default="linear", metavar="S", help="linear, cosine or constant, after the warm-up (linear)")
    add("--precision", default="float32", metavar="P", help="float32, or bfloat16 on hardware that is fast at it")
    add("--lora", type=_count, metavar="RANK", help="train and save only a LoRA adapter, in peft's format")
    add("--shard", action="store_true", help="with several processes, share the weights among them (FSDP2)")
    add("--seed", type=int, default=0, metavar="N", help="seed of order, dropout and new weights (0)")
    add("--save-every", type=_count, default=500, metavar="N", help="save the state after this many steps (500)")
    add("--device", help="torch:cpu, cuda, cuda:1; cuda where there is one")


def _example(add: Add) -> None:
    add("output", nargs="?", metavar="FILE", default="page.png", help="the file to write (page.png)")


def _demo(add: Add) -> None:
    tab = "the checkpoint of a tab (classify, segment, read, embed, chat), or of a further one: a task, as of zoo run"
    add("--model", action="append", default=[], metavar="TAB=NAME", help=tab)
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen at (127.0.0.1)")
    add("--port", type=_port, default=7860, metavar="N", help="port (7860); 0: any free one")


def _serve(add: Add) -> None:
    _names(add)
    add("--tables", action="store_true", help="answer /v1/tables, with the models of zoo table")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen at (127.0.0.1)")
    add("--port", type=_port, default=8000, metavar="N", help="port (8000); 0: any free one")
    add("--api-key", metavar="KEY", help="what clients must send (ZOO_API_KEY); without a key anyone may ask")
    add("--keys", metavar="FILE", help="keys of several clients: KEY, or KEY NAME, in each line; # begins a comment")
    add("--cors", action="append", default=[], metavar="ORIGIN", help="origin of web pages that may ask; '*': all")
    add("--context", type=_count, metavar="N", help="most tokens of a prompt with its answer (the model's)")
    add("--max-rows", type=_count, default=8, metavar="N", help="generations that are computed at once (8)")
    add(
        "--max-queue",
        type=_count,
        default=256,
        metavar="N",
        help="requests that wait for a model; others get 429 (256)",
    )
    kept = "memory of each model for earlier prompts, so that a common beginning is reused (256); 0: none"
    add("--prefix-cache", type=_not_negative, default=256, metavar="MB", help=kept)
    add("--timeout", type=_count, default=600, metavar="S", help="seconds for an answer, also after Ctrl-C (600)")
    allowed = "a host from which images of messages may be fetched; may be repeated (none: data URIs only)"
    add("--allow-url", action="append", metavar="HOST", help=allowed)
    levels = "debug (requests to /health, /ready and /metrics too), info (a line for each request), warning or error"
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info", metavar="LEVEL", help=levels)
    form = "the log on stderr: text, or json (an object in each line)"
    add("--log-format", choices=("text", "json"), default="text", metavar="FORM", help=form)
    add("--isolate", action="store_true", help="a process for each model, which is started again if it dies or hangs")
    add("--engine", choices=("local", "ray"), default="local", help="this process (local), or replicas of Ray Serve")
    add("--replicas", type=_count, metavar="N", help="replicas of --engine ray (1), each with --threads CPUs (1)")
    add("--autoscaling", metavar="JSON", help="Ray Serve's autoscaling_config, in place of --replicas")


def _map(add: Add) -> None:
    tasks = [kind for kind in TASKS if not kind.ranks]
    add("inputs", nargs="+", metavar="IN", help="a file, a folder, a pattern or a URI")
    add("output", metavar="OUT", help=".parquet, .csv or .jsonl, or a folder")
    task_argument(add, tasks)
    rows = add.group("rows")
    rows("--text", metavar="COLUMN", help="the column to read (text; of images image, of recordings audio)")
    rows("--keep", metavar="COLUMNS", help="the columns of IN to write again: a,b,c (all)")
    add.group(OUTPUT)("--format", choices=("parquet", "jsonl", "csv"), help="of the files in a folder OUT (parquet)")
    jobs = add.group(JOB)
    jobs("--rows", type=_count, metavar="N", help="rows of a part (1024; fewer where a row takes longer)")
    jobs("--resume", action="store_true", help="continue with the parts that OUT has already")
    jobs("--jobs", type=_count, metavar="N", help="number of processes (1; with Ray as many as fit)")
    _engine(add)
    rows("--root", metavar="FOLDER", help="rows may name images below FOLDER (that of their table)")
    rows("--trust-rows", action="store_true", help="rows may name any file or URI")
    add.group(OUTPUT)("--raw", action="store_true", help="for CSV: no apostrophe before texts that are formulas")
    add_options(add.group(TASK_OPTIONS), tasks, columns=True)
    add.group(LOADING)("--adapter", metavar="FOLDER", help=ADAPTER_HELP)


ARGUMENTS: dict[str, Sequence[Callable[[Add], None]]] = {
    "run": (_add_name, _hub, _as_json, _add_lock, _mmproj, _add_device, _threads, _run),
    "embed": (_add_name, _hub, _add_lock, _add_device, _threads, _embed),
    "chat": (_add_name, _hub, _add_lock, _mmproj, _add_device, _threads, _chat),
    "info": (_add_name, _hub, _as_json, _add_lock, _info),
    "families": (_as_json,),
    "doctor": (_as_json,),
    "bench": (_add_name, _hub, _as_json, _on, _threads, _bench),
    "lock": (_hub, _as_json, _lock),
    "export": (_add_name, _hub, _as_json, _add_lock, _export),
    "table": (_finding, _add_lock, _threads, _on, _offline, _as_json, _table),
    "ocr": (_ocr, _threads, _on, _offline),
    "read": (_read, _hub, _add_lock, _mmproj, _add_device, _threads),
    "grits": (_as_json, _grits),
    "finetune": (_hub, _add_lock, _finetune),
    "example": (_example,),
    "demo": (_finding, _add_lock, _threads, _on, _offline, _demo),
    "serve": (_hub, _add_lock, _mmproj, _add_device, _threads, _finding, _serve),
    "map": (_add_name, _hub, _add_lock, _add_device, _threads, _map),
}
