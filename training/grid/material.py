"""Real tables with their truth, from public repositories: papers as PDF and XML, and companies' reports as HTML.

`python -m training.grid.material FOLDER [--mirrors MIRRORS]` gets what is missing, from the web or from git mirrors
(MIRRORS/owner+name), and writes

- FOLDER/real/train.pkl, FOLDER/real/calibration.pkl, FOLDER/held_out/held_out.pkl: tables of papers, found in their
  PDFs (`training.grid.journals`);
- FOLDER/papers.jsonl: the tables of all papers' XML, but for those that are not to be trained on, for
  `training.grid.papers`;
- FOLDER/filings/train, FOLDER/filings/calibration: reports, for `training.grid.filings`.

material.tsv has a line for each file: set, repository, path, sha256, and of papers the licence and the DOI.  A document
is in a part by the first digit of its (PDF's) sha256, before anybody looks at it.  Nothing of the held-out part is
looked at; it is scored once.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import pickle
import re
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from training.grid.examples import Source
from training.grid.journals import Found, find, tables_of
from training.grid.pack import png
from zoo.apps.documents import open_document
from zoo.errors import ZooError

MANIFEST = Path(__file__).with_name("material.tsv")
# Commits.  Papers are those of Europe PMC's open access subset, with the licence that their line says; the reports are
# what companies file with the Securities and Exchange Commission, in repositories under the MIT licence.
SOURCES = {
    "ContentMine/ami": "77524a52dec5e652cb66fef64473f4f56ec5e064",
    "ContentMine/norma": "2970a4d172ef3f128647165613b58251ea1e6b70",
    "alphanome-ai/sec-parser-test-data": "3ebd96ca3ed1be529929d8bb4e1ad313dc59d0ce",
    "dgunning/edgartools": "ca5a70094da7fc34890161dae9c256bb1f4c3d26",
    "petermr/dictionary": "475fd3acad31748c62a365914e15f714bad3d3c3",
    "petermr/forestplots": "f462518942af0806871a068317194cb5d7dfc96b",
    "petermr/openDiagram": "6641b3758f4f8ab4e7758e644b6850ab33c49f4b",
    "petermr/pathways": "738829b467f2fac7eec8154943fbe8929edddc29",
    "petermr/tigr2ess": "9612323fd84d69053c1477e4a224f4b85d4a5f4f",
    "scieloorg/packtools": "fe1ada8cd7cc638c8eab7ab1651f3b4f891d08e7",
}
PARTS = {"papers": {"train": "012345678", "calibration": "9ab", "held_out": "cdef"}}
PARTS["filings"] = {"train": "0123456789ab", "calibration": "cdef"}
PAGES = 60  # of a paper; longer ones are theses
LEAST = 4.0  # pixels: texts that are lower are not read
CELLS, ROWS, COLUMNS, LETTERS = 900, 70, 22, 400  # of a table of XML that is set anew; letters of one of its texts


class Entry(NamedTuple):
    """A line of the manifest; xml: of a paper's XML."""

    set: str
    repo: str
    path: str
    sha256: str
    xml: str = ""
    xml_sha256: str = ""
    licence: str = ""
    doi: str = ""

    @property
    def part(self) -> str:
        """train, calibration or held_out."""
        return next(name for name, digits in PARTS[self.set].items() if self.sha256[0] in digits)


def manifest() -> list[Entry]:
    with open(MANIFEST, encoding="utf-8", newline="") as file:
        return [Entry(*row) for row in csv.reader(file, delimiter="\t")]


class Repositories:
    """Files of repositories at their commits, from mirrors or from the web."""

    def __init__(self, mirrors: Path | None):
        self.mirrors = mirrors

    def read(self, repo: str, path: str, digest: str = "") -> bytes:
        if self.mirrors is None:
            address = f"https://raw.githubusercontent.com/{repo}/{SOURCES[repo]}/{path}"
            with urllib.request.urlopen(address, timeout=60) as file:
                data = file.read()
        else:
            data = self._git(repo, "show", f"{SOURCES[repo]}:{path}")
        found = hashlib.sha256(data).hexdigest()
        if digest and found != digest:
            raise ValueError(f"{repo}: {path}: its sha256 is {found}, expected {digest}")
        return data

    def xmls(self, repo: str) -> Iterator[bytes]:
        """All papers' XML of a mirror."""
        for line in self._git(repo, "ls-tree", "-r", "-z", SOURCES[repo]).decode("utf-8", "replace").split("\0"):
            about, _, path = line.partition("\t")
            if path.endswith((".nxml", "fulltext.xml")):
                yield self._git(repo, "cat-file", "blob", about.split()[2])

    def _git(self, repo: str, *command: str) -> bytes:
        assert self.mirrors is not None
        folder = self.mirrors / repo.replace("/", "+") / "repo"
        folder = folder / ".git" if (folder / ".git").exists() else folder
        return subprocess.run(["git", f"--git-dir={folder}", *command], capture_output=True, check=True).stdout


