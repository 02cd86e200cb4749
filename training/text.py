"""Strings as they stand in tables: words, numbers, money, dates, codes, with Latin letters of many languages."""

import functools
import random
import re
import string
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ACCENTED = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿŒœŠšŽžČčĆćŁłŃńŚśŻżĄąĘęĚěŘřŮůŐőŰűĞğİıŞş"
PUNCTUATION = ".,:;!?'\"()[]/\\-–+*=<>%$€£#&@_|{}^~°±×§©®™µ½²³’“”…•"
# Added later, so that what was trained before keeps its numbers.
ADDED = "−—‰†‡≤≥≈¥¢«»¿¡·→∞αβγδλσχΔΩĂăȘșȚțŤťĎďŇňĽľĀāĒēĪīŪūĶķĻļŅņĢģĖėĮįŲųĐđ"
FIRST = " " + string.ascii_letters + string.digits + PUNCTUATION + ACCENTED + ADDED
SCIENTIFIC = "εηθκπρτφωΓΣΦ′″↑↓←✓✗●○■▲"  # Greek letters, primes, arrows, ticks and the marks of groups
CHARACTERS = FIRST + SCIENTIFIC

RAISED, LOWERED, END = "\x01", "\x02", "\x03"  # around a part of a text that is set smaller, above or below

WORDS = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split()
_SYLLABLES = {  # how the words of a language sound, loosely: what to begin with, the middles, what to end with
    "plain": (
        "b c d f g h j k l m n p qu r s t v w x y z st tr pl gr sch ch th",
        "a e i o u ai ea ou",
        "n r s t l ck ng",
    ),
    "french": ("b ç d f g j l m n p r s t v ch qu", "a é è ê e i î o ô u ù œ â ë ï", "r s t x l n"),
    "german": ("b d f g h k l m n r s t w z sch st", "a ä e i o ö u ü ei au", "n r ß t ch l st"),
    "iberian": ("b c d f g l m n ñ p r s t v", "a á ã â e é ê i í o ó õ ô u ú", "s r n l z"),
    "nordic": ("b d f g h k l m n r s t v þ ð sk", "a å á e i í o ø ö u y ý æ ä", "n r t g k nd"),
    "slavic": ("b c č ć d g h k l ł m n ń p r ř s š ś t v w z ž ż", "a ą e ę ě i o ó u ů y á í ý", "k n c š ł ń ć v"),
    "baltic": ("b d g ģ k ķ l ļ m n ņ p r s š t v z ž dz", "a ā e ē ė i ī į o u ū ų ie", "s š m n t is us"),
    "romanian": ("b c d ď đ f g ľ l m n ň p r s ș t ț ť v z ch", "a ă â e i î o u ea ia", "n r t ț ș l"),
    "turkic": ("b c ç d g ğ k l m n r s ş t y", "a e ı i o ö u ü ő ű", "n r k l ş m"),
}
_MONTHS = "January February March April May June July August September October November December"
_NAMES = "Anna Ben Carla David Eva Felix Gina Hugo Ines Jan Karl Lea Max Nora Otto Paul Rosa Sven Tom Uwe Vera Yann Zoe"
_UNITS = "kg g mg m cm mm µm km m² cm³ m³ ha l ml s ms h kWh MW V A °C K % Hz GB MB € $ n"


@functools.cache
def _split(names: str) -> list[str]:
    return names.split()


def _pick(rng: random.Random, names: str) -> str:
    return rng.choice(_split(names))


def word(rng: random.Random) -> str:
    k = rng.random()
    if k < 0.5:
        w = rng.choice(WORDS)
    elif k < 0.93:
        heads, hearts, tails = _SYLLABLES["plain" if k < 0.79 else rng.choice(list(_SYLLABLES))]
        w = "".join(_pick(rng, heads) + _pick(rng, hearts) for _ in range(rng.randint(1, 3)))
        w += _pick(rng, tails) if rng.random() < 0.6 else ""
    else:  # letters in no order, so that reading does not lean on spelling
        w = "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(1, 7)))
    k = rng.random()
    return w.capitalize() if k < 0.38 else w.upper() if k < 0.48 else w


_FORMS = ((0.06, "-{}"), (0.11, "−{}"), (0.15, "({})"), (0.17, "+{}"), (0.18, "< {}"), (0.19, "≤{}"), (0.21, "{}*"))


