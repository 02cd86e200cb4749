"""The scores of found tables beside the true ones; the first lines of `benchmarks.tables` say what counts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from training.text import folded

from .table_material import Material, table_of

if TYPE_CHECKING:
    from zoo.apps.tables import Table

LEAST_SHARED = 0.1  # of the text of a true and a found table that are compared
RIGHT = 0.95  # GriTS-Con of a table that counts as right
LEADER = re.compile(r"[.·_]{4,}$")  # "All ages . . . . ."


def tables_of(answer: Mapping[str, Any]) -> dict[int, list[Table]]:
    from zoo.apps.tables import Table

    return {
        int(page): [Table.from_html(one) if isinstance(one, str) else table_of(one) for one in tables if one]
        for page, tables in answer["pages"].items()
    }


def like_pdfplumber(pages: Mapping[int, list[Table]]) -> dict[int, list[Table]]:
    """A spanning cell's text in its first position alone, and no white space, which pdfplumber has between digits.

    Of texts that run from right to left the letters alone count: pdfplumber and camelot have them in the order of the
    page from left to right, which is no order of reading.
    """
    return {page: [_like_pdfplumber(table) for table in tables] for page, tables in pages.items()}


def _like_pdfplumber(table: Table) -> Table:
    rows = table.rows(repeat=False)
    return table_of([(r, c, 1, 1, _letters(t)) for r, row in enumerate(rows) for c, t in enumerate(row)])


def _letters(text: str) -> str:
    text = "".join(text.split())
    return "".join(sorted(text)) if any(unicodedata.bidirectional(one) in ("R", "AL") for one in text) else text


def score(
    truth: Mapping[int, list[Table]], answer: Mapping[str, Any], of: Material, second: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The true tables of one file, as [page, shape, found shape, GriTS-Con, GriTS-Top, rows, right rows].

    second: another library's answer; then the agreed rows, and the right ones among them, follow.
    """
    from zoo.apps.tables.grits import grits

    pages = tables_of(answer)
    if of.set == "ruled":
        truth, pages = like_pdfplumber(truth), like_pdfplumber(pages)
    others = like_pdfplumber(tables_of(second)) if second else {}
    rows: list[list[Any]] = []
    false = sum(len(found) for page, found in pages.items() if page not in truth)
    for page, true_tables in truth.items():
        found = pages.get(page, [])
        pairs = matched(true_tables, found)
        false += len(found) - len(pairs)
        in_second = matched(true_tables, others.get(page, []))
        for i, true in enumerate(true_tables):
            agreed = right_rows(true, others[page][in_second[i]]) if i in in_second else set()
            more = [len(agreed)] if second else []
            if i not in pairs:
                rows.append([page, list(true.shape), None, 0.0, 0.0, true.shape[0], 0, *more, *(0 for _ in more)])
                continue
            best = found[pairs[i]]
            con, top = (round(grits(true, best, metric).f, 4) for metric in ("con", "top"))
            right = right_rows(true, best)
            more += [len(right & agreed) for _ in more]
            rows.append([page, list(true.shape), list(best.shape), con, top, true.shape[0], len(right), *more])
    kept = {key: round(answer[key], 3) for key in ("start", "wall", "cpu", "peak") if key in answer}
    return {"tables": rows, "false": false, "pages": of.pages, "error": answer["error"], **kept}


def matched(true: Sequence[Table], found: Sequence[Table]) -> dict[int, int]:
    """Pairs of a true and a found table, those that share most of their text first; a table is in one pair at most."""
    parts = [[_parts(table) for table in some] for some in (true, found)]
    shared = [
        (2 * (a & b).total() / max(1, a.total() + b.total()), -i, -j)
        for i, a in enumerate(parts[0])
        for j, b in enumerate(parts[1])
    ]
    pairs: dict[int, int] = {}
    for share, i, j in sorted(shared, reverse=True):
        alone = len(true) == len(found) == 1  # so that a table whose text was not read is found
        if (share > LEAST_SHARED or alone) and -i not in pairs and -j not in pairs.values():
            pairs[-i] = -j
    return pairs


def _parts(table: Table) -> Counter[str]:
    """Three letters each, white space left out."""
    text = "".join("".join(cell.text.split()) for cell in table.cells)
    return Counter(text[i : i + 3] for i in range(max(1, len(text) - 2)))


def right_rows(true: Table, found: Table) -> set[int]:
    """The true rows that were found, in their order, with all texts right."""
    texts = [[tuple(map(_plain, row)) for row in table.rows(repeat=False)] for table in (true, found)]
    blocks = SequenceMatcher(None, *texts, autojunk=False).get_matching_blocks()
    return {row for block in blocks for row in range(block.a, block.a + block.size)}


def _plain(text: str) -> str:
    return LEADER.sub("", "".join(folded(unicodedata.normalize("NFKC", text)).split()))


def is_right(table: Sequence[Any]) -> bool:
    return table[1] == table[2] and table[3] >= RIGHT


def summary(files: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of a contender on some files."""
    files = list(files)
    tables = [table for file in files for table in file["tables"]]
    of = max(1, len(tables))
    pages = sum(file["pages"] for file in files)
    return {
        "files": len(files),
        "tables": len(tables),
        "con": sum(table[3] for table in tables) / of,
        "top": sum(table[4] for table in tables) / of,
        "rows": sum(table[5] for table in tables),
        "right rows": sum(table[6] for table in tables),
        "agreed rows": sum(sum(table[7:8]) for table in tables),
        "right agreed rows": sum(sum(table[8:]) for table in tables),
        "right tables": sum(map(is_right, tables)),
        "missed": sum(table[2] is None for table in tables),
        "false": sum(file["false"] for file in files),
        "right files": sum(not file["false"] and all(map(is_right, file["tables"])) for file in files),
        "errors": sum(file["error"] is not None for file in files),
        "start": max((file.get("start", 0.0) for file in files), default=0.0),
        "wall": sum(file["wall"] for file in files) / max(1, pages),
        "cpu": sum(file["cpu"] for file in files) / max(1, pages),
        "peak": max((file["peak"] for file in files), default=0),
    }
