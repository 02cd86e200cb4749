"""The texts of `zoo --help` and `zoo COMMAND --help`."""

from __future__ import annotations

import textwrap

from ...optional import pip_install
from ...task_kinds import TASKS

# The commands, by what they are for; `zoo` alone shows them on a screen of 80 x 24.
GROUPS: dict[str, dict[str, str]] = {
    "models": {
        "run": "a checkpoint's task on texts, pictures or recordings",
        "chat": "a conversation with a language model",
        "embed": "vectors of texts or pictures, as a file",
        "map": "a task for every row of files, or every file of a folder",
    },
    "documents": {
        "table": "the tables of PDFs and scans, as CSV, XLSX, JSON, ...",
        "ocr": "the text of scans and pictures, with its places",
        "read": "pages by a model of images and texts, as Markdown, ...",
        "example": "a page to try table on",
        "grits": "the similarity of a table to the true one",
    },
    "serving": {"serve": "an HTTP server with OpenAI's interface", "demo": "a web page to try checkpoints"},
    "checkpoints": {
        "info": "what a checkpoint contains",
        "lock": "pin the files of a checkpoint",
        "export": "to ONNX or GGUF, or a page that runs it",
        "finetune": "train a checkpoint on your data",
    },
    "proof": {
        "parity": "compare a checkpoint with transformers, stage by stage",
        "bench": "how fast a checkpoint runs",
        "families": "the models that zoo runs, and how far each is tested",
        "doctor": "what this machine has, and which engine is used",
    },
}
USAGE = """\
usage: zoo COMMAND ...      zoo COMMAND --help lists its arguments
first steps, with models that come with zoo:
  zoo example page.png; zoo table page.png      the cells of a table
  zoo run stories260k "Once upon a time"        a story
"""


def overview() -> str:
    """What `zoo` shows: the first steps, and a line for each command."""
    lines = [USAGE]
    for group, commands in GROUPS.items():
        for name, about in commands.items():
            lines.append(f"{'' if name != next(iter(commands)) else group:<12} {name:<9} {about}")
    return "\n".join(lines)


def _tasks() -> str:
    """A line for each task, with its names and what it gives."""
    lines = []
    for help, names in _by_help().items():
        first, *others = textwrap.wrap(help, 100)
        if len(names) == 1 and len(names[0]) <= 10:
            lines.append(f"  {names[0]:10} {first}")
        else:
            lines += [f"  {', '.join(names)}", f"             {first}"]
        lines += [f"             {line}" for line in others]
    return "\n".join(lines)


def _by_help() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind in TASKS:
        names = found.setdefault(kind.help, [])
        names += [kind.name] if kind.name not in names else []
    return found


RUN = f"""\
Run a checkpoint on each INPUT.  The task is the one that it was trained for, or the one of --task, which also takes the
names of transformers' pipelines (ner, text-classification, ...):

{_tasks()}

For a checkpoint that reads images (embed, classify, segment, detect, read, ...), each INPUT is the path of an image, or
for embed with CLIP or SigLIP also a text.
Without INPUT, or with '-' as INPUT, the inputs are the lines of stdin, and each is answered as soon as it is read."""

RUN_JSON = """\
In JSON, one INPUT gives one result, and several give an array of results in the same order; each line of stdin gives a
line of JSON.  rerank gives one array.  Vectors are arrays of numbers; labels, entities, words and answers are objects
with the fields that they have in Python; segment gives the image's size and labels in place of the mask.

  zoo run sentence-transformers/all-MiniLM-L6-v2 "The cat sits outside." "A cat is in the garden."
  zoo run FacebookAI/roberta-large-mnli "A man sleeps." --pair "A man is awake." --json
  zoo run stories260k "Once upon a time"
  zoo run ./my-checkpoint --task tag < lines.txt > entities.jsonl
  zoo run microsoft/beit-base-finetuned-ade-640-640 street.jpg --overlay labels.png"""

EMBED = """\
Write the vectors of texts or images to one file: .npy, .safetensors (the tensor "embeddings", and "ranges" of the 8-bit
precisions) or .parquet (columns "text" and "embedding").  Lines of stdin are read as they come, and memory stays
bounded.  --resume continues a job that was stopped, from the first input that is new or has changed.  To write vectors
beside the rows of a table, use zoo map."""