def number(rng: random.Random) -> str:
    v = rng.randrange(10 ** rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 6, 7]))
    if rng.random() < 0.15:  # 49000, 11169: each of several like digits has to be read
        v = int("".join(rng.choices(rng.sample(string.digits, 2), k=rng.randint(2, 9))))
    k = rng.random()
    if k < 0.3:
        s = str(v)
    elif k < 0.55:
        s = f"{v:,}"
    elif k < 0.85:
        s = f"{v / 10 ** rng.choice([1, 2, 2, 3]):,.{rng.choice([1, 2, 2, 3])}f}"
    else:
        s = f"{v / 100:,.2f}".translate(str.maketrans(",.", rng.choice([".,", " ,", "’."])))
    k = rng.random()
    for chance, form in _FORMS:
        if k < chance:
            return form.format(s)
    return s


def money(rng: random.Random) -> str:
    forms = ["${}", "€{}", "£{}", "$ {}", "{} €", "{} $", "USD {}", "{} EUR", "{} k€", "${}M", "¥{}", "{}‰", "{}¢"]
    return rng.choice(forms).format(number(rng))


def percent(rng: random.Random) -> str:
    return f"{rng.uniform(-20, 100):.{rng.choice([0, 1, 1, 2])}f}" + rng.choice(["%", "%", " %"])


def date(rng: random.Random) -> str:
    y, m, d, name = rng.randint(1950, 2035), rng.randint(1, 12), rng.randint(1, 28), _pick(rng, _MONTHS)
    forms = [f"{y}-{m:02}-{d:02}", f"{d:02}.{m:02}.{y}", f"{m}/{d}/{y}", f"{d:02}/{m:02}/{y % 100:02}"]
    forms += [f"{d} {name[:3]} {y}", f"{name} {d}, {y}", f"{y}", f"{y}", f"Q{1 + m // 4} {y}", f"FY{y % 100:02}"]
    forms += [f"{name[:3]}-{y % 100:02}", name, f"{d % 24:02}:{m + 10:02}", f"{y}/{(y + 1) % 100:02}"]
    return rng.choice([*forms, f"{y}–{y + rng.randint(1, 9)}", f"{d} {name.lower()}"])


def code(rng: random.Random) -> str:
    if rng.random() < 0.3:
        a, b, c = (rng.randrange(10 ** rng.randint(1, 5)) for _ in "abc")
        forms = [f"{a}({b % 100}):{b}–{c}", f"{a}, {b}–{c} ({rng.randint(1900, 2030)})", f"10.{a}/{b}.{c}", f"[{a}]"]
        forms += [f"{word(rng)}@{word(rng)}.com", f"www.{word(rng)}.org", f"#{b}", f"{word(rng)}_{word(rng)}"]
        return rng.choice(forms)
    letters = string.ascii_uppercase + string.digits + rng.choice(["-", "-/", "", ".", string.ascii_lowercase])
    return "".join(rng.choice(letters) for _ in range(rng.randint(2, 10)))


def measure(rng: random.Random) -> str:
    a, b = rng.random() * 100, rng.random() * 10
    forms = [f"{a:.1f} ± {b:.1f}", f"{a:.2f} ({b:.2f})", f"p < 0.{rng.choice(['05', '01', '001'])}"]
    forms += [f"{a:.2f}" + "*" * rng.randint(1, 3), f"{a:.1f} {_pick(rng, _UNITS)}", f"[{b:.2f}, {a:.2f}]"]
    forms += [f"{a:.0f} × {b:.0f}", f"{rng.randint(0, 99)}/{rng.randint(1, 99)}", f"n = {a:.0f}", f"{a:.0f}½"]
    return rng.choice([*forms, f"{a:.0f}–{a + b:.0f}", f"{b:.1f}°"])


def words(rng: random.Random, least: int = 1, most: int = 4) -> str:
    if rng.random() < 0.06:
        between = rng.choice([" ", " ", "-", f" {rng.choice(string.ascii_uppercase)}. "])
        return _pick(rng, _NAMES) + between + word(rng).capitalize()
    s = " ".join(word(rng) for _ in range(rng.randint(least, most)))
    k, w = rng.random(), word(rng)
    if k < 0.08:
        around = [
            *(f"{{}}{p}" for p in ":.,;?!…®™"),
            "({})",
            '"{}"',
            "“{}”",
            "«{}»",
            "¿{}?",
            "{} †",
            "[{}]",
            "• {}",
            "{}*",
            f"{{}}’s {w}",
            "{}'s",
        ]
    elif k < 0.15:
        around = [f"{{}}{p}{w}" for p in (", ", "-", " & ", "/", " – ", "—", " → ", " + ", ": ")] + [
            f"{{}} ({w})",
            "§ {}",
        ]
    elif k < 0.23:
        around = [f"{{}} ({_pick(rng, _UNITS)})", f"{{}} {rng.randint(1, 99)}", f"{rng.randint(1, 20)}. {{}}"]
        around += [f"{{}} {number(rng)}", "{}²", f"{{}} = {w}"]
    else:
        return s
    return rng.choice(around).format(s)


