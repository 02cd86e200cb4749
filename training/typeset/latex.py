"""This module renders articles with LaTeX: booktabs, rules, colours, multirow, multicolumn, longtable, two columns.

A shard is one document; each of its pages has its own look.
"""

import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from training.tables import Place
from training.text import CHARACTERS, END, LOWERED, RAISED
from training.typeset import content, pdf
from training.typeset.cache import Sheet
from training.typeset.content import Cell, Content, Words
from zoo.errors import InputError

FONTS = ["cmr", "cmr", "lmr", "ptm", "ptm", "bch", "put", "phv", "pag", "pbk", "pnc", "lmss", "cmss", "lmtt"]
HELD_OUT_FONTS = ["ppl"]
STYLES = ["booktabs", "booktabs", "booktabs", "booktabs", "grid", "grid", "none", "headrule", "horizontal", "ends"]
STYLES += ["vertical", "zebra"]
HELD_OUT_STYLES = ["frame", "double"]
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "…": r"\dots{}",
}
_SPECIAL |= {c: f"\\{c}" for c in "&%$#_{}"} | {
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}
_KNOWN = set(CHARACTERS) | {"−"}
START = r"""\documentclass[%dpt]{article}
\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{textcomp,cmap,booktabs,multirow,longtable,array,xcolor,colortbl,amsmath,graphicx}
\usepackage[paperwidth=%dmm,paperheight=%dmm,margin=%dmm]{geometry}
\usepackage[hidelinks]{hyperref}
\pdfcompresslevel=1 \pdflinkmargin=0pt \setlength{\parindent}{%dpt}\setlength{\parskip}{%dpt}
\hbadness=10000 \vbadness=10000 \hfuzz=1000pt
\newcommand{\cell}[2]{\href{http://c/#1}{\strut #2}}
\setcounter{secnumdepth}{%d}
\begin{document}
"""


def installed() -> bool:
    return shutil.which("pdflatex") is not None


class Set(NamedTuple):
    """A page's source and the contents of its tables."""

    source: str
    tables: list[Content]


def text_of(string: str) -> str:
    """Return a text with raised and lowered parts as LaTeX."""
    out = ""
    for c in string:
        if c in (RAISED, LOWERED, END):
            out += {RAISED: r"\textsuperscript{", LOWERED: r"\textsubscript{", END: "}"}[c]
        elif c in _KNOWN:
            out += _SPECIAL.get(c, c)
    return re.sub(r"--+", "-{}-", out)


def table(made: Content, number: int, rng: random.Random, held_out: bool, long: bool = False) -> str:
    """Return a tabular, or a longtable, of this content."""
    style = rng.choice(HELD_OUT_STYLES if held_out and rng.random() < 0.5 else STYLES)
    along = style in ("grid", "vertical")
    bar = "|" if along else ""
    outer = "|" if style in ("grid", "frame") or (along and rng.random() < 0.5) else ""
    aligns = [rng.choice("llc") if kind in ("words", "code", "date") else rng.choice("rrrcc") for kind in made.kinds]
    pads = rng.choice(["", "", "@{}"]) if not along and not outer else ""
    wide = made.columns < 5 and rng.random() < 0.2 and style in ("booktabs", "grid", "horizontal")
    spec = [
        f"p{{{rng.uniform(2.2, 3.6):.1f}cm}}" if wide and kind == "words" else a
        for a, kind in zip(aligns, made.kinds, strict=True)
    ]
    columns = f"{outer}{pads}{bar.join(spec)}{pads}{outer}"
    cue = (
        rng.choice([r"\bfseries ", r"\bfseries ", r"\itshape ", ""])
        if style not in ("none", "vertical", "ends")
        else r"\bfseries "
    )
    fill = (
        rng.choice(["gray!20", "blue!15", "orange!25", "gray!35", "green!15"])
        if rng.random() < 0.15 or (style == "zebra")
        else ""
    )
    rules = _rules(style, made, rng)
    by_row: list[list[Cell]] = [[] for _ in range(made.rows)]
    for cell in made.cells:
        by_row[cell.place.row].append(cell)
    lines = [rules[0]]
    for r, cells in enumerate(by_row):
        lines.append(
            _row(made, number, r, cells, (cue, fill, style), spec, (bar, outer, pads), rng) + r" \\" + rules[r + 1]
        )
    body = "\n".join(lines)
    pad = rng.choice([0.5, 1, 1.5, 2, 3, 4, 6]) if style != "none" else rng.choice([2, 3, 4, 6])
    size = rng.choice([r"\normalsize", r"\small", r"\small", r"\footnotesize", r"\scriptsize"])
    stretch = rng.choice([0.85, 1, 1, 1.1, 1.25, 1.5])
    spacing = f"\\setlength{{\\tabcolsep}}{{{pad + 1}pt}}\\renewcommand{{\\arraystretch}}{{{stretch}}}"
    kind = "longtable" if long else "tabular"
    inner = f"\\begin{{{kind}}}{{{columns}}}\n{body}\n\\end{{{kind}}}"
    return f"{{{size}{spacing}{inner}}}"


