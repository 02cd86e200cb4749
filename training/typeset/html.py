"""This module builds pages in HTML from a seed; the kinds of pages are in layouts.py."""

import html
import random
from typing import NamedTuple

from training.text import END, LOWERED, RAISED
from training.typeset import content, styles
from training.typeset.content import Content, Words
from training.typeset.marks import Drawn
from training.typeset.others import code, contents, drawing, form, items, people
from training.typeset.tags import div, span, tag


class Page(NamedTuple):
    """A page before it is rendered.

    html: the document; width: of the window, in CSS pixels; scale: device pixels to one of these.

    tables: of each table with the id t0, t1, ... what stands in it and what is drawn of it.
    """

    html: str
    width: int
    scale: float
    tables: list[tuple[Content, Drawn]]
    most: float = 1.5  # how high a page may be, in widths


KINDS = ["article", "article", "article", "report", "report", "web", "web", "sheet", "sheet", "invoice", "form"]
KINDS += ["alone", "alone", "alone", "none"]
OTHERS = ["figure", "figure", "code", "list", "people", "contents", "form", "formula", "quote", "scribble"]
CSS = """*{box-sizing:border-box}body{margin:0}table{font-size:inherit}td,th{white-space:nowrap}
.folds td,.folds th{white-space:normal}
sup,sub{font-size:.68em;line-height:0}p{margin:.5em 0}pre{margin:.6em 0;white-space:pre}figure{margin:1em 0}
.two{display:flex;gap:4%}.two>div{width:48%}caption{padding:.3em}"""


def text_of(string: str) -> str:
    """Return a text with raised and lowered parts as HTML."""
    s = html.escape(string)
    parts = s.replace(RAISED, "<sup>").replace(LOWERED, "<sub>")
    out = ""
    for piece in parts.split(END):
        kind = "sup" if "<sup>" in piece else "sub" if "<sub>" in piece else ""
        out += piece + (f"</{kind}>" if kind else "")
    return out


