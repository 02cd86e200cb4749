"""This module makes the CSS of tables from a seed, and says which borders an eye sees."""

import colorsys
import random
from typing import NamedTuple

from training.typeset.marks import Drawn

BORDERS = ["none", "none", "horizontal", "horizontal", "booktabs", "booktabs", "booktabs", "grid", "grid", "grid"]
BORDERS += ["vertical", "headrule", "zebra", "zebra", "tiles", "ends", "lines"]
HELD_OUT_BORDERS = ["frame", "dotted", "double", "inner"]  # that training never shows
FONTS = """DejaVu Sans;DejaVu Serif;Liberation Sans;Liberation Sans;Liberation Serif;Liberation Serif;Liberation Mono
Liberation Sans Narrow;Noto Sans;Noto Sans;Noto Serif;Noto Sans Mono;Open Sans;FreeSans;FreeSerif;Roboto;Roboto
Roboto Condensed;EB Garamond;TeX Gyre Heros;TeX Gyre Termes;TeX Gyre Bonum;TeX Gyre Schola;TeX Gyre Adventor
Inconsolata;CMU Serif;CMU Sans Serif;Cantarell;Arimo;Tinos;Nimbus Sans;Nimbus Sans Narrow;C059;URW Bookman;Fira Code
GFS Didot;Gentium;Charis SIL;Andika;Junicode;Karla;Courier Prime;Old Standard TT;Vollkorn"""
HELD_OUT_FONTS = """Carlito;Lato;Caladea;Linux Libertine O;Linux Biolinum O;TeX Gyre Pagella;P052;PT Sans;PT Serif
JetBrains Mono"""


class Style(NamedTuple):
    """The CSS of a table, the borders that are seen, and if its texts may take two lines."""

    css: str
    drawn: Drawn
    folds: bool


def names(held_out: bool) -> list[str]:
    """Return the families of fonts, often seen ones twice."""
    return [*(HELD_OUT_FONTS if held_out else FONTS).replace("\n", ";").split(";")]


def font(rng: random.Random, held_out: bool) -> str:
    return rng.choice(names(held_out))


def colour(rng: random.Random, light: float, strong: float = 0.5) -> str:
    """Choose a colour of this lightness, grey in four of ten cases."""
    r, g, b = colorsys.hls_to_rgb(rng.random(), light, strong if rng.random() < 0.6 else 0.0)
    return f"#{round(r * 255):02x}{round(g * 255):02x}{round(b * 255):02x}"