def _rules(style: str, made: Content, rng: random.Random) -> list[str]:
    """Return the commands that draw rules above the first row and below each row."""
    out = [""] * (made.rows + 1)
    if style == "booktabs":
        out[0], out[-1] = r"\toprule", r"\bottomrule"
        out[made.heads] = r"\midrule" if made.heads else out[made.heads]
        for r in range(made.heads - 1):
            wide = [c.place for c in made.cells if c.place.row == r and c.place.last_column > c.place.column]
            if rng.random() < 0.7:
                out[r + 1] = "".join(f"\\cmidrule(lr){{{p.column + 1}-{p.last_column + 1}}}" for p in wide)
        for r in made.groups:
            if rng.random() < 0.4:
                out[r] = r"\midrule"
        if rng.random() < 0.2 and made.rows - made.heads > 2:
            out[-2] = r"\midrule"
    elif style in ("grid", "horizontal"):
        covered = {
            (r, c)
            for cell in made.cells
            for r in range(cell.place.row, cell.place.last_row)
            for c in range(cell.place.column, cell.place.last_column + 1)
        }
        for r in range(made.rows + 1):
            free = [c for c in range(made.columns) if (r - 1, c) not in covered]
            runs = "".join(f"\\cline{{{c + 1}-{c + 1}}}" for c in free)
            out[r] = r"\hline" if len(free) == made.columns else runs
    elif style in ("headrule", "frame", "vertical", "double", "ends"):
        if style != "ends" and made.heads:
            out[made.heads] = r"\hline"
        if style == "double":
            out[0], out[-1] = r"\hline\hline", r"\hline\hline"
        elif style != "headrule":
            out[0] = out[-1] = r"\hline"
    return out


def _row(
    made: Content,
    number: int,
    r: int,
    cells: list[Cell],
    looks: tuple[str, str, str],
    spec: list[str],
    bars: tuple[str, str, str],
    rng: random.Random,
) -> str:
    cue, fill, style = looks
    bar, outer, pads = bars
    out, c = [], 0
    by_column = {cell.place.column: cell for cell in cells}
    while c < made.columns:
        cell = by_column.get(c)
        if cell is None:  # below a cell of several rows
            above = next(
                p for p in (x.place for x in made.cells) if p.row <= r <= p.last_row and p.column <= c <= p.last_column
            )
            n = above.last_column - above.column + 1
            out.append(f"\\multicolumn{{{n}}}{{{bar}c{bar}}}{{}}" if n > 1 else "")
            c = above.last_column + 1
            continue
        p, string = cell.place, text_of(cell.text)
        if string:
            strong = {"head": cue, "group": r"\itshape ", "total": r"\bfseries "}.get(cell.role, "")
            string = f"{strong}\\cell{{{number}/{p.row}/{p.last_row}/{p.column}/{p.last_column}}}{{{string}}}"
        if p.last_row > p.row and string:
            string = f"\\multirow{{{p.last_row - p.row + 1}}}{{*}}{{{string}}}"
        n = p.last_column - p.column + 1
        if n > 1:
            left = outer + pads if p.column == 0 else ""
            right = outer + pads if p.last_column == made.columns - 1 else bar
            string = f"\\multicolumn{{{n}}}{{{left}{'l' if cell.role == 'group' else 'c'}{right}}}{{{string}}}"
        out.append(string)
        c = p.last_column + 1
    colour = fill if r < made.heads else "gray!8" if style == "zebra" and r % 2 else ""
    return (f"\\rowcolor{{{colour}}}" if colour else "") + " & ".join(out)


def page(rng: random.Random, held_out: bool, first: int) -> Set:
    """Make up one page, with tables that are numbered from `first`."""
    words = Words(rng)
    words.letters = ""
    family = rng.choice(HELD_OUT_FONTS if held_out else FONTS)
    tables: list[Content] = []
    two = rng.random() < 0.4
    parts = [r"\twocolumn" if two else r"\onecolumn", r"\thispagestyle{" + rng.choice(["empty", "plain"]) + "}"]
    parts.append(f"\\fontfamily{{{family}}}\\selectfont")
    before = False
    for _ in range(rng.randint(4, 8) * (1 + two)):
        k = rng.random()
        if k < (0.3 if two else 0.45) and not before:
            long = not two and rng.random() < 0.15
            columns, rows = (
                rng.randint(2, rng.choice([3, 3, 4, 5] if two else [5, 8, 12])),
                rng.randint(3, rng.choice([8, 14, 25, 40 if not two else 25])),
            )
            made = content.table(words, columns, rows, rng.random() < 0.08)
            caption = f"\\textbf{{Table {rng.randint(1, 20)}{rng.choice('.: ')}}} {text_of(words.sentence())}\\par"
            inner = table(made, first + len(tables), rng, held_out, long)
            tables.append(made)
            inner = (
                inner
                if long
                else f"\\begin{{center}}{inner}\\end{{center}}"
                if rng.random() < 0.7
                else f"\\noindent {inner}\\par"
            )
            above = rng.random() < 0.6
            parts.append(
                f"\\par\\medskip\\noindent {caption}\n{inner}"
                if above
                else f"\\par\\medskip {inner}\\noindent {caption}"
            )
            before = True
            continue
        before = False
        parts.append(_other(rng, words, k))
    return Set("\n\n".join(parts) + "\n\\clearpage\n", tables)


