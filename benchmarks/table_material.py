"""Real tables with known answers, from public repositories' tests: pictures and PDFs, fetched by hash.

    python -m benchmarks.table_material                       # from the web, into the cache folder
    python -m benchmarks.table_material --mirrors FOLDER      # from git mirrors, FOLDER/owner+name

data/tables/material.tsv has a line for each file: set, repository, path, sha256.  A file whose sha256 begins with an
even digit is in the half to look at while zoo is improved, the others are in the half that is opened for figures only,
but for the sets that were looked at as a whole (SEEN).

Answers: PubTabNet's HTML; ICDAR 2013's XML, made by people; gmft's CSV, which is another program's output and merges
headers of several rows; for the ruled PDFs what pdfplumber finds, so it is no contender there; for pages and
screenshots, and more of them gathered later, data/tables/pages.json, which we transcribed by eye.  "validation" are
tables of PubTabNet gathered later, 13 of 20: of the others those are left out that were seen and would be final.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import itertools
import json
import subprocess
import urllib.request
import xml.etree.ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from zoo.apps.tables import Table

from . import table_samples
from .checkpoints import cache_folder

DATA = Path(__file__).parent / "data" / "tables"
# Commit, and the licence of the repository (L) and of the material where it is another one.
SOURCES = {
    "ibm-aur-nlp/PubTabNet": (
        "8ffde9024bd331f5a61c3c549fdf30dd3c3e43a5",
        "CDLA-Permissive-1.0; pictures PMC open access",
    ),
    "JiaquanYe/TableMASTER-mmocr": (
        "689f49cd4f632272244e758551d5e3c92211b7c2",
        "Apache-2.0; answers CDLA-Permissive-1.0, pictures PMC open access",
    ),
    "conjuncts/gmft": ("ac7ef5e73e3977bfe60b6ffd80356b7be32f4532", "MIT; pages CC BY"),
    "tabulapdf/tabula-java": (
        "2cdf3b4fd3f7e921dca8cc6814cdd9316be40f0f",
        "MIT; EU and US government documents",
    ),
    "jsvine/pdfplumber": ("147f2c4c07dc1191fc1d05bb589b4f6af3aaf74a", "MIT; US government documents"),
    "xavctn/img2table": ("6a6efc965f1e0eb7a39f0ad28eb04bb360a869e1", "MIT"),
    "docling-project/docling": ("e1cb2b234c48ff29746b0f2f843d07f8e23905a0", "MIT"),
    "RapidAI/TableStructureRec": ("f79a85dbcbc0c14a5b5a14491a51d0855334d859", "Apache-2.0"),
    "Unstructured-IO/unstructured": ("3e5482bfcdc843b5218ad98d2845b4b71ab013b7", "Apache-2.0"),
    "Unstructured-IO/unstructured-inference": ("56fadb3e9593858cf010247df4f12a8c3494ce48", "Apache-2.0"),
    "camelot-dev/camelot": ("2b80d0bc692d1b22203c3385e77da8201675aa50", "MIT"),
    "chezou/tabula-py": ("d7a233b31b4cac99c9a2a01f014fc8493e9df69d", "MIT"),
    "deepdoctection/deepdoctection": ("7a7964c0dbe39ae0cf541913751b0cd32f5eacf1", "Apache-2.0"),
    "eihli/image-table-ocr": ("49205462a3fb68240fd6a3d441ae7cf979b43daa", "MIT"),
}
SEEN = ("validation",)
DRAWN = 150  # dpi
# (row, column, row span, column span, text)
Cell = Sequence[Any]


@dataclass(frozen=True)
class Material:
    """A picture or PDF, and where it is from."""

    set: str
    repo: str
    path: str
    sha256: str
    folder: Path  # of all material

    @property
    def half(self) -> str:
        return "look" if self.set in SEEN or self.sha256[0] in "02468ace" else "final"

    @property
    def file(self) -> Path:
        """For the set "drawn": a PDF of pictures of the pages, made at first use."""
        file = self.beside(self.path)
        if self.set != "drawn" or not file.is_file():
            return file
        pictures = self.folder / "drawn" / f"{self.sha256}.pdf"
        if not pictures.is_file():
            draw(file, pictures)
        return pictures

    @property
    def key(self) -> str:
        """The name of its answers, which no two files share."""
        return f"{self.sha256}-drawn" if self.set == "drawn" else self.sha256

    @property
    def pages(self) -> int:
        if self.file.suffix != ".pdf":
            return 1
        from zoo.apps.documents import open_document

        with open_document(self.file) as document:
            return len(document)

    def beside(self, path: str) -> Path:
        """Another file of the repository."""
        return self.folder / self.repo.replace("/", "+") / path

    @property
    def answer_path(self) -> str | None:
        """The file of the repository that has the answer; None: it is in data/tables, or pdfplumber's."""
        stem = self.path.rsplit(".", 1)[0]
        of = {
            "pubtabnet": "examples/PubTabNet_Examples.jsonl",
            "validation": "table_recognition/PubTabNet-master/src/sample_gt.json",
            "gmft": f"{stem}.csv",
            "icdar": f"{stem}-str.xml",
        }
        return of.get("icdar" if self.set == "drawn" else self.set)

    @cached_property
    def answer(self) -> dict[int, list[Table]]:
        """The tables of each page, from 1, but for the ruled PDFs."""
        if self.set == "pubtabnet":
            data = next(one for one in pubtabnet(self.beside(self.answer_path or "")) if one["filename"] in self.path)
            return {1: [table_samples.annotated(data).true]}
        if self.set == "validation":
            of_files = json.loads(self.beside(self.answer_path or "").read_text(encoding="utf-8"))
            return {1: [Table.from_html(of_files[Path(self.path).name]["html"])]}
        if self.set == "gmft":
            return {1: [gmft(self.file.with_suffix(".csv").read_text(encoding="utf-8"))]}
        if self.set in ("icdar", "drawn"):
            return icdar(self.beside(self.answer_path or "").read_text(encoding="utf-8"))
        of = json.loads((DATA / "pages.json").read_text(encoding="utf-8"))
        return {1: [Table.from_html(html) for html in of[f"{self.repo}/{self.path}"]]}


