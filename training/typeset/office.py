"""This module renders documents and spreadsheets with LibreOffice, from flat OpenDocument through PDF.

A shard is two files, one of Writer and one of Calc, converted by one call.
"""

import html
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

from training.text import END, LOWERED, RAISED
from training.typeset import content, latex, pdf, styles
from training.typeset.cache import Sheet
from training.typeset.content import Content, Words
from zoo.errors import InputError

NAMES = "soffice", "libreoffice"
SPACES = " ".join(
    f'xmlns:{k}="urn:oasis:names:tc:opendocument:xmlns:{v}:1.0"'
    for k, v in {
        "office": "office",
        "style": "style",
        "text": "text",
        "table": "table",
        "fo": "xsl-fo-compatible",
        "svg": "svg-compatible",
        "number": "datastyle",
    }.items()
)
SPACES += ' xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.3"'
AS_LINK = 'text:style-name="Internet_20_link" text:visited-style-name="Visited_20_Internet_20_Link"'
LINKS = "".join(  # links look as other text does
    f'<style:style style:name="{name}" style:family="text"><style:text-properties style:text-underline-style="none"/>'
    "</style:style>"
    for name in ("Internet_20_link", "Visited_20_Internet_20_Link")
)
BORDERS = ["grid", "grid", "horizontal", "booktabs", "booktabs", "none", "headrule", "zebra"]
HELD_OUT_BORDERS = ["frame", "dotted"]


