"""This module sets tables as journals do: labels that wrap, sections with indented parts, statistics, cells of prose.

Their rows are often told apart by nothing but the places of their first lines.
"""

import random
import string
from collections.abc import Callable
from itertools import pairwise

from training.tables import Place
from training.text import END, RAISED
from training.typeset import styles
from training.typeset.content import Cell, Content, Words
from training.typeset.html import Builder, Page, look_of, rows_of
from training.typeset.tags import div

BORDERS = ["booktabs"] * 6 + ["ends", "ends", "headrule", "horizontal", "horizontal", "zebra", "none", "grid", "lines"]
THEMES = ["traits", "traits", "statistics", "statistics", "prose", "prose", "names"]
_MARKS = ("*", "**", "†", "‡", "a", "b", "c", "1", "2", "#", "a,b")
_LABELS = """Age, years;Sex;Male;Female;Total;Yes;No;Mean ± SD;Median (range);Missing;Other;n (%);BMI (kg/m²);Stage I
Stage II;Stage III;Grade 3–4;< 65;≥ 65;Reference;p value"""
_HEADS = """p;n;n (%);OR (95% CI);HR (95% CI);Mean (SD);Mean ± SD;SE;df;F;95% CI;Reference;Variables;Characteristics
P value;Total (n = 120);Group A;Control;t;β;r²;Year"""
LABELS, HEADS = (names.replace("\n", ";").split(";") for names in (_LABELS, _HEADS))
_LETTERS = {"dna": "ACGT", "protein": "ACDEFGHIKLMNPQRSTVWY"}

Maker = Callable[[], str]


def _statistic(words: Words) -> Maker:
    """Return a function that makes the numbers of one column, all of one form."""
    rng = words.rng
    digits, decimals = rng.randint(1, 3), rng.choice([0, 1, 1, 2, 2, 3])
    dash, plus = rng.choice("–-"), rng.choice([" ± ", "±"])
    stars = rng.choice([0, 0, 0.1, 0.4])

    def number() -> str:
        return words.number(digits + decimals, decimals)

    def signed() -> str:
        return (words.minus if rng.random() < 0.3 else "") + number()

    forms: list[Maker] = [
        lambda: f"{rng.randint(0, 400)} ({rng.uniform(0, 100):.{decimals % 2}f}{'%' if stars else ''})",
        lambda: f"{signed()} ({number()}{dash}{number()})",
        lambda: f"{signed()} ({signed()}, {signed()})",
        lambda: f"{number()}{plus}{number()}",
        lambda: f"{number()} ({number()})",
        lambda: rng.choice(["<0.001", "0.05", f"0.{rng.randint(1, 999):03}", f"0.{rng.randint(1, 99):02}"]),
        signed,
        number,
        lambda: str(rng.randint(0, 10 ** rng.randint(1, 4))),
        lambda: f"{number()}{dash}{number()}",
        lambda: rng.choice(["+", "−", "–", "✓", "Yes", "No", "+", "+++"]),
    ]
    make = rng.choice(forms)

    def marked() -> str:
        return make() + (f"{RAISED}{rng.choice(_MARKS)}{END}" if rng.random() < stars else "")

    return marked


