"""This module lays out whole pages in HTML, with one function for each kind of page."""

import html
import random
import string

from training import text
from training.typeset import content, styles
from training.typeset.html import Builder, Page, look_of, rows_of, text_of
from training.typeset.marks import Drawn
from training.typeset.others import form as fields
from training.typeset.tags import div, span


def article(rng: random.Random, held_out: bool) -> Page:
    """Make an article in one or two columns, with tables, figures and whatever else a paper has."""
    b, width = Builder(rng, held_out), rng.randint(640, 900)
    size = rng.uniform(10, 15)
    margin = round(width * rng.uniform(0.05, 0.13))
    if rng.random() < 0.45:
        columns = "".join(
            f"<div>{''.join(b.flow(rng.randint(5, 9), rng.choice([0.15, 0.3]), 5, 18))}</div>" for _ in "ab"
        )
        top = b.heading() + (b.other("people") if rng.random() < 0.3 else "")
        wide = b.captioned(b.table(*b.size())) + b.heading() if rng.random() < 0.4 else ""
        body = f'{top}{wide}<div class="two">{columns}</div>'
        size = min(size, 12)
    else:
        body = "".join(b.flow(rng.randint(4, 9), rng.choice([0.2, 0.4, 0.6]), 12, 30))
    return b.page(
        f'<div style="padding:{margin}px">{body}</div>',
        width,
        rng.choice([1, 1, 1.5, 2]),
        look_of(rng, held_out, size),
        1.45,
    )


def report(rng: random.Random, held_out: bool) -> Page:
    """Make a financial report: wide tables of numbers, often without rules, leaders of dots, sums."""
    b, width = Builder(rng, held_out), rng.randint(700, 1000)
    parts = []
    for i in range(rng.randint(1, 3)):
        parts.append(b.heading() if rng.random() < 0.6 or i else "")
        parts.append(b.paragraph() if rng.random() < 0.6 or i else "")
        border = rng.choice(["none", "none", "headrule", "zebra", "ends", "horizontal", None])
        border = None if held_out else border
        columns, rows = rng.randint(2, 8), rng.randint(4, rng.choice([12, 25, 45, 60]))
        parts.append(b.captioned(b.table(columns, rows, border, rng.random() < 0.35, wide=0.8)))
        parts.append(b.paragraph() if rng.random() < 0.7 else b.heading())
    look = look_of(rng, held_out, rng.uniform(10, 14))
    return b.page(
        f'<div style="padding:{rng.randint(24, 90)}px">{"".join(parts)}</div>',
        width,
        rng.choice([1, 1, 1.5, 2]),
        look,
        1.6,
    )


def web(rng: random.Random, held_out: bool) -> Page:
    """Make a web page: a bar on top, links on the side, cards, tables with coloured headers."""
    b, width = Builder(rng, held_out), rng.randint(800, 1280)
    links = "".join(
        f'<span style="margin-right:1.6em">{html.escape(b.words.some(1, 2))}</span>' for _ in range(rng.randint(3, 7))
    )
    dark = rng.random() < 0.5
    ground = styles.colour(rng, 0.25 if dark else 0.92)
    bar = f'<div style="background:{ground};color:{"#fff" if dark else "#222"};padding:.8em 1.2em">{links}</div>'
    side = "".join(
        f'<div style="padding:.35em 0">{html.escape(b.words.some(1, 3))}</div>' for _ in range(rng.randint(4, 14))
    )
    main = "".join(b.flow(rng.randint(3, 7), rng.choice([0.3, 0.5]), 10, 25))
    if rng.random() < 0.4:
        box = "flex:1;border:1px solid #ddd;border-radius:6px;padding:1em"
        cards = ""
        for _ in range(rng.randint(2, 5)):
            name, number = html.escape(b.words.some(1, 2)), html.escape(text.number(rng))
            cards += div(div(name, "font-size:.8em") + div(number, "font-size:1.7em"), box)
        main = f'<div style="display:flex;gap:1em">{cards}</div>{main}'
    narrow = div(side, f"width:{rng.randint(14, 24)}%;padding:1em;font-size:.9em")
    with_side = div(narrow + div(main, "flex:1;min-width:0;padding:1em 2em"), "display:flex")
    body = bar * (rng.random() < 0.8) + (
        with_side if rng.random() < 0.5 else f'<div style="padding:1em 3em">{main}</div>'
    )
    paper = "#fff"
    look = look_of(rng, held_out, rng.uniform(12, 17), paper)
    return b.page(body, width, rng.choice([1, 1, 1, 1.5]), look, rng.choice([0.6, 0.75, 1.0, 1.5]))