def noise(rng: random.Random) -> str:
    """Characters in no order: each has to be known by its shape."""
    return "".join(rng.choice(FIRST) for _ in range(rng.randint(1, 14)))


KINDS = {f.__name__: f for f in (words, number, money, percent, date, code, measure)}


def line(rng: random.Random, most: int = 40) -> str:
    """A cell's text or a part of a sentence, of 1 to `most` characters."""
    k = rng.random()
    if k < 0.5:
        s = words(rng, 1, rng.choice([1, 2, 3, 5, 7]))
    elif k < 0.97:
        s = KINDS[rng.choice(["number", "number", "money", "percent", "date", "code", "measure"])](rng)
    else:
        s = noise(rng)
    return s[:most].strip() or "0"


def distance(a: str, b: str) -> int:
    """Levenshtein's."""
    before = list(range(len(b) + 1))
    for i, c in enumerate(a, 1):
        now = [i]
        for j, d in enumerate(b, 1):
            now.append(min(before[j] + 1, now[-1] + 1, before[j - 1] + (c != d)))
        before = now
    return before[-1]


# Characters of a kind, whose errors are counted by themselves.
COUNTED = {
    "digits": "23456789",
    "0 O o": "0Oo",
    "1 l I |": "1lI|",
    ". ,": ".,",
    "; : '": ";:'\"",
    "dashes": "-–−",
    "* † signs above": "*†‡°²³¹",
    "currencies": "$€£¥¢",
    "% ± × < = >": "%±×<=>≤≥~",
    "brackets": "()[]{}",
    "accents": "".join(c for c in ACCENTED if c.isalpha()),
    "spaces": " ",
}
_ALIKE = str.maketrans("−–—‐‑‘’“”μ∗²³¹", "-----''\"\"µ*231") | str.maketrans({"…": "...", "\xa0": " ", "\xad": "-"})


def folded(text: str) -> str:
    """A text in which characters that look alike in most fonts are the same, and leaders have three dots."""
    return re.sub(r"(?:\. ?){3,}", "... ", " ".join(text.translate(_ALIKE).split())).strip()


def aligned(found: str, wanted: str) -> list[tuple[str, str]]:
    """The steps of the shortest edit: (found, wanted) characters, "" for one that is missing."""
    table = np.zeros((len(found) + 1, len(wanted) + 1), np.int64)
    table[:, 0], table[0] = range(len(found) + 1), range(len(wanted) + 1)
    for i, a in enumerate(found, 1):
        for j, b in enumerate(wanted, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b))
    i, j, steps = len(found), len(wanted), list[tuple[str, str]]()
    while i or j:
        if i and j and table[i, j] == table[i - 1, j - 1] + (found[i - 1] != wanted[j - 1]):
            i, j = i - 1, j - 1
            steps.append((found[i], wanted[j]))
        elif i and table[i, j] == table[i - 1, j] + 1:
            i -= 1
            steps.append((found[i], ""))
        else:
            j -= 1
            steps.append(("", wanted[j]))
    return steps[::-1]


def by_kind(found: list[str], wanted: list[str]) -> dict[str, list[Any]]:
    """For each kind: how many characters are wanted, the part misread, how many are too many, what is read for what."""
    steps = Counter(step for pair in zip(found, wanted, strict=True) for step in aligned(*pair))
    out: dict[str, list[Any]] = {}
    for kind, characters in {**COUNTED, "letters": string.ascii_letters}.items():
        of = {step: n for step, n in steps.items() if step[1] and step[1] in characters}
        wrong = Counter({f"{b}>{a}": n for (a, b), n in of.items() if a != b})
        more = sum(n for (a, b), n in steps.items() if a and a in characters and b not in characters)
        if count := sum(of.values()):
            out[kind] = [count, round(sum(wrong.values()) / count, 4), more, dict(wrong.most_common(4))]
    return out


def score(found: list[str], wanted: list[str]) -> dict[str, float]:
    errors = sum(distance(f, w) for f, w in zip(found, wanted, strict=True))
    exact = sum(f == w for f, w in zip(found, wanted, strict=True))
    return {"character_error": errors / sum(map(len, wanted)), "exact_lines": exact / len(wanted), "lines": len(wanted)}
