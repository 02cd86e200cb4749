"""Train a classifier of texts and measure it: `python examples/classifier.py reviews.csv OUTPUT`.

Needs the extra train.  The file has the columns text and label.  Every fifth row is held out; what was trained runs on
NumPy, so that OUTPUT can be served without torch.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import zoo
from zoo.apps.train import finetune

CHECKPOINT = "distilbert/distilbert-base-uncased"


def train(data: Path, output: Path, checkpoint: str = CHECKPOINT, **options: object) -> float:
    """Write a classifier to `output` -> its accuracy on the rows that were held out."""
    with data.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    held_out, kept = rows[::5], [row for i, row in enumerate(rows) if i % 5]
    output.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(".train.csv")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["text", "label"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(kept)
    finetune(checkpoint, part, output, task="classify", **options)  # type: ignore[arg-type]
    part.unlink()
    classify = zoo.load(output, task="classify")
    found = classify([row["text"] for row in held_out], top_k=1)
    return sum(labels[0].label == row["label"] for labels, row in zip(found, held_out, strict=True)) / len(held_out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--checkpoint", default=CHECKPOINT)
    parser.add_argument("--epochs", type=float, default=3)
    args = parser.parse_args()
    accuracy = train(args.data, args.output, args.checkpoint, epochs=args.epochs)
    print(f"{args.output}: {accuracy:.1%} of the rows that were held out")


if __name__ == "__main__":
    main()