def sheet(rng: random.Random, held_out: bool) -> Page:
    """Make a spreadsheet's window: letters over columns, numbers of rows, thin grid lines, cells in use.

    The table is what is filled; the empty cells around it are not.
    """
    b = Builder(rng, held_out)
    columns, rows = rng.randint(2, rng.choice([6, 10, 15, 20])), rng.randint(3, rng.choice([15, 30, 50]))
    made = content.table(b.words, columns, rows)
    grid = colour = styles.colour(rng, rng.choice([0.8, 0.85, 0.9]), 0.0)
    left, top = rng.choice([0, 0, 0, 1, 2]), rng.choice([0, 0, 0, 1, 2])
    more, below = rng.choice([0, 1, 2, 4]), rng.choice([0, 2, 5, 12])
    all_columns = left + columns + more
    filled = rng.random() < 0.6
    lines = rng.random() < 0.85  # whether grid lines are shown
    edge, paddings = grid if lines else "transparent", f"{rng.randint(0, 4)}px {rng.randint(2, 8)}px"
    css = ["#t0{border-collapse:collapse;line-height:1.2}"]
    css.append(f"#t0 td,#t0 th{{border:1px solid {edge};padding:{paddings};font-weight:normal;text-align:left}}")
    ground = styles.colour(rng, 0.93, 0.1)
    css.append(f"#t0 .ruler{{background:{ground};color:#555;text-align:center;border:1px solid {colour}}}")
    if filled:
        css.append(f"#t0 .head{{background:{styles.colour(rng, rng.choice([0.35, 0.8, 0.9]), 0.6)}}}")
    css.append(f"#t0 .head{{font-weight:{rng.choice(['bold', 'bold', 'normal'])}}}")
    css.append("#t0 .total,#t0 .group{font-weight:bold}")
    for i, kind in enumerate(made.kinds):
        align = "right" if kind in ("number", "measure") else rng.choice(["left", "left", "center"])
        css.append(f"#t0 td.c{i}{{text-align:{align}}}")
    if not filled and rng.random() < 0.3:
        css.append("#t0 .used{border:1px solid #000}")
    b.css += css
    by_row = rows_of(made).replace("<thead>", "").replace("</thead>", "").replace("<tbody>", "").replace("</tbody>", "")
    inner = [row.removesuffix("</tr>") for row in by_row.split("<tr>")[1:]]
    ruler = "".join(
        f'<td class="ruler" style="min-width:{rng.randint(40, 90)}px">{string.ascii_uppercase[i % 26]}</td>'
        for i in range(all_columns)
    )
    out = [f'<tr><td class="ruler">&nbsp;</td>{ruler}</tr>'] if rng.random() < 0.85 else []
    numbered = bool(out)
    for r in range(top + rows + below):
        first = f'<td class="ruler">{r + 1}</td>' if numbered else ""
        within = inner[r - top] if top <= r < top + rows else ""
        empty = "<td>&nbsp;</td>"
        cells = empty * left + within + empty * more if within or top <= r < top + rows else empty * all_columns
        out.append(f"<tr>{first}{cells}</tr>")
    bar = _bar(rng)
    side = (filled or lines, filled or lines, lines, lines)
    b.tables.append((made, Drawn(lines, lines, side, filled)))
    body = f'{bar}<table id="t0">{"".join(out)}</table>'
    look = look_of(rng, held_out, rng.uniform(11, 16))
    return b.page(body, rng.randint(500, 1200), rng.choice([1, 1, 1, 1.5]), look, 5.0)


def _bar(rng: random.Random) -> str:
    """Return a bar of tools and the field of a formula, or nothing."""
    tools = ""
    for _ in range(rng.randint(5, 24)):
        ground = f"background:{styles.colour(rng, 0.75)}"
        tools += span("", f"display:inline-block;width:{rng.randint(14, 60)}px;height:16px;margin:4px;{ground}")
    if rng.random() < 0.5:
        return ""
    field = div(f"<i>fx</i> {html.escape(text.number(rng))}", "padding:3px 8px;border:1px solid #ddd")
    return div(tools, "background:#f3f3f3;padding:6px") + field