def _other(rng: random.Random, words: Words, k: float) -> str:
    if k > 0.92:
        shown = "".join(
            f"\\put({x},{rng.randint(5, 60)}){{\\circle*{{{rng.randint(2, 8)}}}}}" for x in range(10, 150, 9)
        )
        caption = f"Figure {rng.randint(1, 9)}. {text_of(words.sentence())}"
        frame = "\\put(0,0){\\framebox(160,70){}}"
        return f"\\par\\begin{{picture}}(160,70){frame}{shown}\\end{{picture}}\n\n{caption}"
    if k > 0.87:
        s = " + ".join(f"{a}_{{{rng.randint(1, 9)}}}^{{{rng.randint(2, 9)}}}" for a in rng.sample("abcxyz", 3))
        name, below = rng.choice("fgh"), f"\\sum_i {rng.choice('xyz')}_i"
        return f"\\begin{{equation}} {name}(x) = \\frac{{{s}}}{{{below}}} \\end{{equation}}"
    if k > 0.8:
        rows = "".join(f"\\item {text_of(words.some(2, 12))}\n" for _ in range(rng.randint(2, 7)))
        kind = rng.choice(["itemize", "enumerate"])
        return f"\\begin{{{kind}}}{rows}\\end{{{kind}}}"
    if k > 0.76:
        rows = "\n".join(
            text_of(words.some(1, 4)).lower().replace("\\", "") + f" = {rng.randint(0, 99)};"
            for _ in range(rng.randint(3, 10))
        )
        return "{\\ttfamily\\obeylines " + rows + "}"
    if k > 0.7:
        rows = []
        for _ in range(rng.randint(3, 9)):
            name = f"{rng.randint(1, 9)}.{rng.randint(1, 9)} {text_of(words.some(1, 4))}"
            rows.append(f"\\noindent {name} \\dotfill {rng.randint(1, 300)}\\par ")
        return "".join(rows)
    if k > 0.62:
        return f"\\{rng.choice(['section', 'subsection'])}*{{{text_of(words.some(2, 6))}}}"
    return "\\href{http://s/}{" + text_of(words.paragraph()) + "}"


def shard(rng: random.Random, held_out: bool, count: int) -> list[Sheet]:
    """Render `count` pages of one document or, where pages of it are left out, of several."""
    out: list[Sheet] = []
    for _ in range(12):
        out += _document(random.Random(rng.getrandbits(64)), held_out, count + 6)
        if len(out) >= count:
            return out[:count]
    raise InputError(f"12 documents of LaTeX gave {len(out)} pages, expected {count}")


def _document(rng: random.Random, held_out: bool, count: int) -> list[Sheet]:
    width = rng.choice([210, 210, 216, 176, 148])
    size = (rng.choice([10, 11, 12]), width, round(width * rng.choice([1.414, 1.294, 1.25])), rng.randint(12, 32))
    source, tables = START % (*size, rng.choice([0, 12]), rng.choice([0, 4]), 0), []
    for _ in range(count):
        made = page(rng, held_out, len(tables))
        source, tables = source + made.source, tables + made.tables
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.tex").write_text(source + "\\end{document}\n", encoding="utf-8")
        command = ["pdflatex", "-interaction=batchmode", "-no-shell-escape", "a.tex"]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=1800, check=False)
        path = Path(folder) / "a.pdf"
        if not path.exists():
            return []
        scales = [rng.choice([72, 100, 110, 150, 150, 200]) / 72 * 1.0 for _ in range(4 * count)]
        read = pdf.pages(path, scales)
    return [sheet for one in read if (sheet := sheet_of(one, tables)) is not None]


def sheet_of(read: pdf.Read, tables: list[Content]) -> Sheet | None:
    """Label a page; the result is None where a table goes on to another page, or lies over something else."""
    out = []
    for number, cells in pdf.cells_of(read).items():
        made = tables[number]
        wanted: dict[Place, str] = {c.place: text_of(c.text) for c in made.cells}
        if len(cells) < sum(bool(s) for s in wanted.values()):
            return None
        found = pdf.borders(cells, made.rows, made.columns, read)
        if found is None or found[0][-1] > read.image.width:
            return None
        X, Y = found
        plain = {c.place: c.text for c in made.cells}
        texts = {p: pdf.said(lines, plain[p]) for p, lines in cells}
        rows = [(*p, texts.get(p, [])) for p in wanted]
        out.append({"heads": made.heads, "groups": made.groups, "X": X, "Y": Y, "cells": rows})
    if pdf.covered(read, [(t["X"][0], t["Y"][0], t["X"][-1], t["Y"][-1]) for t in out]):
        return None
    return Sheet(read.image, out, pdf.says(read))
