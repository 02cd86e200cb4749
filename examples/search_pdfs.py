"""Search a folder of PDFs by meaning: `python examples/search_pdfs.py FOLDER "a question"`.

Needs the extra pdf.  Pages are cut into passages, whose vectors are kept in FOLDER/.search.npz until a PDF changes.
Scans have no text layer and are left out; `zoo table` and `zoo.load("zoo-read")` read pictures.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import zoo
from zoo.apps.documents import open_document

CHECKPOINT = "sentence-transformers/all-MiniLM-L6-v2"
WORDS, STEP = 120, 90  # words in a passage, and from one passage to the next


class Hit(NamedTuple):
    score: float  # the cosine
    file: str
    page: int
    text: str


def passages(folder: Path) -> Iterator[tuple[str, int, str]]:
    """File, page and text of each passage; a PDF that cannot be read is named and left out."""
    for path in sorted(folder.rglob("*.pdf")):
        try:
            with open_document(path) as document:
                for page in document.pages():
                    words = [word.text for word in page.words or []]
                    for i in range(0, max(len(words) - (WORDS - STEP), min(len(words), 1)), STEP):
                        yield str(path.relative_to(folder)), page.number, " ".join(words[i : i + WORDS])
        except zoo.ZooError as e:
            print(f"left out: {e}")


class Index:
    """The passages of a folder and their vectors (P, D), which have length 1."""

    def __init__(self, folder: Path, checkpoint: str = CHECKPOINT):
        self.embed = zoo.load(checkpoint, task="embed")
        state = repr([checkpoint, *((str(p), p.stat().st_mtime_ns) for p in sorted(folder.rglob("*.pdf")))])
        saved = folder / ".search.npz"
        if saved.exists() and (found := np.load(saved))["state"] == state:
            files, pages, texts, self.vectors = (found[name] for name in ("files", "pages", "texts", "vectors"))
            self.passages = list(zip(map(str, files), map(int, pages), map(str, texts), strict=True))
            return
        self.passages = list(passages(folder))
        self.vectors = (
            np.asarray(self.embed([text for *_, text in self.passages])) if self.passages else np.empty((0, 1))
        )
        files, pages, texts = zip(*self.passages, strict=True) if self.passages else ((), (), ())
        np.savez(saved, state=state, files=files, pages=pages, texts=texts, vectors=self.vectors)

    def search(self, query: str, count: int = 5) -> list[Hit]:
        """The best passage of each of the best pages."""
        if not self.passages:
            return []
        scores = self.vectors @ np.asarray(self.embed(query))
        best: dict[tuple[str, int], Hit] = {}
        for i in np.argsort(-scores):
            file, page, text = self.passages[i]
            best.setdefault((file, page), Hit(float(scores[i]), file, page, text))
        return list(best.values())[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("query")
    parser.add_argument("--checkpoint", default=CHECKPOINT)
    args = parser.parse_args()
    for hit in Index(args.folder, args.checkpoint).search(args.query):
        print(f"{hit.score:.3f}  {hit.file}, page {hit.page}: {hit.text[:160]}")


if __name__ == "__main__":
    main()
