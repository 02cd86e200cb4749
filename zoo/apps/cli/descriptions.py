"""What `zoo COMMAND --help` says of the commands; of `zoo table` it stands beside the parser."""

from __future__ import annotations

RUN = """\
Run a checkpoint on each INPUT, with the task that it was trained for, or with --task:

  embed      a vector for each INPUT
  fill-mask  words for the mask tokens ([MASK], <mask>: as the tokenizer has it) in each INPUT
  classify   labels for each INPUT; for pairs of texts, give the second ones with --pair
  tag        names, places and the like in each INPUT
  answer     the answer to --question Q in --context C; where one of them is left out, each INPUT is one
  rerank     the first INPUT is the query, the others are documents to sort
  generate   what follows each INPUT; see --max-new-tokens, --temperature and --seed
  segment    the share of each label among the pixels; --overlay writes them over the image
  detect     objects with scores and boxes, in pixels; --overlay draws them on the image
  read       what an image of a line of text says, or with --lines one of several lines

Where the checkpoint reads images (embed, classify, segment, detect and read), each INPUT is the path of one.  Without
INPUT, or with '-' in place of it, the inputs are the lines of stdin, each answered as soon as it is read."""

RUN_JSON = """\
JSON is what the task returns in Python: for one INPUT its result, for several an array of results, for lines of stdin
a line of JSON each, in the same order; for rerank one array.  Vectors are arrays of numbers, labels, entities, words
and answers are objects with the fields of their Python class; for segment there is the image's size and its labels
in place of the mask.

  zoo run sentence-transformers/all-MiniLM-L6-v2 "The cat sits outside." "A cat is in the garden."
  zoo run FacebookAI/roberta-large-mnli "A man sleeps." --pair "A man is awake." --json
  zoo run stories260k "Once upon a time"
  zoo run ./my-checkpoint --task tag < lines.txt > entities.jsonl
  zoo run microsoft/beit-base-finetuned-ade-640-640 street.jpg --overlay labels.png"""

CHAT = """\
Talk with a checkpoint that has a chat template: each line is a turn, and the answer comes as it is made.  Ctrl-C stops
an answer, Ctrl-D ends.  Where stdin is a pipe, its lines are the turns, and only the answers are written."""

GRITS = """\
Compare a table that was found with the true one: the GriTS scores of its topology (top), content (con) and location
(loc, between JSON files), 1 where they agree.  TRUE and PREDICTED are JSON as zoo writes it, or HTML with one table."""

INFO = """\
Show what a checkpoint is made of: architecture, task, sizes, tokenizer or processor, files, and what became of its
tensors."""

LOCK = """\
Write down which files checkpoints are: the commit of each NAME, and the sha256 of every file that loading uses.  With
--lock the other commands, and lock= in Python, load exactly these files or end with an error.

NAMEs that the file has already are written anew, the others stay.  With --check nothing is written: the files on disk
are compared with the lock, those of each NAME or of all, and any difference means exit status 1."""

LOCK_MORE = """\
  zoo lock sentence-transformers/all-MiniLM-L6-v2 stories260k
  zoo lock google-bert/bert-base-uncased --revision 86b5e09 -o production.lock
  zoo lock --check
  zoo run stories260k "Once upon a time" --lock zoo.lock"""

EXPORT = """\
Write a checkpoint in another format.  OUTPUT.gguf: the file that llama.cpp and zoo load, with the tokenizer in it, for
decoders (llama) and encoders (bert).  It needs the extra 'gguf'.

Any other OUTPUT: a folder of ONNX graphs, of every family and head, with what prepares the input, a README that says
how to run them, and a report of how near they are to zoo on NumPy.  --device onnx runs such a
folder.  It needs the extra 'onnx'."""

FINETUNE = """\
Train a checkpoint on examples of your own, and write what comes of it as a checkpoint.

  classify  texts, or images in a folder for each label, to one label each
  tag       lists of words to lists of labels (.jsonl)
  embed     pairs of texts that mean the same (--text and --label)
  generate  texts to go on with; with --label, what is to be written after each
  read      images of lines (a column with paths) to their text

A run that was stopped goes on where it was when the same command is given again."""

FINETUNE_MORE = """\
  zoo finetune google-bert/bert-base-uncased reviews.csv --task classify --text review --label stars -o stars
  zoo finetune google/vit-base-patch16-224-in21k photos/ --task classify -o photos-model
  zoo finetune microsoft/trocr-small-printed lines.csv --text file --label text -o my-reader
  zoo finetune stories260k stories.jsonl --lora 8 -o stories-adapter
  torchrun --nproc-per-node 2 -m zoo finetune ...   (each step's rows are shared)"""

EXAMPLE = """\
Write the picture of a page with a table, which comes with zoo, to a file: zoo table page.png then reads it."""

DEMO = """\
Serve a page to try checkpoints on: drop a PDF or a picture and see its tables, classify, segment and read pictures,
compare texts, chat.  A checkpoint is loaded when its tab is first used.  Ctrl-C ends.  It needs the extra 'demo'.

Only this machine reaches the page, and the page asks no other address for anything; --host 0.0.0.0 opens it to the
network, without a password."""

DEMO_MORE = """\
  zoo demo
  zoo demo --model chat=meta-llama/Llama-3.2-1B-Instruct --model classify=./my-checkpoint
  zoo demo --ocr rapidocr --port 8000"""