def executable() -> str | None:
    """Return the path of the installed LibreOffice, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def text_of(string: str) -> str:
    """Return a text with raised and lowered parts as XML."""
    s = html.escape(string, quote=False)
    s = s.replace(RAISED, '<text:span text:style-name="up">').replace(LOWERED, '<text:span text:style-name="down">')
    return s.replace(END, "</text:span>")


class Document:
    """This class collects the styles and the body of a file."""

    def __init__(self, rng: random.Random, held_out: bool, calc: bool = False):
        self.rng, self.held_out, self.calc = rng, held_out, calc
        self.styles: list[str] = []
        self.body: list[str] = []
        self.tables: list[Content] = []

    def style(self, family: str, inner: str, name: str | None = None, more: str = "") -> str:
        name = name or f"s{len(self.styles)}"
        self.styles.append(f'<style:style style:name="{name}" style:family="{family}"{more}>{inner}</style:style>')
        return name

    def letters(self, font: str, size: float) -> str:
        return f'style:font-name="{font}" fo:font-family="{font}" fo:font-size="{size:.1f}pt" fo:color="#000000"'

    def file(self, kind: str, size: tuple[float, float, float], pages: str = "") -> str:
        """Return the file's text.

        kind: text or spreadsheet; size: of the page in millimetres, and its margin.
        """
        width, height, margin = size
        layout = (
            f'<style:page-layout style:name="pm"><style:page-layout-properties fo:page-width="{width:.0f}mm" '
            f'fo:page-height="{height:.0f}mm" fo:margin="{margin:.0f}mm" {pages}/></style:page-layout>'
        )
        fixed = ""
        for name, where in (("up", "super 60%"), ("down", "sub 60%")):
            inner = f'<style:text-properties style:text-position="{where}"/>'
            fixed += f'<style:style style:name="{name}" style:family="text">{inner}</style:style>'
        return (
            f'<?xml version="1.0" encoding="UTF-8"?><office:document {SPACES} '
            f'office:mimetype="application/vnd.oasis.opendocument.{kind}">'
            f"<office:styles>{LINKS}</office:styles>"
            f"<office:automatic-styles>{layout}{fixed}{''.join(self.styles)}</office:automatic-styles>"
            '<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="pm"/>'
            f"</office:master-styles><office:body><office:{kind}>{''.join(self.body)}</office:{kind}></office:body>"
            "</office:document>"
        )

    def table(self, made: Content, font: str, size: float, widths: list[float]) -> str:
        """Return the element of a table with columns of these widths in millimetres."""
        rng, number = self.rng, len(self.tables)
        self.tables.append(made)
        border = rng.choice(HELD_OUT_BORDERS if self.held_out and rng.random() < 0.5 else BORDERS)
        line = f"{rng.choice([0.5, 0.5, 0.75, 1])}pt {'dotted' if border == 'dotted' else 'solid'} "
        line += rng.choice(["#000000", "#000000", "#808080", "#bbbbbb"])
        strong = f"{rng.choice([0.75, 1, 1.5])}pt solid #000000"
        head_fill = styles.colour(rng, rng.choice([0.35, 0.8, 0.88]), 0.5) if rng.random() < 0.45 else ""
        dark = bool(head_fill) and sum(bytes.fromhex(head_fill[1:])) < 360
        stripe = styles.colour(rng, 0.93) if border == "zebra" else ""
        strong_head = rng.random() < 0.8 or not (head_fill or border in ("booktabs", "headrule", "frame"))
        pad = rng.choice([0.2, 0.5, 0.8, 1.2, 2.0])
        aligns = [
            rng.choice(["start", "start", "center"])
            if kind in ("words", "code", "date")
            else rng.choice(["end", "end", "center"])
            for kind in made.kinds
        ]
        columns = "".join(self._column(width) for width in widths)
        rows: list[list[str]] = [[] for _ in range(made.rows)]
        covered = {
            (r, c): "<table:covered-table-cell/>"
            for p in (cell.place for cell in made.cells)
            for r in range(p.row, p.last_row + 1)
            for c in range(p.column, p.last_column + 1)
            if (r, c) != (p.row, p.column)
        }
        cells = {(cell.place.row, cell.place.column): cell for cell in made.cells}
        for r in range(made.rows):
            for c in range(made.columns):
                if (r, c) in covered:
                    rows[r].append(covered[r, c])
                    continue
                cell = cells[r, c]
                p, head = cell.place, cell.role == "head"
                sides = self._sides(border, p, made, line, strong)
                fill = head_fill if head else stripe if stripe and r % 2 else ""
                bold = (head and strong_head) or cell.role in ("total", "group")
                align = "center" if p.last_column > c and head else aligns[c]
                looks = self._looks(font, size, align, bold, dark and head)
                cell_style, paragraph = self._cell(sides, fill, pad, looks), self.style("paragraph", looks)
                spans = f' table:number-columns-spanned="{p.last_column - c + 1}"' if p.last_column > c else ""
                spans += f' table:number-rows-spanned="{p.last_row - r + 1}"' if p.last_row > r else ""
                link = f"http://c/{number}/{p.row}/{p.last_row}/{p.column}/{p.last_column}"
                words = f'<text:a xlink:type="simple" xlink:href="{link}" {AS_LINK}>{text_of(cell.text)}</text:a>'
                words = words if cell.text else ""
                rows[r].append(
                    f'<table:table-cell table:style-name="{cell_style}" office:value-type="string"{spans}>'
                    f'<text:p text:style-name="{paragraph}">{words}</text:p></table:table-cell>'
                )
        inner = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows)
        whole = f'<style:table-properties style:width="{sum(widths):.1f}mm" fo:margin-top="{rng.randint(2, 6)}mm" '
        whole += f'fo:margin-bottom="{rng.randint(2, 6)}mm" table:align="{rng.choice(["left", "center"])}" '
        whole += 'style:may-break-between-rows="false" table:border-model="collapsing"/>'
        style = self.style("table", whole, more=' style:master-page-name="Standard"' * self.calc)
        return f'<table:table table:name="T{number}" table:style-name="{style}">{columns}{inner}</table:table>'

    def _column(self, width: float) -> str:
        inner = f'<style:table-column-properties style:column-width="{width:.1f}mm"/>'
        return f'<table:table-column table:style-name="{self.style("table-column", inner)}"/>'

    def _sides(self, border: str, p: content.Place, made: Content, line: str, strong: str) -> dict[str, str]:
        first, last, deep = p.row == 0, p.last_row == made.rows - 1, p.last_row == made.heads - 1
        if border == "grid":
            return dict.fromkeys(("left", "top", "right", "bottom"), line)
        if border in ("horizontal", "dotted"):
            return {"bottom": line} | ({"top": line} if first else {})
        sides: dict[str, str] = {}
        if border in ("booktabs", "frame"):
            sides |= {"top": strong} if first else {}
            sides |= {"bottom": strong} if last else {}
        if border == "frame":
            sides |= {"left": strong} if p.column == 0 else {}
            sides |= {"right": strong} if p.last_column == made.columns - 1 else {}
        if border in ("booktabs", "headrule", "frame") and deep:
            sides["bottom"] = line
        return sides

    def _cell(self, sides: dict[str, str], fill: str, pad: float, looks: str) -> str:
        drawn = " ".join(f'fo:border-{k}="{sides.get(k, "none")}"' for k in ("left", "top", "right", "bottom"))
        ground = f' fo:background-color="{fill}"' if fill else ""
        inner = f'<style:table-cell-properties {drawn}{ground} fo:padding="{pad}mm" '
        inner += 'fo:wrap-option="wrap" style:vertical-align="middle"/>'
        return self.style("table-cell", inner + looks)

    def _looks(self, font: str, size: float, align: str, bold: bool, light: bool) -> str:
        """Return the properties of a cell's letters; they belong to its paragraph in Writer and to the cell in Calc."""
        letters = self.letters(font, size)
        if light:
            letters = letters.replace("#000000", "#ffffff")
        inner = f'<style:paragraph-properties fo:text-align="{align}"/><style:text-properties {letters} '
        return inner + f'fo:font-weight="{"bold" if bold else "normal"}"/>'