EMBED_MORE = """\
  zoo embed sentence-transformers/all-MiniLM-L6-v2 - -o vectors.npy < lines.txt
  zoo embed sentence-transformers/all-MiniLM-L6-v2 - -o vectors.parquet --precision ubinary < lines.txt
  zoo embed sentence-transformers/all-MiniLM-L6-v2 "What is a cat?" -o query.npy --as query --truncate-dim 128"""

TABLE = """\
Find the tables of documents and write their cells, to a file or folder with -o, otherwise to stdout: as text, with
--json as JSON, or in the form of --format.

Each DOCUMENT is a PDF, an image (TIFF, GIF and WebP with all their pages), a folder of these, a pattern such as
'scans/*.pdf', or '-' for stdin.  The text comes from a PDF's text layer, or from --words, a file with the words of
the page and their boxes.  Otherwise zoo-read reads it, or the engine of --ocr, or the TrOCR checkpoint of --reader.

The tables are found by zoo-table-detect and split into cells by zoo-table-structure, small models for print that come
with zoo; --detection and --structure name other checkpoints, such as Microsoft's."""

TABLE_MORE = """\
-o FILE takes the tables of all pages: .xlsx with a sheet for each, .html, .md, .json, .csv (out-1.csv, out-2.csv, ...
for several tables), and for many documents .jsonl, with a line for each page as soon as it is done, or .parquet, with a
row for each table.  -o FOLDER gets files for each document in the formats of --format, and tables.jsonl.

Errors in pages or documents are listed at the end, with exit status 1; all other pages are written.  --resume continues
a job that was stopped: pages that tables.jsonl has already, with the same content and options, are not computed again.

The words are a JSON list of objects: {"text": "Total", "box": [x0, y0, x1, y1]}, in pixels of the upright page, with
"confidence" if it is known.

  zoo table report.pdf --pages 3-7 -o tables.xlsx
  zoo table invoices/ 'more/*.pdf' -o out --jobs 2 --format csv,json
  zoo table page.png --words words.json -o tables.xlsx
  zoo table table.png --no-detection --reader microsoft/trocr-base-printed -o table.csv
  zoo table page.png --detection microsoft/table-transformer-detection \\
    --structure microsoft/table-transformer-structure-recognition-v1.1-all
  zoo table report.pdf --model ibm-granite/granite-docling-258M -o tables.json
  zoo table page.png --overlay cells.png --json
  zoo table report.pdf --format csv | head
  zoo table report.pdf -o tables.xlsx --review review.html
  zoo table 's3://bucket/*.pdf' -o tables --engine ray --jobs 16"""

OCR = f"""\
Read the text of documents: each DOCUMENT is a PDF, an image (TIFF, GIF and WebP with all their pages), a folder of
these, a pattern such as 'scans/*.pdf', or '-' for stdin.

Pages are read as pictures: the text layer of a PDF is not used.  Lines are found by PP-OCR's detector and read by
zoo-read, which knows Latin print; lines that it is not sure of are read by PP-OCR (Latin, Chinese, Japanese).  PP-OCR's
weights come with the package rapidocr: {pip_install("ocr")}.  Without it zoo-read reads one column of lines."""

OCR_MORE = """\
Lines in a script that no reader knows are written as [?], and their texts and confidences are in .json and .tsv.

  zoo ocr page.png
  zoo ocr scans/*.pdf -o out.txt
  zoo ocr receipt.jpg --reader pp-ocrv6-small --format tsv
  zoo ocr chinese.png --reader pp-ocrv6-small -o out.json"""

READ = """\
Read documents with a model of images and texts, page by page, and write their headings, paragraphs, lists, tables,
formulas and captions as Markdown, HTML or JSON.

Each DOCUMENT is a PDF, an image (TIFF, GIF and WebP with all their pages), a folder of these, a pattern such as
'scans/*.pdf', or '-' for stdin.  Models that answer in DocTags (Granite Docling, SmolDocling) also give the places of
blocks; others are asked for Markdown with tables in HTML."""

READ_MORE = """\
An answer that was cut off, or whose markup is damaged, is read as far as it goes, and a line on stderr says so.

  zoo read page.png --model ibm-granite/granite-docling-258M
  zoo read report.pdf --pages 1-3 --model ibm-granite/granite-docling-258M --weights int8 -o report.md
  zoo read scans/*.pdf --model Qwen/Qwen2.5-VL-3B-Instruct -o scans.html"""

