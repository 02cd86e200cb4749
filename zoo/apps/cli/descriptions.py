"""The texts of `zoo COMMAND --help`; those of `zoo table` and `zoo map` are next to their parsers."""

from __future__ import annotations

RUN = """\
Run a checkpoint on each INPUT, with the task that it was trained for or the one in --task:

  embed      a vector for each INPUT
  fill-mask  words for the mask tokens of each INPUT ([MASK] or <mask>, depending on the tokenizer)
  classify   labels for each INPUT; for pairs of texts, give the second texts with --pair
  tag        named entities in each INPUT
  answer     the answer to --question Q in --context C; if one of them is left out, each INPUT takes its place
  rerank     the first INPUT is the query, the rest are documents to sort
  generate   a continuation of each INPUT; see --max-new-tokens, --temperature and --seed
  segment    the share of each label among the pixels; --overlay draws the labels over the image
  detect     objects with scores and boxes, in pixels; --overlay draws them on the image
  read       the text in the image of a line, or with --lines in an image of several lines

If the checkpoint reads images (embed, classify, segment, detect and read), each INPUT is the path of an image.  Without
INPUT, or with '-' in place of it, the inputs are the lines of stdin, and each result is written at once."""

RUN_JSON = """\
The JSON has the task's results in Python: one result for one INPUT, an array of results for several, and one line of
JSON for each line of stdin, in the same order; for rerank one array.  Vectors are arrays of numbers; labels, entities,
words and answers are objects with the fields of their Python class; segment gives the image's size and its labels in
place of the mask.

  zoo run sentence-transformers/all-MiniLM-L6-v2 "The cat sits outside." "A cat is in the garden."
  zoo run FacebookAI/roberta-large-mnli "A man sleeps." --pair "A man is awake." --json
  zoo run stories260k "Once upon a time"
  zoo run ./my-checkpoint --task tag < lines.txt > entities.jsonl
  zoo run microsoft/beit-base-finetuned-ade-640-640 street.jpg --overlay labels.png"""

CHAT = """\
Talk with a checkpoint that has a chat template: each line is a turn, and the answer is streamed.  Ctrl-C stops an
answer, Ctrl-D ends the chat.  If stdin is a pipe, its lines are the turns, and only the answers are written."""

GRITS = """\
Compare a predicted table with the true one: the GriTS scores of its topology (top), content (con) and location (loc,
between JSON files), which are 1 for equal tables.  TRUE and PREDICTED are JSON files of zoo, or HTML with one table."""

INFO = """\
Show the contents of a checkpoint: architecture, task, sizes, tokenizer or processor, files, and which tensors are
renamed, tied, ignored or unused."""

LOCK = """\
Write a lock file: the commit of each NAME, and the sha256 of every file that loading uses.  The option --lock of other
commands, and lock= in Python, load exactly these files or end with an error.

NAMEs that are already in the lock file are replaced, other entries stay.  With --check nothing is written: the
files on disk, of each NAME or of all, are compared with the lock, and any difference means exit status 1."""

LOCK_MORE = """\
  zoo lock sentence-transformers/all-MiniLM-L6-v2 stories260k
  zoo lock google-bert/bert-base-uncased --revision 86b5e09 -o production.lock
  zoo lock --check
  zoo run stories260k "Once upon a time" --lock zoo.lock"""

EXPORT = """\
Write a checkpoint in another format.  OUTPUT.gguf is a file with the tokenizer in it that llama.cpp and zoo load, for
decoders (llama) and encoders (bert).  It requires the extra 'gguf'.

Any other OUTPUT is a folder of ONNX graphs, for every family and head, with the tokenizer or processor, a README on how
to run the graphs, and a report of their error against zoo on NumPy.  --device onnx runs such a folder.  It requires the
extra 'onnx'."""

FINETUNE = """\
Train a checkpoint on your own examples, and write the result as a checkpoint.

  classify  from texts, or images in a folder for each label, to one label each
  tag       from lists of words to lists of labels (.jsonl)
  embed     pairs of texts that mean the same (--text and --label)
  generate  texts; with --label, the text to write after each
  read      from images of lines (a column with paths) to their text

To resume a stopped run, give the same command again."""

FINETUNE_MORE = """\
  zoo finetune google-bert/bert-base-uncased reviews.csv --task classify --text review --label stars -o stars
  zoo finetune google/vit-base-patch16-224-in21k photos/ --task classify -o photos-model
  zoo finetune microsoft/trocr-small-printed lines.csv --text file --label text -o my-reader
  zoo finetune stories260k stories.jsonl --lora 8 -o stories-adapter
  torchrun --nproc-per-node 2 -m zoo finetune ...   (divides each step's rows)"""

EXAMPLE = """\
Write the image of a page with a table, which comes with zoo, to a file, to try with: zoo table page.png"""

DEMO = """\
Serve a web page to try checkpoints on: drop a PDF or an image and see its tables, classify, segment and read images,
compare texts, chat.  A checkpoint is loaded when its tab is first used.  Ctrl-C stops the server.  The command requires
the extra 'demo'.

Only this machine can reach the page, and the page requests nothing from other addresses; --host 0.0.0.0 opens it to
the network, without a password."""

DEMO_MORE = """\
  zoo demo
  zoo demo --model chat=meta-llama/Llama-3.2-1B-Instruct --model classify=./my-checkpoint
  zoo demo --ocr rapidocr --port 8000"""