def _prose(words: Words, most: int) -> Maker:
    """Return a function that makes texts of up to `most` words, as lists, sentences or phrases."""
    rng = words.rng
    form = rng.choice(["phrase", "phrase", "list", "sentence", "lines"])

    def make() -> str:
        n = rng.randint(1, most)
        if form == "list":
            return rng.choice([", ", ", ", "; "]).join(words.some(1, 2) for _ in range(max(1, n // 2)))
        if form == "lines" and n > 3:
            return "\n".join(words.some(1, max(1, n // 3)) for _ in range(rng.randint(2, 3)))
        made = words.some(1, 1) if n == 1 else words.some(max(1, n // 2), n)
        if form == "sentence":
            made = made.capitalize() + "."
        return made + (f" [{rng.randint(1, 99)}]" if rng.random() < 0.1 else "")

    return make


def _name(words: Words) -> Maker:
    """Return a function that makes names: of species, places, genes, sequences, codes."""
    rng = words.rng
    kind = rng.choice(["species", "code", "dna", "dna", "protein", "person", "place"])

    def make() -> str:
        if kind == "species":
            return f"{words.some(1, 1).capitalize()} {words.some(1, 1).lower()}"
        if kind in _LETTERS:
            made = "".join(rng.choices(_LETTERS[kind], k=rng.randint(12, 28)))
            return f"5′-{made}-3′" if kind == "dna" and ends else made
        if kind == "person":
            return f"{words.some(1, 1).capitalize()} et al. ({rng.randint(1980, 2024)})"
        if kind == "place":
            return f"{rng.choice('NS')}{rng.randint(0, 89):02}°{rng.randint(0, 59):02}′"
        return prefix + "".join(rng.choices(string.ascii_uppercase + string.digits, k=rng.randint(1, 3)))

    ends, prefix = rng.random() < 0.5, "".join(rng.choices(string.ascii_uppercase, k=rng.randint(1, 5)))
    return make


def table(words: Words, columns: int, rows: int) -> Content:
    """Make up a table of a journal, with line breaks in texts, and roles for sections and their parts."""
    rng, theme = words.rng, words.rng.choice(THEMES)
    heads = min(rng.choice([0, 1, 1, 1, 1, 1, 2, 2]), rows - 1)
    label = _prose(words, rng.choice([2, 3, 5, 8, 12])) if theme != "names" else _name(words)
    makers, kinds = [lambda: rng.choice(LABELS) if theme == "traits" and rng.random() < 0.4 else label()], ["words"]
    same = _statistic(words) if rng.random() < 0.3 else None
    for c in range(1, columns):
        wordy = {"prose": 0.85, "names": 0.4, "traits": 0.04, "statistics": 0.08}[theme]
        if rng.random() < wordy:
            most = rng.choice([2, 4, 8, 16, 30] if columns < 5 else [2, 3, 5, 10])
            makers.append(_prose(words, most) if theme != "names" or rng.random() < 0.5 else _name(words))
            kinds.append("words")
        else:
            makers.append(same or _statistic(words) if c < columns - 1 else _statistic(words))
            kinds.append("number")
    roles = _roles(rng, heads, rows, columns, theme)
    cells: list[Cell] = []
    for place in _heads(rng, heads, columns):
        said = rng.choice(HEADS) if rng.random() < 0.35 else words.some(1, rng.choice([1, 2, 3, 6]))
        if place.column == 0 and rng.random() < 0.15 and columns > 2:
            said = ""
        elif rng.random() < 0.2:
            said += f"\n({rng.choice(['n = 24', 'mg/l', '%', 'n (%)', 'kg', 'years', 'mean ± SD', 'μg/ml'])})"
        elif rng.random() < 0.05:
            said += f"{RAISED}{rng.choice(_MARKS)}{END}"
        cells.append(Cell(place, said, "head", "words"))
    over = _over(rng, roles, heads, theme)
    blank = rng.choice([0, 0, 0.05, 0.2, 0.4])
    sections = rng.choice([0, 0, 0, 0.3])  # of sections that have numbers of their own
    groups = []
    for r in range(heads, rows):
        role = roles[r]
        if role == "group":
            groups.append(r)
            cells.append(Cell(Place(r, r, 0, columns - 1), words.some(2, 7), role, "words"))
            continue
        full = role != "section" or rng.random() < sections
        kept = rng.randrange(1, columns)
        for c in range(columns):
            last = over.get(r, r) if c == 0 else r
            if c == 0 and any(first < r <= end for first, end in over.items()):
                continue
            said = makers[c]() if c == 0 or full else ""
            if c and full and c != kept and rng.random() < blank:
                said = rng.choice(["", "", "–", "-", "NA", "Ref."])
            cells.append(Cell(Place(r, last, c, c), said, role if c == 0 else "body", kinds[c]))
    cells.sort(key=lambda cell: (cell.place.row, cell.place.column))
    return Content(rows, columns, heads, cells, groups, kinds)


def _roles(rng: random.Random, heads: int, rows: int, columns: int, theme: str) -> dict[int, str]:
    """Choose for each row what its label is: of the body, of a section or group, or a part of one."""
    roles = dict.fromkeys(range(heads, rows), "body")
    k = rng.random()
    if (theme == "traits" and k < 0.75) or (theme == "statistics" and k < 0.35):
        kind = rng.choice(["section", "section", "group"]) if columns > 2 else "section"
        r = heads
        while r < rows - 1:
            if rng.random() < 0.25:
                r += 1  # one that stands by itself
                continue
            parts = min(rng.randint(1, 5), rows - 1 - r)
            roles[r] = kind
            roles |= dict.fromkeys(range(r + 1, r + 1 + parts), "part")
            r += 1 + parts
    elif k < 0.15 and columns > 2 and rows - heads > 5:
        roles |= dict.fromkeys(rng.sample(range(heads, rows - 1), rng.randint(1, 2)), "group")
    both = [r for r, s in pairwise(roles) if roles[r] == roles[s] == "group"]
    return roles | dict.fromkeys(both, "body")


def _heads(rng: random.Random, heads: int, columns: int) -> list[Place]:
    """Return the places of the header's cells; in the first of two rows some go over several columns."""
    if heads < 2:
        return [Place(0, 0, c, c) for c in range(columns)] if heads else []
    out, c, tall = [], 0, rng.random() < 0.5
    while c < columns:
        n = min(rng.choice([1, 2, 2, 3, 4]), columns - c) if c else 1
        if n > 1:
            out += [Place(0, 0, c, c + n - 1), *(Place(1, 1, i, i) for i in range(c, c + n))]
        elif tall:
            out.append(Place(0, 1, c, c))
        else:
            out += [Place(0, 0, c, c), Place(1, 1, c, c)]
        c += n
    return out


def _over(rng: random.Random, roles: dict[int, str], heads: int, theme: str) -> dict[int, int]:
    """Return the first and last rows of labels that stand for several rows; none, mostly."""
    if theme == "traits" or rng.random() < 0.85 or set(roles.values()) != {"body"}:
        return {}
    out, r, last = {}, heads, max(roles)
    while r <= last:
        out[r] = min(last, r + rng.randint(0, 3))
        r = out[r] + 1
    return out


def _table(b: Builder, columns: int, rows: int) -> str:
    """Return the element of a table of made-up texts."""
    return element_of(b, table(b.words, columns, rows))


def element_of(b: Builder, made: Content) -> str:
    """Return the element of a table whose texts fold, with few rules and small letters."""
    rng, name = b.rng, f"t{len(b.tables)}"
    look = styles.style(rng, name, made.heads, b.held_out, None if b.held_out else rng.choice(BORDERS))
    t, css = f"#{name}", [look.css]
    css.append(
        f"{t}{{width:{rng.choice([100, 100, 100, 80, 60])}%;line-height:{rng.choice([1.1, 1.15, 1.2, 1.25, 1.35])}}}"
    )
    above, beside = rng.choice([0, 0.04, 0.1, 0.15, 0.2, 0.35, 0.5]), rng.choice([0.2, 0.3, 0.5, 0.8, 1.2])
    css.append(f"{t} td,{t} th{{padding:{above}em {beside}em}}")
    css.append(f"{t} td{{vertical-align:{rng.choice(['top'] * 5 + ['middle', 'middle', 'bottom', 'baseline'])}}}")
    css.append(f"{t} th{{vertical-align:{rng.choice(['top', 'bottom', 'bottom', 'middle'])}}}")
    hang = rng.choice([0, 0, 0, 0.6, 1.0])
    css.append(f"{t} td.c0{{padding-left:{hang}em;text-indent:-{hang}em}}")
    css.append(f"{t} td.part{{padding-left:{hang + rng.choice([0, 0.6, 1, 1.5])}em}}")
    if rng.random() < 0.4:
        css.append(f"{t} td.section{{font-weight:bold}}")
    if rng.random() < 0.3:
        css.append(f"{t} td.section,{t} td.group{{padding-top:{rng.choice([0.3, 0.6, 1])}em}}")
    centred = rng.choice(["left", "left", "center", "center", "right"])
    for c, kind in enumerate(made.kinds):
        align = centred if kind == "number" else rng.choice(["left"] * 6 + ["center"])
        css.append(f"{t} td.c{c}{{text-align:{'left' if c == 0 else align}}}")
        if rng.random() < 0.75:
            css.append(f"{t} th.c{c}{{text-align:{'left' if c == 0 else align}}}")
        if kind == "number" and rng.random() < 0.85:
            css.append(f"{t} td.c{c}{{white-space:nowrap}}")
        elif kind == "words" and c and rng.random() < 0.2:
            css.append(f"{t} td.c{c}{{font-style:italic}}")
    b.css += css
    b.tables.append((made, look.drawn))
    body = rows_of(made).replace("\n", "<br>")
    return f'<table id="{name}" class="folds">{body}</table>'


def page(rng: random.Random, held_out: bool = False) -> Page:
    """Make a page of a journal, in one or two columns, with tables between paragraphs."""
    b = Builder(rng, held_out)
    size = rng.uniform(7.2, 10)  # CSS pixels: points at 72 dpi
    width = round(size * rng.uniform(58, 74))

    def block(columns: int) -> str:
        n = rng.randint(2, rng.choice([3, columns, columns]))
        made = b.captioned(_table(b, n, rng.randint(3, rng.choice([7, 12, 20, 30]))))
        return made + (b.paragraph() if rng.random() < 0.6 else b.heading())

    if rng.random() < 0.4:
        sides = (f"<div>{''.join(block(5) for _ in range(rng.randint(1, 2)))}</div>" for _ in "ab")
        top = block(9) if rng.random() < 0.5 else ""
        body = top + f'<div class="two">{"".join(sides)}</div>'
    else:
        body = "".join(block(9) for _ in range(rng.randint(1, 3)))
    margin = round(width * rng.uniform(0.03, 0.1))
    look = look_of(rng, held_out, size)
    return b.page(div(body, f"padding:{margin}px"), width, rng.choice([1, 1, 1.4, 1.4, 2, 2]), look, 2.5)