CHAT = """\
Chat with a checkpoint.  Enter sends a message, Alt-Enter begins another line of it, and answers are streamed.  Ctrl-C
stops an answer, Ctrl-D ends the chat, and /help lists commands such as /regenerate and /save.  When the context is
full, the oldest turns are left out.  A checkpoint without a chat template continues each text.  If stdin is a pipe, its
lines are the messages, and only the answers are written."""

GRITS = """\
Compare a predicted table with the true one: the GriTS scores of its topology (top), content (con) and location (loc,
for JSON files), 1 for full agreement.  TRUE and PREDICTED are JSON from zoo table, or HTML with one table."""

INFO = """\
Show the contents of a checkpoint: architecture, task, sizes, tokenizer or processor, files, which tensors are used,
renamed, tied or ignored, and the memory of its weights in each precision, of a token in the cache and of a batch.  If
the weights are on the hub and not in the cache, only their headers are read."""

FAMILIES = """\
List the families of models that zoo has: what they read, their tasks, their heads by their names in transformers, and
how many checkpoints the parity report compared with transformers, with the worst difference."""

PARITY = "Compare zoo with transformers on checkpoints, stage by stage: see zoo parity --help."

DOCTOR = """\
Show what zoo finds on this machine: the processor and its instructions, threads, memory, packages, the engine that
device="auto" stands for and why, the caches and their sizes, settings in the environment, and how to install what is
missing."""

BENCH = """\
Measure a checkpoint: seconds to load it, milliseconds of the first answer (or first token), texts, pictures or tokens a
second in the best round, and the most memory.  Each of zoo's engines, and of the other libraries that are installed and
run the task (sentence-transformers, transformers, llama-cpp), runs in a process of its own, on the same inputs."""

BENCH_MORE = """\
  zoo bench sentence-transformers/all-MiniLM-L6-v2
  zoo bench stories260k --count 128 --weights int8 --device onnx --json
  zoo bench google/vit-base-patch16-224 --against zoo,transformers --threads 2"""

LOCK = """\
Write a lock file: the commit of each NAME, and the sha256 of every file that is needed to load it.  With --lock the
other commands, and lock= in Python, load exactly these files or end with an error.

Entries of the given NAMEs are replaced, other entries stay.  With --check nothing is written: the files on disk are
compared with the lock file, for the given NAMEs or for all, and any difference gives exit status 1."""

LOCK_MORE = """\
  zoo lock sentence-transformers/all-MiniLM-L6-v2 stories260k
  zoo lock google-bert/bert-base-uncased --revision 86b5e09 -o production.lock
  zoo lock --check
  zoo run stories260k "Once upon a time" --lock zoo.lock"""

EXPORT = f"""\
Write a checkpoint in another format.  OUTPUT.gguf is a file with model and tokenizer for llama.cpp and zoo, for
decoders (llama, qwen2, qwen3) and encoders (bert); it requires {pip_install("gguf")}.

Any other OUTPUT is a folder of ONNX graphs, for every family and head, with the tokenizer or image processor, a README
on running them, and a report of their differences from zoo on NumPy.  --device onnx runs such a folder.  It requires
{pip_install("onnx")}."""

FINETUNE = """\
Train a checkpoint on your own examples and save the result as a checkpoint.

  classify  one label for each text, or for each image in a folder named by its label
  tag       lists of words and lists of labels (.jsonl)
  embed     pairs of texts with the same meaning (--text and --label)
  generate  texts to continue; with --label, the answer to each text
  read      images of lines (a column with paths) and their text

The same command resumes a run that was stopped."""

FINETUNE_MORE = """\
  zoo finetune google-bert/bert-base-uncased reviews.csv --task classify --text review --label stars -o stars
  zoo finetune google/vit-base-patch16-224-in21k photos/ --task classify -o photos-model
  zoo finetune microsoft/trocr-small-printed lines.csv --text file --label text -o my-reader
  zoo finetune stories260k stories.jsonl --lora 8 -o stories-adapter
  torchrun --nproc-per-node 2 -m zoo finetune ...   (each step's rows are shared)"""

EXAMPLE = """\
Write a picture of a page with a table, which comes with zoo, to a file, so that you can try zoo table."""

