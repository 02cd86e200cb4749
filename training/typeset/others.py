"""This module makes blocks in HTML that are no tables: figures, code, lists, authors, contents, forms, scribbles."""

import html
import random

from training import text
from training.text import END, RAISED
from training.typeset import styles
from training.typeset.content import Words
from training.typeset.tags import div, element, span, tag


def drawing(rng: random.Random, words: Words, kind: str = "figure") -> str:
    """Return a chart, a diagram of boxes, a field of blots or of colours, or a scribble."""
    w, h = rng.randint(240, 620), rng.randint(120, 360)
    makers = [_chart, _chart, _diagram, _blots, _colours]
    parts = _hand(rng, w) if kind == "scribble" else rng.choice(makers)(rng, words, w, h)
    size = f'width="{w}" height="{h}" viewBox="0 0 {w} {h}"'
    svg = f'<svg {size} style="max-width:100%;height:auto">{"".join(parts)}</svg>'
    caption = f"Figure {rng.randint(1, 20)}. {html.escape(words.some(4, 12))}"
    below = div(caption, "font-size:.85em", "say")
    return f"<figure>{svg}{below if rng.random() < 0.7 and kind != 'scribble' else ''}</figure>"


def _hand(rng: random.Random, w: int) -> list[str]:
    ink = styles.colour(rng, 0.4)
    lines = (_scribble(rng, w, 30 + 40 * line) for line in range(rng.randint(1, 5)))
    return [element("path", d=d, fill="none", stroke=ink, stroke_width=2) for d in lines]


def _chart(rng: random.Random, words: Words, w: int, h: int) -> list[str]:
    """Return bars or curves, with grid lines or without."""
    n, out = rng.randint(4, 14), []
    for i in range(rng.choice([0, 4, 5])):
        y = 20 + i * h / 6
        out.append(element("line", x1=40, x2=w, y1=y, y2=y, stroke="#ccc"))
    at, tops = [44 + i * (w - 50) / n for i in range(n)], [rng.uniform(0.05, 0.8) * h for _ in range(n)]
    if rng.random() < 0.5:
        ink, wide = styles.colour(rng, 0.4), (w - 60) / n * 0.7
        out += [
            element("rect", x=x, y=y, width=wide, height=h - 20 - y, fill=ink) for x, y in zip(at, tops, strict=True)
        ]
    else:
        for _ in range(rng.randint(1, 3)):
            points = " ".join(f"{x:.0f},{y + rng.uniform(-30, 30):.0f}" for x, y in zip(at, tops, strict=True))
            ink = styles.colour(rng, 0.4)
            out.append(element("polyline", points=points, fill="none", stroke=ink, stroke_width=2))
    for x in at[::2]:
        out.append(f'<text x="{x:.0f}" y="{h - 4}" font-size="11">{html.escape(text.date(rng)[:5])}</text>')
    out += [f'<text x="2" y="{20 + i * h / 5:.0f}" font-size="11">{(5 - i) * 20}</text>' for i in range(5)]
    return [*out, element("path", d=f"M40 10 V{h - 20} H{w}", fill="none", stroke="#000")]


def _diagram(rng: random.Random, words: Words, w: int, h: int) -> list[str]:
    out = []
    for _ in range(rng.randint(3, 8)):
        x, y = rng.uniform(0, w - 90), rng.uniform(0, h - 40)
        out.append(element("rect", x=x, y=y, width=88, height=34, fill=styles.colour(rng, 0.9), stroke="#333"))
        name = html.escape(words.some(1, 1)[:12])
        out.append(f'<text x="{x + 6:.0f}" y="{y + 20:.0f}" font-size="12">{name}</text>')
        out.append(element("path", d=f"M{x + 44:.0f} {y + 34:.0f} L{rng.uniform(0, w):.0f} {h}", stroke="#333"))
    return out


def _blots(rng: random.Random, words: Words, w: int, h: int) -> list[str]:
    """Return a field of grey and colours, as a photograph has."""
    out = []
    for _ in range(rng.randint(20, 80)):
        fill = styles.colour(rng, rng.random())
        place = {"cx": rng.uniform(0, w), "cy": rng.uniform(0, h), "r": rng.uniform(3, 60)}
        out.append(element("circle", **place, fill=fill, opacity=".6"))
    return out


def _colours(rng: random.Random, words: Words, w: int, h: int) -> list[str]:
    """Return a heat map without a text in it."""
    columns = rng.randint(3, 8)
    at = [(40 + j * 30, 10 + i * 26) for i in range(rng.randint(3, 6)) for j in range(columns)]
    return [
        element("rect", x=x, y=y, width=29, height=25, fill=styles.colour(rng, rng.uniform(0.3, 0.9))) for x, y in at
    ]


def _scribble(rng: random.Random, w: float, y: float) -> str:
    """Return a path that goes up and down as handwriting does."""
    x = rng.uniform(0, 30)
    out = [f"M{x:.0f} {y:.0f}"]
    while x < w - 20:
        for _ in range(rng.randint(3, 14)):
            dx = rng.uniform(3, 9)
            above, end = y - rng.uniform(2, 22), y + rng.uniform(-3, 8)
            out.append(f"Q{x + dx * 1.4:.0f} {above:.0f} {x + dx:.0f} {end:.0f}")
            x += dx
        x += rng.uniform(8, 20)
        out.append(f"M{x:.0f} {y:.0f}")
    return " ".join(out)