def style(rng: random.Random, name: str, heads: int, held_out: bool, border: str | None = None) -> Style:
    """Choose the look of a table whose element is `#name`."""
    own = rng.choice(HELD_OUT_BORDERS if held_out and rng.random() < 0.5 else BORDERS)
    border = border or own
    t, rules = f"#{name}", []
    line = f"{rng.choice([1, 1, 1, 1, 2])}px solid {colour(rng, rng.choice([0, 0, 0.3, 0.6, 0.75, 0.85]))}"
    strong = f"{rng.choice([1, 1, 2, 2, 3])}px solid {colour(rng, rng.choice([0, 0, 0.2, 0.4]))}"
    pad_y = rng.choice([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.9])
    pad_x = rng.choice([0.15, 0.3, 0.4, 0.5, 0.7, 1.0, 1.6])
    collapse = border != "tiles"
    across = border in ("horizontal", "grid", "dotted", "tiles", "inner", "lines")
    along = border in ("grid", "vertical", "tiles", "inner")
    around = [along and border != "inner", across and border != "inner"] * 2  # left, top, right, bottom
    rules.append(
        f"{t}{{border-collapse:{'collapse' if collapse else 'separate'};border-spacing:{rng.randint(1, 4)}px}}"
    )
    rules.append(f"{t} td,{t} th{{padding:{pad_y}em {pad_x}em;text-align:left;font-weight:normal}}")
    rules.append(f"{t} td,{t} th{{vertical-align:{rng.choice(['top', 'middle', 'middle', 'baseline', 'bottom'])}}}")
    sides: dict[str, bool] = dict(zip(("left", "top", "right", "bottom"), around, strict=True))
    under = f"{t} thead tr:last-child th,{t} thead th.deep"
    if border in ("horizontal", "lines"):
        rules.append(f"{t} td,{t} th{{border-bottom:{line}}}")
        sides |= {"bottom": True, "top": rng.random() < 0.5, "left": True, "right": True}
        if border == "lines":  # of another colour than the header's
            rules.append(f"{under}{{border-bottom:{strong}}}")
        if sides["top"]:
            rules.append(f"{t}{{border-top:{strong}}}")
        if rng.random() < 0.3:
            sides["bottom"] = False
            rules.append(f"{t} tr:last-child td{{border-bottom:none}}")
    elif border == "dotted":
        kind = rng.choice(["dotted", "dashed"])
        rules.append(f"{t} td,{t} th{{border-bottom:1px {kind} {colour(rng, rng.choice([0, 0.3, 0.6]))}}}")
        sides |= {"top": False, "left": True, "right": True}
    elif border in ("booktabs", "double", "ends"):
        kind = (
            strong.replace("solid", "double").replace("1px", "3px").replace("2px", "3px")
            if border == "double"
            else strong
        )
        rules.append(f"{t}{{border-top:{kind};border-bottom:{kind}}}")
        if border != "ends":
            rules.append(f"{under}{{border-bottom:{line}}}")
        if rng.random() < 0.6:
            rules.append(f"{t} thead th.wide{{border-bottom:{line}}}")
        sides = dict.fromkeys(sides, True)
    elif border == "grid":
        rules.append(f"{t} td,{t} th{{border:{line}}}")
        sides = dict.fromkeys(sides, True)
        if rng.random() < 0.3:
            rules.append(f"{t}{{border:{strong}}}")
    elif border == "inner":
        rules.append(f"{t} td,{t} th{{border:{line}}}{t}{{border-style:hidden}}")
    elif border == "vertical":
        outer = rng.random() < 0.5
        rules.append(f"{t} td+td,{t} th+th,{t} td.in,{t} th.in{{border-left:{line}}}")
        if outer:
            rules.append(f"{t}{{border:{line}}}")
        sides = dict.fromkeys(sides, outer)
        rules.append(f"{under}{{border-bottom:{line}}}")
    elif border == "tiles":
        rules.append(f"{t} td,{t} th{{background:{colour(rng, rng.uniform(0.85, 0.96))}}}")
        sides = dict.fromkeys(sides, True)
    elif border == "headrule":
        rules.append(f"{under}{{border-bottom:{strong}}}")
        if heads:
            sides |= {"left": True, "right": True}
    elif border == "frame":
        rules.append(f"{t}{{border:{strong}}}{under}{{border-bottom:{line}}}")
        sides = dict.fromkeys(sides, True)
    zebra = border == "zebra" or rng.random() < 0.1
    if zebra:
        parity = rng.choice(["odd", "even"])
        rules.append(f"{t} tbody tr:nth-child({parity}) td{{background:{colour(rng, rng.uniform(0.86, 0.97))}}}")
        sides |= {"left": True, "right": True}
    edge = border in ("booktabs", "headrule", "frame", "double", "vertical", "lines")
    if heads:
        filled, looks = _header(rng, t, sides, edge)
        rules += looks
        edge = edge or filled
    if rng.random() < 0.25:
        looks = ["font-weight:bold", "font-style:italic", f"background:{colour(rng, 0.93)}"]
        rules.append(f"{t} td:first-child{{{rng.choice(looks)}}}")
    group = [
        "font-weight:bold",
        "font-style:italic",
        f"background:{colour(rng, 0.9)};font-weight:bold",
        f"color:{colour(rng, 0.3)}",
    ]
    rules.append(f"{t} td.group{{{rng.choice(group)}}}")
    total = ["font-weight:bold", f"border-top:{line};font-weight:bold", f"border-top:3px double {colour(rng, 0.1)}"]
    rules.append(f"{t} td.total{{{rng.choice(total)}}}")
    drawn = Drawn(along, across, (sides["left"], sides["top"], sides["right"], sides["bottom"]), edge)
    return Style("\n".join(rules), drawn, across or zebra or pad_y >= 0.3)


def _header(rng: random.Random, t: str, sides: dict[str, bool], edge: bool) -> tuple[bool, list[str]]:
    """Return if a header is filled, and the CSS that sets it apart from rows: fills, bold or slanted letters."""
    rules: list[str] = []
    filled = rng.random() < 0.4
    if filled:
        dark = rng.random() < 0.45
        ground = colour(rng, rng.uniform(0.15, 0.45) if dark else rng.uniform(0.75, 0.93), 0.6)
        rules.append(f"{t} th{{background:{ground};color:{'#fff' if dark else '#111'}}}")
        sides |= {"left": True, "right": True, "top": True}
    looks = [
        "font-weight:bold",
        "font-weight:bold",
        "font-weight:bold",
        "font-style:italic",
        f"color:{colour(rng, 0.45)}",
    ]
    if not (filled or edge) or rng.random() < 0.5:
        rules.append(f"{t} th{{{rng.choice(looks[: None if filled or edge else 4])}}}")
    if rng.random() < 0.3:
        rules.append(f"{t} th{{text-align:center}}")
    return filled, rules