def fetch(folder: Path, of: Repositories) -> list[str]:
    """Get the files that are missing -> a line for each that cannot be had."""
    problems = []
    for one in manifest():
        for path, digest, kind in ((one.path, one.sha256, Path(one.path).suffix), (one.xml, one.xml_sha256, ".xml")):
            file = place(folder, one, kind)
            if path and not file.is_file():
                try:
                    data = of.read(one.repo, path, digest)
                except (OSError, ValueError, subprocess.CalledProcessError) as e:
                    problems.append(f"{one.repo}: {path}: {e}")
                    continue
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
    return problems


def place(folder: Path, one: Entry, kind: str) -> Path:
    """The file of an entry."""
    return folder / one.set / one.part / f"{one.sha256[:16]}{kind}"


def found_in(folder: Path, one: Entry) -> list[Found]:
    """The tables of a paper, which are kept beside it."""
    kept = place(folder, one, ".pkl")
    if not kept.exists():
        tables, problems = list[Found](), Counter[str]()
        try:
            with open_document(place(folder, one, ".pdf"), dpi=144) as document:
                if len(document) <= PAGES:
                    xml = place(folder, one, ".xml").read_bytes()
                    tables = list(find(document, xml, one.sha256[:10], problems))
        except ZooError as e:
            problems[str(e)[:80]] += 1
        kept.write_bytes(pickle.dumps(tables))
        print(one.part, one.doi, dict(problems), flush=True)
    return pickle.loads(kept.read_bytes())


def source_of(found: Found) -> Source | None:
    """A found table for training; None if its texts are too few or too low."""
    layout = found.layout()
    if layout.height() < LEAST or len(layout.texts()) < 6:
        return None
    return Source(png(Image.fromarray(found.pixels).convert("L")), layout, found.name)


def write_papers(path: Path, of: Repositories) -> int:
    """Write the tables of all papers' XML that may be trained on -> how many."""
    papers = [one for one in manifest() if one.set == "papers"]
    seen, count = {one.doi for one in papers if one.part != "train"}, 0
    with open(path, "w", encoding="utf-8") as out:
        for repo in sorted({one.repo for one in papers}):
            for xml in of.xmls(repo):
                named = re.search(rb'pub-id-type="doi"[^>]*>\s*([^<\s]+)', xml)
                doi = named[1].decode() if named else hashlib.sha256(xml).hexdigest()
                if doi in seen or b"<table" not in xml:
                    continue
                seen.add(doi)
                try:
                    tables = [table for _, table in tables_of(xml)]
                except SyntaxError:  # of the XML
                    continue
                for table in tables:
                    (R, C), longest = table.shape, max(len(c.text) for c in table.cells)
                    if R * C <= CELLS and R <= ROWS and C <= COLUMNS and longest <= LETTERS:
                        cells = [
                            [c.row, c.row + c.row_span - 1, c.column, c.column + c.column_span - 1, c.text]
                            for c in table.cells
                        ]
                        made = {"doi": doi, "heads": table.header_rows, "shape": [R, C], "cells": cells}
                        out.write(json.dumps(made, ensure_ascii=False) + "\n")
                        count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m training.grid.material",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mirrors", type=Path, metavar="FOLDER", help="git mirrors, instead of the web")
    args = parser.parse_args()
    of = Repositories(args.mirrors)
    print(*fetch(args.folder, of), sep="\n")
    for part in PARTS["papers"]:
        own = [one for one in manifest() if one.set == "papers" and one.part == part]
        tables = [source for one in own for found in found_in(args.folder, one) if (source := source_of(found))]
        to = args.folder / ("held_out" if part == "held_out" else "real") / f"{part}.pkl"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(pickle.dumps(tables))
        print(f"{part}: {len(tables)} tables of {len(own)} papers")
    if args.mirrors:
        print(f"{write_papers(args.folder / 'papers.jsonl', of)} tables of papers' XML")


if __name__ == "__main__":
    main()
