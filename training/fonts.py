"""Fonts of Debian packages, by family: those to train on, and those held out.

A held-out family has no near relative among the others: Carlito was drawn from Lato and P052 is Pagella, so they stand
together. Packages: fonts-dejavu fonts-liberation fonts-noto-core fonts-crosextra-carlito fonts-crosextra-caladea
fonts-open-sans fonts-linuxlibertine fonts-texgyre fonts-freefont-ttf fonts-lato fonts-roboto-unhinted fonts-ebgaramond
fonts-inconsolata fonts-cantarell fonts-croscore fonts-cmu fonts-firacode fonts-gfs-didot fonts-sil-gentium
fonts-sil-charis fonts-sil-andika fonts-urw-base35 fonts-junicode fonts-jetbrains-mono fonts-paratype fonts-karla
fonts-courier-prime fonts-oldstandard fonts-vollkorn fonts-adf-gillius fonts-adf-universalis fonts-adf-switzera
fonts-adf-verana fonts-adf-accanthis fonts-adf-berenis fonts-adf-tribun fonts-adf-baskervald fonts-stix fonts-fanwood
fonts-junction fonts-cabin fonts-quattrocento.
"""

import functools
import random
import re
from pathlib import Path
from typing import Any

from PIL import ImageFont

from zoo.errors import InputError

ROOT = Path("/usr/share/fonts")
# A family is what its files' names begin with; often seen ones stand twice, so that they are drawn twice as often.
TRAIN = """DejaVuSans DejaVuSans DejaVuSerif DejaVuSansMono DejaVuSansCondensed LiberationSans- LiberationSans-
LiberationSerif- LiberationSerif- LiberationMono LiberationSansNarrow NotoSans- NotoSans- NotoSerif- NotoSansDisplay-
NotoSansMono- OpenSans FreeSans FreeSerif FreeMono Roboto- Roboto- RobotoCondensed EBGaramond12 texgyreheros-
texgyretermes- texgyrebonum texgyreschola texgyrecursor texgyreadventor Inconsolata cmunr cmunb cmuns cmunt cmuni
Cantarell Arimo Tinos Cousine Nimbus NimbusSansNarrow C059 URWBookman URWGothic FiraCode GFSDidot Gentium- Charis Andika
JunicodeTwoBeta- Karla- Courier OldStandard Vollkorn GilliusADF GilliusADF UniversalisADF UniversalisADF SwitzeraADF-
SwitzeraADF- VeranaSans Verana- AccanthisADF BerenisADF TribunADF TribunADF BaskervaldADF STIX- STIXGeneral- Fanwood
Junction Cabin- Quattrocento"""
HELD_OUT = "Carlito Lato Caladea LinLibertine_R LinBiolinum_R texgyrepagella P052 PTS PTF JetBrainsMono"
# Weights and cuts that nobody sets a table in, and variable fonts, which Pillow draws at their default alone.
_LEFT_OUT = re.compile(
    r"Thin|Hairline|ExtraLight|Black|Heavy|ExtraBold|Math|Tamil|Expanded|Retina|\[|RZ|cmunbmo|cmunsi|cmunci"
)


@functools.cache
def families(held_out: bool = False) -> list[list[str]]:
    """The files of each family that is installed, sorted; InputError where there are too few to train on."""
    files = sorted(p for p in ROOT.rglob("*") if p.suffix in (".ttf", ".otf") and not _LEFT_OUT.search(p.name))
    names = (HELD_OUT if held_out else TRAIN).split()
    found = [[str(p) for p in files if p.name.startswith(name)] for name in names]
    found = [family for family in found if family]
    if len(found) < len(names) // 2:
        raise InputError(
            f"{len(found)} of {len(names)} font families lie under {ROOT}; apt-get install the packages that "
            "training/fonts.py names"
        )
    return found


def choose(rng: random.Random, held_out: bool = False) -> str:
    """A font's file, each family as likely as another."""
    return rng.choice(rng.choice(families(held_out)))


@functools.lru_cache(maxsize=600)
def load(path: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


@functools.lru_cache(maxsize=20000)
def width(path: str, size: int, text: str) -> float:
    """The width of the text in pixels; measuring takes half as long as drawing."""
    return load(path, size).getlength(text)


@functools.cache
def _draws(path: str, character: str) -> bool:
    font = load(path, 24)
    drawn: Any = font.getmask(character)
    missing: Any = font.getmask("\U0010fffe")
    return drawn.size != missing.size or bytes(drawn) != bytes(missing)


def draws(path: str, text: str) -> bool:
    """True if the font has each of these characters; it would draw others as empty boxes."""
    return all(_draws(path, c) for c in set(text) if c != " ")