class Builder:
    """This class collects the blocks, styles and tables of one page."""

    def __init__(self, rng: random.Random, held_out: bool):
        self.rng, self.held_out = rng, held_out
        self.words = Words(rng)
        self.css: list[str] = [CSS]
        self.tables: list[tuple[Content, Drawn]] = []

    def table(
        self, columns: int, rows: int, border: str | None = None, leaders: bool = False, wide: float = 0.45
    ) -> str:
        """Return a table's element; wide says how often it fills the width of its room."""
        rng, name = self.rng, f"t{len(self.tables)}"
        made = content.table(self.words, columns, rows, leaders)
        look = styles.style(rng, name, made.heads, self.held_out, border)
        self.css.append(look.css)
        rules = []
        if rng.random() < wide:
            rules.append(f"width:{rng.choice([100, 100, 90, 75])}%")
        rules.append(f"font-size:{rng.choice([0.7, 0.8, 0.9, 1, 1, 1]):.2f}em")
        rules.append(f"line-height:{rng.choice([1.05, 1.15, 1.2, 1.3, 1.5])}")
        if rng.random() < 0.35:
            rules.append("margin-left:auto;margin-right:auto")
        if rng.random() < 0.1:
            rules.append(f"background:{styles.colour(rng, 0.97)}")
        self.css.append(f"#{name}{{{';'.join(rules)}}}")
        aligns = [
            rng.choice(["left", "left", "left", "center"])
            if k in ("words", "code", "date")
            else rng.choice(["right", "right", "right", "center", "left"])
            for k in made.kinds
        ]
        if rng.random() < 0.2:
            aligns[1:] = [rng.choice(["center", "right"])] * (columns - 1)
        own = rng.random() < 0.6  # heads stand as their columns do
        for i, align in enumerate(aligns):
            self.css.append(
                f"#{name} .c{i}{{text-align:{align}}}" + (f"#{name} th.c{i}{{text-align:{align}}}" if own else "")
            )
        self.tables.append((made, look.drawn))
        folds = ' class="folds"' if look.folds and rng.random() < 0.5 else ""
        return f'<table id="{name}"{folds}>{rows_of(made)}</table>'

    def captioned(self, table: str) -> str:
        """Return a table with or without a caption and notes."""
        rng, words = self.rng, self.words
        name = rng.choice(["Table", "Table", "TABLE", "Tab.", "Exhibit"])
        number = f"{name} {rng.randint(1, 20)}{rng.choice([':', '.', ' –', ''])}"
        look = rng.choice(["text-align:center", "", "font-size:.85em", "font-weight:bold"])
        number = rng.choice([number, tag("b", number)])
        caption = tag("p", f"{number} {text_of(words.sentence())}", look, "say")
        k = rng.random()
        notes = ""
        if rng.random() < 0.3:
            marks = "".join(
                f"<div>{text_of(f'{RAISED}{m}{END}')} {text_of(words.sentence())}</div>"
                for m in rng.sample("abc123*", rng.randint(1, 3))
            )
            size = f"font-size:{rng.uniform(0.65, 0.85):.2f}em"
            notes = div(rng.choice(["", "<i>Notes:</i> ", "Source: "]) + marks, size, "say")
        gap = f'<div style="height:{rng.uniform(0.2, 1):.1f}em"></div>'
        body = caption + table + notes if k < 0.45 else table + notes + gap + caption if k < 0.65 else table + notes
        return f'<div style="margin:{rng.uniform(0.6, 2):.1f}em 0">{body}</div>'

    def heading(self) -> str:
        rng = self.rng
        number = rng.choice(["", "", f"{rng.randint(1, 9)}. ", f"{rng.randint(1, 9)}.{rng.randint(1, 9)} "])
        size = f"font-size:{rng.uniform(1.05, 1.7):.2f}em"
        look = f"{size};{rng.choice(['font-weight:bold', 'font-style:italic', ''])};margin:.8em 0 .4em"
        return div(number + text_of(self.words.some(2, 6)), look, "say")

    def paragraph(self) -> str:
        justify = self.rng.choice(["justify", "left", "left"])
        return f'<p class="say" style="text-align:{justify}">{text_of(self.words.paragraph())}</p>'

    def other(self, kind: str = "") -> str:
        """Return a block that is no table, though it may look like one."""
        rng = self.rng
        kind = kind or rng.choice(OTHERS)
        makers = {"figure": drawing, "scribble": drawing, "code": code, "list": items, "people": people}
        makers |= {"contents": contents, "form": form}
        if kind in makers:
            return makers[kind](rng, self.words, kind)
        if kind == "formula":
            low, up = text_of(f"{LOWERED}{rng.randint(0, 9)}{END}"), text_of(f"{RAISED}2{END}")
            s = f"<i>{rng.choice('xyzfg')}</i>{low} = {rng.randint(2, 99)} <i>a</i>{up} + <i>b</i>"
            number = span(f"({rng.randint(1, 30)})")
            return div(span(s, "flex:1;text-align:center") + number, "display:flex;margin:1em 2em")
        look = f"border-left:3px solid {styles.colour(rng, 0.8)};padding-left:1em"
        return tag("blockquote", text_of(self.words.paragraph(1, 3)), look, "say")

    def size(self, most_columns: int = 12, most_rows: int = 25) -> tuple[int, int]:
        """Choose columns and rows, small tables more often than large ones."""
        rng = self.rng
        columns = rng.randint(2, max(2, rng.choice([5, 7, 9, most_columns])))
        return columns, rng.randint(2, max(3, rng.choice([7, 12, 18, most_rows])))

    def flow(self, count: int, share: float, columns: int = 12, rows: int = 25) -> list[str]:
        """Return the blocks of a page; `share` of them are tables, and two tables never follow each other."""
        rng, out = self.rng, []
        table_before = False
        for _ in range(count):
            k = rng.random()
            if k < share and not table_before:
                out.append(self.captioned(self.table(*self.size(columns, rows))))
                table_before = True
                continue
            table_before = False
            out.append(self.heading() if k < share + 0.12 else self.other() if k < share + 0.27 else self.paragraph())
        return out

    def page(self, body: str, width: int, scale: float, look: str, most: float = 1.5) -> Page:
        css = "\n".join(self.css)
        head = f"<!DOCTYPE html><html><head><meta charset='utf-8'><style>{css}\nbody{{{look}}}</style></head>"
        return Page(f"{head}<body>{body}</body></html>", width, scale, self.tables, most)


def rows_of(made: Content) -> str:
    """Return the rows of a table's element; each cell has its place in data-p."""
    lines: list[list[str]] = [[] for _ in range(made.rows)]
    for cell in made.cells:
        p = cell.place
        tag = "th" if cell.role == "head" else "td"
        over = f' rowspan="{p.last_row - p.row + 1}"' if p.last_row > p.row else ""
        over += f' colspan="{p.last_column - p.column + 1}"' if p.last_column > p.column else ""
        names = [f"c{p.column}" if p.last_column == p.column or cell.role != "head" else "wide", cell.role]
        names += ["in"] * (p.column > 0) + ["deep"] * (cell.role == "head" and p.last_row == made.heads - 1)
        place = f"{p.row},{p.last_row},{p.column},{p.last_column}"
        lines[p.row].append(
            f'<{tag}{over} class="{" ".join([*names, "used"])}" data-p="{place}">{text_of(cell.text)}</{tag}>'
        )
    head = "".join(f"<tr>{''.join(cells)}</tr>" for cells in lines[: made.heads])
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in lines[made.heads :])
    return (f"<thead>{head}</thead>" if head else "") + f"<tbody>{body}</tbody>"


def look_of(rng: random.Random, held_out: bool, size: float, paper: str = "#fff") -> str:
    """Return the CSS of the body: its font, its size in pixels, and its colours."""
    ink = rng.choice(["#000"] * 5 + [styles.colour(rng, 0.15)])
    step, family = rng.choice([1.15, 1.25, 1.35, 1.5]), styles.font(rng, held_out)
    return f"font:{size:.1f}px/{step} '{family}';color:{ink};background:{paper}"


def page(rng: random.Random, held_out: bool = False, kind: str | None = None) -> Page:
    """Make a page of this kind, or of a random one."""
    from training.typeset import layouts

    return getattr(layouts, kind or rng.choice(KINDS))(rng, held_out)