def code(rng: random.Random, words: Words, kind: str = "code") -> str:
    """Return a listing, with numbers of lines or without, sometimes lined up in columns."""
    names = [html.escape(words.some(1, 1).lower().split()[0]) for _ in range(12)]
    lines, depth = [], 0
    for _ in range(rng.randint(3, 28)):
        a, b, c = rng.sample(names, 3)
        form = rng.choice(
            [
                f"{a} = {b}({c}, {rng.randint(0, 99)})",
                f"if {a} &lt; {b}[{c}]:",
                f"return {a}.{b}",
                f"for {a} in {b}({c}):",
                f"{a:<12} = {rng.randint(0, 9999):<8} # {b}",
                f"def {a}({b}, {c}=None):",
                "",
                f"import {a}",
                f'print("{b} {c}", {a})',
                f"{a}: {b} -> {c}",
            ]
        )
        lines.append("    " * depth + form)
        depth = min(3, depth + 1) if form.endswith(":") else max(0, depth - (rng.random() < 0.3))
    if rng.random() < 0.4:
        lines = [f"{i + 1:>3}  {line}" for i, line in enumerate(lines)]
    frame = rng.choice(["", f"border:1px solid {styles.colour(rng, 0.7)};", ""]) + rng.choice(
        [f"background:{styles.colour(rng, 0.95)};", "", "background:#222;color:#ddd;"]
    )
    joined = "\n".join(lines)
    family = rng.choice(["DejaVu Sans Mono", "Liberation Mono", "Inconsolata"])
    look = f"font:{rng.uniform(0.75, 0.95):.2f}em/1.3 '{family}';{frame}padding:.6em;overflow:hidden"
    return tag("pre", joined, look)


def items(rng: random.Random, words: Words, kind: str = "list") -> str:
    tag = rng.choice(["ul", "ol", "ul", "dl"])
    if tag == "dl":
        rows = "".join(
            f"<dt><b>{html.escape(words.some(1, 3))}</b></dt><dd>{html.escape(words.some(4, 16))}</dd>"
            for _ in range(rng.randint(2, 7))
        )
        return f'<dl class="say">{rows}</dl>'
    rows = "".join(f"<li>{html.escape(words.some(1, rng.choice([4, 18])))}</li>" for _ in range(rng.randint(2, 10)))
    return f'<{tag} class="say">{rows}</{tag}>'


def people(rng: random.Random, words: Words, kind: str = "people") -> str:
    """Return authors beside each other, with their addresses below: columns that are no table."""
    one = ""
    for _ in range(rng.randint(2, 4)):
        name, place = html.escape(text.words(rng, 2, 2).title()), html.escape(words.some(1, 3))
        address = html.escape(f"{text.word(rng)}@{text.word(rng)}.edu".lower())
        small = span(address, "font-size:.85em")
        one += div(f"{name}<br><i>{place}</i><br>{small}", "flex:1;text-align:center")
    rows = "".join(f'<div style="display:flex;gap:1em;margin:.6em 0">{one}</div>' for _ in range(rng.choice([1, 1, 2])))
    title = f'<div style="text-align:center;font-size:1.6em;margin:.6em">{html.escape(words.some(4, 9))}</div>'
    return title * (rng.random() < 0.5) + rows


def contents(rng: random.Random, words: Words, kind: str = "contents") -> str:
    """Return a table of contents, or references: names, leaders of dots, and pages."""
    if rng.random() < 0.4:
        rows = ""
        for i in range(1, rng.randint(4, 14)):
            said = html.escape(words.sentence().replace(RAISED, "").replace(END, ""))
            rows += div(span(f"[{i}]", "width:2.2em") + span(said, "flex:1"), "display:flex")
        return div(rows, "font-size:.85em")
    rows, dots = "", rng.choice([". ", ".", " "])
    for i in range(rng.randint(4, 20)):
        name = span(f"{i + 1}.{rng.randint(1, 5)} {html.escape(words.some(1, 6))}", "white-space:nowrap")
        leader = span(dots * 150, "flex:1;overflow:hidden;white-space:nowrap;height:1.3em")
        rows += div(name + leader + span(str(rng.randint(1, 400))), "display:flex")
    return div(rows, "margin:1em 0;line-height:1.3")


def form(rng: random.Random, words: Words, kind: str = "form") -> str:
    """Return the fields of a form: lines or boxes to write into, boxes to tick."""
    rows, across = [], rng.choice([1, 2, 2, 3])
    box = rng.choice(
        ["border-bottom:1px solid #444", "border:1px solid #777", f"background:{styles.colour(rng, 0.92)}"]
    )
    for _ in range(rng.randint(2, 8)):
        fields = "".join(_field(rng, words, box) for _ in range(rng.randint(1, across)))
        gap, margin = rng.uniform(0.8, 2.5), rng.uniform(0.3, 1)
        rows.append(div(fields, f"display:flex;gap:{gap:.1f}em;margin:{margin:.1f}em 0"))
    return div("".join(rows), "margin:1em 0")


def _field(rng: random.Random, words: Words, box: str) -> str:
    """Return a name with a box to tick, or with a place to write beside it or below."""
    k, name = rng.random(), html.escape(words.some(1, 2))
    value = html.escape(text.KINDS[rng.choice(list(text.KINDS))](rng)) if rng.random() < 0.4 else "&nbsp;"
    share = f"flex:{rng.randint(1, 3)}"
    if k < 0.2:
        tick = span("", "display:inline-block;width:.9em;height:.9em;border:1px solid #333")
        return span(f"{tick} {name}", "flex:1")
    if k < 0.6:
        return span(span(f"{name}:&nbsp;") + span(value, f"flex:1;{box}"), f"{share};display:flex")
    return span(f"{span(name, 'font-size:.75em')}<br>{span(value, f'display:block;{box};padding:.2em')}", share)