def writer(rng: random.Random, held_out: bool, count: int) -> tuple[str, list[Content]]:
    """Make up a document of about `count` pages."""
    d = Document(rng, held_out)
    width = rng.choice([210, 210, 216, 148])
    height, margin = round(width * rng.choice([1.414, 1.294])), rng.randint(12, 28)
    room = width - 2 * margin
    for _ in range(count):
        words, font, size = Words(rng), styles.font(rng, held_out), rng.uniform(8, 12)
        text_style = d.style(
            "paragraph",
            f'<style:text-properties {d.letters(font, size)}/><style:paragraph-properties fo:margin-bottom="2mm"/>',
        )
        inner = f'<style:text-properties {d.letters(font, size * 1.4)} fo:font-weight="bold"/>'
        heading = d.style("paragraph", inner + '<style:paragraph-properties fo:break-before="page"/>')
        d.body.append(f'<text:p text:style-name="{heading}">{text_of(words.some(2, 6))}</text:p>')
        used = 30.0
        while used < height - 2 * margin - 60:
            if rng.random() < 0.45:
                columns = rng.randint(2, rng.choice([4, 6, 9]))
                rows = rng.randint(3, rng.choice([6, 10, 18]))
                own = size * rng.choice([0.75, 0.85, 1])
                made = content.table(words, columns, rows)
                needed = _needed(made, own)
                whole = room * rng.choice([1, 1, 0.8, 0.6])
                if sum(needed) <= room:
                    spare = max(0.0, whole - sum(needed)) / sum(needed)
                    d.body.append(d.table(made, font, own, [width * (1 + spare) for width in needed]))
                    used += rows * own * 0.6 + 10
            d.body.append(f'<text:p text:style-name="{text_style}">{text_of(words.paragraph(1, 5))}</text:p>')
            used += 25
    return d.file("text", (width, height, margin)), d.tables


def _needed(made: Content, size: float) -> list[float]:
    """Return widths of columns, in millimetres, that break no word."""
    longest = [4] * made.columns
    for cell in made.cells:
        if cell.place.column == cell.place.last_column:
            longest[cell.place.column] = max([longest[cell.place.column], *map(len, cell.text.split())])
    return [n * size * 0.235 + 5 for n in longest]


def calc(rng: random.Random, held_out: bool, count: int) -> tuple[str, list[Content]]:
    """Make up `count` spreadsheets, with printed grid lines or without; each fits a page."""
    d = Document(rng, held_out, True)
    printed = rng.choice(["grid", ""])
    for _ in range(count):
        words, font, size = Words(rng), styles.font(rng, held_out), rng.uniform(7, 11)
        columns, rows = rng.randint(2, rng.choice([5, 8, 12])), rng.randint(4, rng.choice([12, 25, 40]))
        made = content.table(words, columns, rows)
        longest = [8] * columns
        for cell in made.cells:
            if cell.place.column == cell.place.last_column:
                longest[cell.place.column] = max(longest[cell.place.column], len(cell.text))
        widths = [min(70.0, n * size * 0.22 + rng.uniform(3, 9)) for n in longest]
        d.body.append(d.table(made, font, size, widths))
    return d.file("spreadsheet", (600, 560, rng.randint(8, 20)), f'style:print="{printed} objects"'), d.tables


def shard(rng: random.Random, held_out: bool, count: int) -> list[Sheet]:
    """Render `count` pages, about half of them with each program."""
    path = executable()
    if path is None:
        raise InputError("soffice is not installed: apt-get install libreoffice-calc libreoffice-writer")
    out: list[Sheet] = []
    for _ in range(12):
        out += _converted(path, random.Random(rng.getrandbits(64)), held_out, count)
        if len(out) >= count:
            rng.shuffle(out)
            return out[:count]
    raise InputError(f"12 documents of LibreOffice gave {len(out)} pages, expected {count}")


def _converted(path: str, rng: random.Random, held_out: bool, count: int) -> list[Sheet]:
    made = {"a.fodt": writer(rng, held_out, count // 2), "b.fods": calc(rng, held_out, count // 2)}
    out: list[Sheet] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (source, _) in made.items():
            (Path(folder) / name).write_text(source, encoding="utf-8")
        own = f"-env:UserInstallation=file://{folder}/profile"
        command = [path, own, "--headless", "--convert-to", "pdf", "--outdir", folder]
        subprocess.run([*command, *(f"{folder}/{n}" for n in made)], capture_output=True, timeout=1800, check=False)
        for name, (_, tables) in made.items():
            file = (Path(folder) / name).with_suffix(".pdf")
            scales = [rng.choice([72, 90, 110, 150, 150, 200]) / 72 for _ in range(6 * count)]
            if file.exists():
                read = pdf.pages(file, scales)
                found = [sheet for one in read if (sheet := latex.sheet_of(one, tables)) is not None]
                out += found if name == "a.fodt" else [cut_out(sheet, rng) for sheet in found if sheet.tables]
    return out


def cut_out(sheet: Sheet, rng: random.Random) -> Sheet:
    """Cut a large paper down to its table and some margin."""
    table = sheet.tables[0]
    width = min(sheet.image.width, round(table["X"][-1] * rng.uniform(1.02, 1.4)))
    height = min(sheet.image.height, round(table["Y"][-1] * rng.uniform(1.02, 1.6)))
    return sheet._replace(image=sheet.image.crop((0, 0, width, height)))