DEMO = f"""\
Serve a web page for trying checkpoints: find the tables of a PDF or picture, classify, segment and read pictures,
compare texts, chat.  A checkpoint is loaded when its tab is first used.  Ctrl-C ends.  It requires
{pip_install("demo")}.

Only this machine can open the page, with the token in the address that is printed, and the page contacts no other
address; with --host 0.0.0.0 everyone who has the token can open it."""

DEMO_MORE = """\
  zoo demo
  zoo demo --model chat=meta-llama/Llama-3.2-1B-Instruct --model classify=./my-checkpoint
  zoo demo --ocr rapidocr --port 8000"""

SERVE = f"""\
Serve one or more checkpoints over HTTP with OpenAI's interface (embeddings, completions, chats), and endpoints for
rerank, classify, tables, read and ocr.  It requires
{pip_install("serve")}, and its page /docs lists the endpoints.

Requests are computed together: texts by length, generations token by token, and new ones join at any step.  A model
answers once it is loaded, and /ready is 200 when all models are.  Only this machine can connect, unless --host gives
another address.  --api-key requires a key from clients; --keys is a file with a key for each client, and keeps the
cached prompts of clients apart.  After Ctrl-C or SIGTERM running requests are finished.  --isolate gives each model a
process of its own, so that a model that crashes or hangs does not affect the others.  --engine ray starts replicas of
Ray Serve, here or on the cluster of RAY_ADDRESS."""

SERVE_MORE = """\
  zoo serve sentence-transformers/all-MiniLM-L6-v2 stories260k
  zoo serve meta-llama/Llama-3.2-1B-Instruct --device onnx --weights int4 --max-rows 16
  zoo serve zoo-read --tables --host 0.0.0.0 --port 8080 --api-key secret
  curl http://127.0.0.1:8000/v1/completions -d '{"model": "stories260k", "prompt": "Once upon a time"}'"""

MAP = """\
Run a checkpoint's task over every row of files, or every image or recording of folders, and write the results beside
the rows.

Each IN is a .parquet, .csv, .jsonl or .xlsx file, a folder of these, of images or of recordings, a pattern such as
'photos/*.jpg', or a URI such as 's3://bucket/reviews/*.parquet'.  OUT is a .parquet, .csv or .jsonl file, or a folder
that gets a file for each part."""

MAP_MORE = """\
The tasks are those of zoo run except rerank.  Tasks of images read the column 'image' (paths or bytes), those of audio
the column 'audio', the others the column 'text'.  Paths in a table are relative to it, and must be below its
folder, unless --root or --trust-rows allow others.
A row that cannot be used gets a message in its column 'error', and the exit status is 1.

Each part is written when it is done.  --resume continues a job that was stopped: parts that are complete, with the same
rows and options, are not computed again.  --engine ray runs the same job with Ray Data, on the cluster of
RAY_ADDRESS or on this machine.

  zoo map sentence-transformers/all-MiniLM-L6-v2 reviews.parquet vectors.parquet --text review --jobs 2
  zoo map google/vit-base-patch16-224 photos/ labels.csv --top-k 3
  zoo map openai/whisper-base recordings/ texts.jsonl
  zoo map dslim/bert-base-NER 's3://bucket/news/*.jsonl' s3://bucket/entities/ --engine ray --jobs 16 --resume"""

# command -> (description, epilog)
COMMANDS: dict[str, tuple[str, str | None]] = {
    "run": (RUN, RUN_JSON),
    "embed": (EMBED, EMBED_MORE),
    "map": (MAP, MAP_MORE),
    "chat": (CHAT, None),
    "info": (INFO, None),
    "families": (FAMILIES, None),
    "parity": (PARITY, None),
    "doctor": (DOCTOR, None),
    "bench": (BENCH, BENCH_MORE),
    "lock": (LOCK, LOCK_MORE),
    "export": (EXPORT, None),
    "table": (TABLE, TABLE_MORE),
    "ocr": (OCR, OCR_MORE),
    "read": (READ, READ_MORE),
    "grits": (GRITS, None),
    "finetune": (FINETUNE, FINETUNE_MORE),
    "example": (EXAMPLE, None),
    "demo": (DEMO, DEMO_MORE),
    "serve": (SERVE, SERVE_MORE),
}
