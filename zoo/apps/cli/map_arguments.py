"""The arguments of `zoo map`, and those that `zoo table` shares with it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from .parser import Parser

MAP = """\
Run a checkpoint's task over every row of files, or every image or sound of folders, and write the results beside the
rows.

Each IN is a .parquet, .csv or .jsonl file, a folder of these, of images or of sounds, a pattern such as
'photos/*.jpg', or a URI such as 's3://bucket/reviews/*.parquet'.  OUT is a .parquet, .csv or .jsonl file, or a folder
that gets a file for each part."""

MAP_MORE = """\
The tasks are those of zoo run except rerank.  Tasks of images read the column 'image' (paths or bytes), those of sounds
'sound', the others the column 'text'.  Paths in a table are relative to it, and stay below its folder: --root and
--trust-rows allow others.
A row that cannot be used gets a message in its column 'error', and the exit status is 1.

Each part is written when it is done.  --resume continues a job that was stopped: parts that are whole, and were made of
the same rows and options, are not computed again.  --engine ray runs the same job with Ray Data, on the cluster of
RAY_ADDRESS or on this machine.

  zoo map sentence-transformers/all-MiniLM-L6-v2 reviews.parquet vectors.parquet --text review --jobs 2
  zoo map google/vit-base-patch16-224 photos/ labels.csv --top-k 3
  zoo map openai/whisper-base recordings/ texts.jsonl
  zoo map dslim/bert-base-NER 's3://bucket/news/*.jsonl' s3://bucket/entities/ --engine ray --jobs 16 --resume"""


def map_parser(
    parents: Sequence[argparse.ArgumentParser], tasks: Sequence[str], count: Callable[[str], int]
) -> argparse.ArgumentParser:
    """The parser of `zoo map`.  parents: options of loading and of generation.  count: the type of numbers from 1."""
    parser = Parser(
        prog="zoo map",
        parents=list(parents),
        description=MAP,
        epilog=MAP_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="a name on the hub, 'org/name', or a folder")
    parser.add_argument("inputs", nargs="+", metavar="IN", help="a file, a folder, a pattern or a URI")
    parser.add_argument("output", metavar="OUT", help=".parquet, .csv or .jsonl, or a folder")
    parser.add_argument("--task", choices=tasks, metavar="TASK", help=", ".join(tasks))
    parser.add_argument("--text", metavar="COLUMN", help="the column to read (text; of images image, of sounds sound)")
    parser.add_argument("--pair", metavar="COLUMN", help="for classify: the column of second texts")
    parser.add_argument("--question", metavar="COLUMN", help="for answer: the column of questions (question)")
    parser.add_argument("--context", metavar="COLUMN", help="for answer: the column of contexts (context)")
    parser.add_argument("--keep", metavar="COLUMNS", help="the columns of IN to write again: a,b,c (all)")
    parser.add_argument("--format", choices=("parquet", "jsonl", "csv"), help="of the files in a folder OUT (parquet)")
    parser.add_argument(
        "--rows", type=count, metavar="N", help="rows of a part (1024; images 128; read 64; generate 32; sounds 16)"
    )
    parser.add_argument("--resume", action="store_true", help="continue with the parts that OUT has already")
    parser.add_argument("--jobs", type=count, metavar="N", help="number of processes (1; with Ray as many as fit)")
    add_engine(parser)
    parser.add_argument("--root", metavar="FOLDER", help="rows may name images below FOLDER (that of their table)")
    parser.add_argument("--trust-rows", action="store_true", help="rows may name any file or URI")
    parser.add_argument("--raw", action="store_true", help="for CSV: no apostrophe before texts that are formulas")
    parser.add_argument("--top-k", type=count, metavar="N", help="number of labels, words or answers")
    parser.add_argument(
        "--labels", metavar="A,B,C", help="for the zero-shot tasks: the labels to choose from, in words"
    )
    parser.add_argument("--threshold", type=float, metavar="F", help="for detect: the least score, 0 ... 1")
    parser.add_argument("--lines", action="store_const", const=True, help="for read: each image has several lines")
    parser.add_argument("--num-beams", type=count, metavar="N", help="for read: texts tried side by side (1)")
    parser.add_argument("--adapter", metavar="FOLDER", help="a LoRA adapter, as peft and zoo finetune --lora save it")
    parser.add_argument("--revision", help="a branch, tag or commit of the hub's repository")
    parser.add_argument("--local-files-only", action="store_true", help="never use the network")
    return parser


def add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="processes of this machine (local), or Ray"
    )