def invoice(rng: random.Random, held_out: bool) -> Page:
    """Make an invoice: addresses, particulars, a table of items, and sums."""
    b, width = Builder(rng, held_out), rng.randint(640, 860)

    def block(lines: int) -> str:
        return "<div>" + "".join(f"<div>{html.escape(b.words.some(1, 3))}</div>" for _ in range(lines)) + "</div>"

    details = ""
    for _ in range(rng.randint(2, 6)):
        value = text.KINDS[rng.choice(["date", "code", "number"])](rng)
        details += div(f"<b>{html.escape(b.words.some(1, 2))}:</b> {html.escape(value)}")
    head = (
        f'<div style="display:flex;justify-content:space-between">{block(rng.randint(2, 5))}<div>{details}</div></div>'
    )
    name = rng.choice(["Invoice", "Rechnung", "Facture", "INVOICE", "Quote", "Receipt"])
    title = div(name, "font-size:2em;margin:.5em 0")
    table = b.table(rng.randint(3, 7), rng.randint(3, 16), wide=0.85)
    sums = ""
    if rng.random() < 0.6:
        beside = "display:flex;justify-content:space-between"
        names = ("Subtotal", "Tax", "Total")
        rows = "".join(div(span(name) + span(html.escape(text.money(rng))), beside) for name in names)
        sums = f'<div style="margin:1.6em 0 0 auto;width:34%">{rows}</div>'
    order = [head, title] if rng.random() < 0.5 else [title, head]
    body = (
        "".join(order)
        + f'<div style="height:{rng.randint(10, 40)}px"></div>{table}{sums}<div style="height:20px"></div>'
        + b.paragraph()
    )
    return b.page(
        f'<div style="padding:{rng.randint(24, 80)}px">{body}</div>',
        width,
        rng.choice([1, 1, 1.5, 2]),
        look_of(rng, held_out, rng.uniform(11, 15)),
        1.42,
    )


def form(rng: random.Random, held_out: bool) -> Page:
    """Make a form of fields, with a table in it now and then."""
    b, width = Builder(rng, held_out), rng.randint(640, 900)
    parts = [b.heading()]
    for _ in range(rng.randint(1, 4)):
        parts.append(fields(rng, b.words))
        if rng.random() < 0.4:
            parts.append(b.paragraph())
        if rng.random() < 0.3:
            parts += [b.captioned(b.table(*b.size(8, 12))), b.heading()]
    return b.page(
        f'<div style="padding:{rng.randint(20, 80)}px">{"".join(parts)}</div>',
        width,
        rng.choice([1, 1, 1.5]),
        look_of(rng, held_out, rng.uniform(11, 15)),
    )


def alone(rng: random.Random, held_out: bool) -> Page:
    """Make a table by itself, of up to 60 rows and 20 columns, as it is cut out of a document."""
    b = Builder(rng, held_out)
    large = rng.random() < 0.3
    columns, rows = b.size(20, 60) if large else b.size()
    dark = rng.random() < 0.05
    body = b.table(columns, rows, wide=0.2)
    if rng.random() < 0.15:
        body = b.captioned(body)
    look = look_of(rng, held_out, rng.uniform(9, 16))
    if dark:
        look = look.replace("color:#000", "color:#eee").replace(
            "background:#fff", f"background:{styles.colour(rng, 0.12)}"
        )
    around = f"padding:{rng.randint(2, 40)}px {rng.randint(2, 40)}px"
    return b.page(
        f'<div style="{around};display:inline-block">{body}</div>',
        rng.randint(300, 1300),
        rng.choice([1, 1, 1.5, 2]),
        look,
        4.0,
    )


def none(rng: random.Random, held_out: bool) -> Page:
    """Make a page without a table."""
    b, width = Builder(rng, held_out), rng.randint(600, 1000)
    parts = []
    for _ in range(rng.randint(2, 6)):
        parts.append(rng.choice([b.paragraph, b.heading, b.other, b.other, b.other])())
    if rng.random() < 0.15:
        parts = [text_of(b.words.some(1, 3))]  # almost empty
    return b.page(
        f'<div style="padding:{rng.randint(16, 90)}px">{"".join(parts)}</div>',
        width,
        rng.choice([1, 1, 1.5]),
        look_of(rng, held_out, rng.uniform(11, 17)),
    )