def material(folder: Path) -> list[Material]:
    """All of it, whether it is there or not; ICDAR's PDFs also as pictures."""
    lines = (DATA / "material.tsv").read_text(encoding="utf-8").splitlines()
    fields = (line.split("\t") for line in lines)
    files = [Material(of, repo, path, sha256, folder) for of, repo, path, sha256 in fields]
    return files + [replace(one, set="drawn") for one in files if one.set == "icdar"]


def draw(file: Path, to: Path) -> None:
    """Write a PDF of pictures of a PDF's pages, without their words and rules."""
    from PIL import Image

    from zoo.apps.documents import open_document

    with open_document(file, dpi=DRAWN) as document:
        pictures = [Image.fromarray(page.image) for page in document.pages()]
    to.parent.mkdir(parents=True, exist_ok=True)
    pictures[0].save(to, save_all=True, append_images=pictures[1:], resolution=DRAWN, quality=95)


def material_folder() -> Path:
    return cache_folder() / "table-material"


def pubtabnet(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of PubTabNet's examples in the layout of tests/data/tables/pubtabnet.jsonl, without markup in texts."""
    for line in path.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        cells = [
            ["".join(t for t in cell["tokens"] if not (len(t) > 1 and t[0] == "<")), cell.get("bbox")]
            for cell in data["html"]["cells"]
        ]
        yield {"filename": data["filename"], "structure": "".join(data["html"]["structure"]["tokens"]), "cells": cells}


def gmft(text: str) -> Table:
    """The table of a CSV; U+FFFE is PDFium's sign for a hyphen at the end of a line."""
    rows = list(csv.reader(io.StringIO(text.replace("\ufffe", "-"))))
    return table_of([(r, c, 1, 1, value) for r, row in enumerate(rows) for c, value in enumerate(row)])


def icdar(text: str) -> dict[int, list[Table]]:
    """The tables of each page; a table that goes on on another page is one table on each."""
    found: dict[int, list[Table]] = {}
    for region in xml.etree.ElementTree.fromstring(text).iter("region"):
        cells = []
        for cell in region.iter("cell"):
            row, column = int(cell.get("start-row", 0)), int(cell.get("start-col", 0))
            rows, columns = int(cell.get("end-row", row)) - row + 1, int(cell.get("end-col", column)) - column + 1
            cells.append((row, column, rows, columns, cell.findtext("content") or ""))
        if cells:
            first = [min(cell[i] for cell in cells) for i in range(2)]
            moved = [(r - first[0], c - first[1], *more) for r, c, *more in cells]
            found.setdefault(int(region.get("page", 1)), []).append(table_of(moved))
    return found


def table_of(cells: Sequence[Cell]) -> Table:
    """A table of cells without places; positions that none covers are empty, of two cells at one the first counts."""
    from zoo.apps.tables import Cell as TableCell

    taken: set[tuple[int, int]] = set()
    made = []
    rows, columns = max(c[0] + c[2] for c in cells), max(c[1] + c[3] for c in cells)
    holes = [(r, c, 1, 1, "") for r in range(rows) for c in range(columns)]
    nowhere = (0.0, 0.0, 0.0, 0.0)
    for r, c, row_span, column_span, text in itertools.chain(cells, holes):
        covered = {(r + i, c + j) for i in range(row_span) for j in range(column_span)}
        if not covered & taken:
            taken |= covered
            made.append(TableCell(r, c, row_span, column_span, nowhere, " ".join(text.split())))
    return Table(tuple(made), (nowhere,) * rows, (nowhere,) * columns, nowhere)


def fetch(folder: Path, mirrors: Path | None) -> list[str]:
    """Get what is missing, and the answers -> a line for each file that cannot be had, or is another one now."""
    problems = []
    wanted: Mapping[tuple[str, str], str | None] = {
        (one.repo, path): digest
        for one in material(folder)
        for path, digest in ((one.path, one.sha256), (one.answer_path, None))
        if path is not None
    }
    for (repo, path), digest in wanted.items():
        file = folder / repo.replace("/", "+") / path
        if file.is_file():
            continue
        try:
            data = read_file(repo, SOURCES[repo][0], path, mirrors)
        except (OSError, subprocess.CalledProcessError) as e:
            problems.append(f"{repo}: {path}: {e}")
            continue
        if digest is not None and hashlib.sha256(data).hexdigest() != digest:
            problems.append(f"{repo}: {path}: its sha256 is {hashlib.sha256(data).hexdigest()}, expected {digest}")
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return problems


def read_file(repo: str, commit: str, path: str, mirrors: Path | None) -> bytes:
    """A file of a public repository, from the web or from git mirrors."""
    if mirrors is None:
        with urllib.request.urlopen(f"https://raw.githubusercontent.com/{repo}/{commit}/{path}", timeout=60) as file:
            return file.read()
    mirror = mirrors / repo.replace("/", "+")
    mirror = mirror / "repo" if (mirror / "repo").is_dir() else mirror
    command = ["git", f"--git-dir={mirror}", "show", f"{commit}:{path}"]
    return subprocess.run(command, capture_output=True, check=True).stdout


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.table_material",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mirrors", type=Path, metavar="FOLDER", help="git mirrors, instead of the web")
    parser.add_argument("--to", type=Path, default=material_folder(), metavar="FOLDER", help="default: %(default)s")
    args = parser.parse_args(argv)
    problems = fetch(args.to, args.mirrors)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{sum(one.file.is_file() for one in material(args.to))} of {len(material(args.to))} files are in {args.to}")
    return int(bool(problems))


if __name__ == "__main__":
    raise SystemExit(main())
