"""This module draws words and phrases as real tables have them, from the word lists of Debian packages.

Packages: wamerican wngerman wfrench wspanish witalian wportuguese wswedish wdanish wdutch hunspell-en-med.  Nothing of
them is in the project; held-out examples do without them.
"""

import functools
import random
import string
from pathlib import Path

from training import text
from training.text import END, LOWERED, RAISED
from zoo.errors import InputError

MARKS = RAISED + LOWERED + END
LISTS = {
    "english": "/usr/share/dict/american-english",
    "medical": "/usr/share/hunspell/en_med_glut.dic",
    "german": "/usr/share/dict/ngerman",
    "french": "/usr/share/dict/french",
    "spanish": "/usr/share/dict/spanish",
    "italian": "/usr/share/dict/italian",
    "portuguese": "/usr/share/dict/portuguese",
    "swedish": "/usr/share/dict/swedish",
    "danish": "/usr/share/dict/danish",
    "dutch": "/usr/share/dict/dutch",
}
SMALL = "of and in the for with to by per from on at or no not vs."
UNITS = """mg/dL mmol/L µmol/L ng/mL mg/kg kg/m2 kg/m² mm Hg ml/min g/L U/L IU/mL mEq/L pg/ml cm2 cm³ kcal/day days
weeks months years yrs min h sec s Hz kHz MHz nm µm mm cm km ha t/ha °C K kPa MPa GPa eV keV kV mA mW kWh USD EUR % n
N no. mL dB bp kb kDa rpm ppm ppb mol M mM µM nM EUR/MWh 000s m bn $m €m £m"""
HEADS = """Mean SD SE SEM Median IQR Range 95%_CI 95_%_CI OR HR RR p P p-value P_value p_value P-value n N n_(%)
No._(%) No. Total Overall Age Sex Male Female Group Control Cases Variable Variables Parameter Characteristic
Characteristics Estimate Coefficient Std._error t F df R2 R² β B χ2 AUC Sensitivity Specificity PPV NPV Yes No Type
Reference Ref. Year Study Author Score Model Method Dataset Accuracy Precision Recall F1 BLEU mAP Top-1 Size Params
Time Speed Name Code Date Amount Balance Qty Price Unit_price Subtotal Tax Description Item Notes Note Revenue
Net_income Assets Equity EBITDA Q1 Q2 Q3 Q4 YTD FY Change Share Rank Country Region Population Source et_al. Fig.
Table NA N/A NS n.s. n/a ND - – + ++ +++ — ± Min Max Avg. Average Std._dev. Variance Sum Δ α λ σ µ H0 Yes/No Low
Medium High None Unknown Other Missing"""


def _pick(rng: random.Random, choices: str) -> str:
    return rng.choice(choices.split())


@functools.cache
def listed(name: str) -> list[str]:
    """Return the words of a list that the reader has the characters for; InputError if it is not installed."""
    path = Path(LISTS[name])
    if not path.exists():
        raise InputError(f"{path} is missing; apt-get install the packages that training/phrases.py names")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    words = (line.partition("/")[0].strip() for line in lines)
    known = set(text.CHARACTERS) - {" "}
    return [w for w in words if 1 < len(w) < 22 and known.issuperset(w) and not w.endswith("'s")]


def word(rng: random.Random, language: str = "") -> str:
    k = rng.random()
    if language:
        return rng.choice(listed(language)) if k < 0.8 else text.word(rng)
    if k < 0.42:
        return rng.choice(text.WORDS)
    if k < 0.68:
        return rng.choice(listed("english"))
    if k < 0.88:
        return rng.choice(listed("medical"))
    return text.word(rng)


def phrase(rng: random.Random) -> str:
    """Return some words of one language, as they stand in a cell."""
    language = rng.choice([*LISTS][2:]) if rng.random() < 0.16 else ""
    words = [word(rng, language) for _ in range(rng.choice([1, 1, 1, 2, 2, 2, 3, 3, 4, 5]))]
    if not language and len(words) > 2 and rng.random() < 0.5:
        words[rng.randrange(1, len(words) - 1)] = _pick(rng, SMALL)
    k = rng.random()
    if k < 0.55:
        words[0] = words[0][:1].upper() + words[0][1:]
    elif k < 0.67:
        words = [w[:1].upper() + w[1:] for w in words]
    elif k < 0.71:
        words = [w.upper() if len(w.upper()) == len(w) else w for w in words]
    return rng.choice(["-", "/", "-"]).join(words[:2]) if rng.random() < 0.05 else " ".join(words)


def _decimal(rng: random.Random, digits: int | None = None) -> str:
    """Return a number such as statistics have."""
    digits = rng.choice([0, 1, 1, 2, 2, 2, 3, 3]) if digits is None else digits
    return f"{rng.random() * 10 ** rng.choice([0, 0, 1, 1, 2, 2, 3]):.{digits}f}"


def statistic(rng: random.Random) -> str:
    """Return a cell of a table of results."""
    d = rng.choice([0, 1, 1, 2, 2, 3])
    a, b, c = (_decimal(rng, d) for _ in "abc")
    n, m = rng.randrange(10 ** rng.randint(1, 4)), rng.randrange(10 ** rng.randint(1, 3))
    minus, to = rng.choice("-−–"), rng.choice(["–", "–", "-", " – ", " to ", ", ", "; "])
    forms = [a] * 5 + [f"{minus}{a}"] * 2
    forms += [f"{a}{to}{b}", f"{a} ({b}{to}{c})", f"({b}{to}{c})", f"[{b}{to}{c}]", f"{a} ± {b}", f"{a}±{b}"]
    forms += [f"{n} ({a})", f"{n} ({a}%)", f"{n} ({a} %)", f"{n}/{m}", f"{n}/{m} ({a}%)", f"{a}%", f"{n}", f"{n:,}"]
    forms += [f"< 0.{rng.choice(['05', '01', '001', '0001'])}", f"<0.{rng.choice(['05', '01', '001', '0001'])}"]
    forms += [f"p = {a}", f"P < 0.0{rng.randint(1, 9)}", f"{a}{'*' * rng.randint(1, 3)}", f"{minus}{a}{'*' * 2}"]
    forms += [f"{a} ({minus}{b}{to}{c})", f"({a})", f"{a}{rng.choice('abc†‡')}", f"≥{n}", f"≤{n}", f">{n}", f"<{n}"]
    forms += [f"{a} × 10{minus}{rng.randint(1, 9)}", f"{a}E{minus}0{rng.randint(1, 9)}", f"{n:,}.{m % 100:02}"]
    return rng.choice(forms)


def label(rng: random.Random) -> str:
    """Return a heading or the name of a row: a phrase with what stands around it."""
    k = rng.random()
    if k < 0.2:
        return _pick(rng, HEADS).replace("_", " ")
    name, unit = phrase(rng), _pick(rng, UNITS)
    if k < 0.34:
        return name + rng.choice([" ({})", " ({})", " [{}]", ", {}", " {}"]).format(unit)
    if k < 0.46:
        end = [", n (%)", " (%)", f" (n = {rng.randint(1, 999)})", f" ({rng.randint(1, 99)})", "*", ":", "."]
        end += [f" [{rng.randint(1, 150)}]", f" et al. [{rng.randint(1, 99)}]", f" {rng.randint(1, 40)}", ", SD", "†"]
        return name + rng.choice(end)
    if k < 0.54:
        return rng.choice(
            [
                f"{_code(rng)} {name}",
                f"{name} ({_code(rng)})",
                _code(rng),
                f"{rng.randint(1, 20)}. {name}",
                f"({rng.choice('abcdeivx')}) {name}",
                f"{name}, {phrase(rng)}",
                f"{name} ({phrase(rng)})",
                f"{rng.choice('<>≥≤')}{rng.randint(1, 99)} {_pick(rng, UNITS)}",
                f"{rng.randint(1, 40)}–{rng.randint(41, 99)} {_pick(rng, UNITS)}",
            ]
        )
    return name


def _code(rng: random.Random) -> str:
    """Return a name of a gene, a model, a compound, a variant."""
    letters = "".join(rng.choices(string.ascii_uppercase, k=rng.randint(2, 4)))
    n = rng.randrange(10 ** rng.randint(1, 3))
    forms = [letters, f"{letters}{n}", f"{letters}-{n}", f"{letters}{n}{rng.choice(string.ascii_uppercase)}{n % 10}"]
    forms += [f"rs{rng.randrange(10**6, 10**9)}", f"{letters}-{rng.choice('αβγ')}", f"p{letters}", f"{letters}_{n}"]
    forms += [
        f"{letters}/{letters[::-1]}",
        f"{rng.choice('ABCDEFGHILMPST')}. {rng.choice(text.WORDS)}",
        f"{n}{letters}",
    ]
    return rng.choice(forms)


def _formula(rng: random.Random) -> str:
    """Return a name with parts above or below the line, with its marks: a compound, a variable, a unit."""
    n, minus = str(rng.randint(1, 12)), rng.choice("−−–-")
    k = rng.random()
    if k < 0.3:
        parts = []
        for _ in range(rng.randint(1, 3)):
            atom = _pick(rng, "H C N O S P Na K Ca Cl Mg Al Si Fe Cu Zn Ti F Br OH CH NH SO CO NO PO (OH) (CH) Li Mn")
            parts.append(atom + (f"{LOWERED}{rng.randint(2, 9)}{END}" if rng.random() < 0.7 else ""))
        ion = f"{RAISED}{rng.choice(['+', '2+', '3+', minus, '2' + minus])}{END}" if rng.random() < 0.25 else ""
        return "".join(parts) + ion
    if k < 0.55:
        name = rng.choice([rng.choice(string.ascii_letters), _pick(rng, "log CL SLP pCO SpO AUC HbA VO α β µ σ λ E°")])
        below = [n, "max", "min", "0", "out", "in", "trans", "ss", "i", "j", "t", "e", "a", "ij", "c", "eff", "tot"]
        below += ["0", "1", "2", "3", rng.choice(text.WORDS)[:5], f"{n},{rng.randint(1, 9)}", "ss,ave", "50", "1c"]
        return f"{name}{LOWERED}{rng.choice(below)}{END}"
    if k < 0.72:
        unit, power = (
            _pick(rng, "cm m s L min h kg mol K W g nm d yr ha"),
            rng.choice([minus + "1", "2", "3", minus + "2"]),
        )
        before = rng.choice(["", f"{_decimal(rng)} ", "mg ", "mol ", "µmol ", "W ", "U ", "(g "])
        return f"{before}{unit}{RAISED}{power}{END}{')' if before == '(g ' else ''}"
    if k < 0.84:
        exponent = f"{minus if rng.random() < 0.6 else ''}{rng.randint(1, 12)}"
        return f"{_decimal(rng)} {rng.choice('××·')} 10{RAISED}{exponent}{END}"
    letters = "".join(rng.choices(string.ascii_uppercase, k=rng.randint(2, 4)))
    other = "".join(rng.choices(string.ascii_uppercase, k=rng.randint(2, 4)))
    return f"{letters}{LOWERED}{rng.choice([other, other.lower(), n])}{END}"


def marked(rng: random.Random) -> str:
    """Return a text with parts above or below the line, which are marked as `text.RAISED` says."""
    k = rng.random()
    note = rng.choice(
        ["1", "2", "3", "4", "a", "b", "c", "d", "e", "*", "†", "‡", "+", "-", "1,2", "2,3*", "ab", "st", "§"]
    )
    if k < 0.25:
        return f"{rng.choice([label, statistic, phrase])(rng)}{RAISED}{note}{END}"
    if k < 0.32:
        return f"{RAISED}{note}{END}{rng.choice(['', ' '])}{phrase(rng)}"
    if k < 0.4:
        return f"{word(rng).capitalize()} {word(rng).capitalize()}{RAISED}{note}{END}, {phrase(rng)}"
    made = _formula(rng)
    forms = [made] * 3 + [f"{phrase(rng)} ({made})", f"({made})", f"{made} {phrase(rng)}", f"{made}, {_formula(rng)}"]
    forms += [
        f"{phrase(rng)} {made} {phrase(rng)}",
        f"{made} = {_decimal(rng)}",
        f"{phrase(rng)}, {made}",
        f"{made}/{made}",
    ]
    forms += [
        f"{made}: {phrase(rng)}",
        f"{made} ({_pick(rng, UNITS)})",
        f"{_decimal(rng)} {made}",
        f"+{made}",
        f"[{made}]",
    ]
    return rng.choice(forms)


def reference(rng: random.Random) -> str:
    """Return a part of a reference or of a sentence with figures in it."""

    def n(most: int) -> str:
        digits = string.digits if rng.random() < 0.7 else rng.choice(["01", "12", "048", "17", "05", "3568"])
        return str(int("".join(rng.choices(digits, k=rng.randint(1, most))) or "0") or 10)

    journal = " ".join(word(rng).capitalize()[: rng.randint(3, 9)] for _ in range(rng.randint(1, 3)))
    dash, year = rng.choice("–––-"), rng.randint(1960, 2026)
    forms = [f"{journal} {n(3)}:{n(4)}{dash}{n(4)}", f"{journal} {n(3)}({n(2)}):{n(4)}{dash}{n(4)}"] * 3
    forms += [f"{journal} {n(3)}({n(2)}):{n(6)}", f"{n(3)}, {n(5)}{dash}{n(5)} ({year}).", f"{journal} {n(3)}:{n(7)}"]
    forms += [
        f"doi.org/10.{n(4)}/{word(rng)[:8]}.{n(3)}.{n(5)}.",
        f"org/10.{n(4)}/{rng.choice('scj')}{n(5)}-{n(3)}-{n(4)}",
    ]
    forms += [
        f"{phrase(rng)} [{n(2)}].",
        f"{phrase(rng)} [{n(2)}, {n(2)}]",
        f"{word(rng).capitalize()} et al. ({year})",
    ]
    forms += [
        f"{journal} {n(6)}, {phrase(rng)}",
        f"{phrase(rng)} (Fig. {n(2)}{rng.choice('ABCDabc')}).",
        f"Page {n(2)} of {n(2)}",
    ]
    forms += [f"({word(rng).capitalize()} et al. {year}).", f"{n(2)}. {phrase(rng)}", f"({year}) {journal}", f"{n(7)}"]
    forms += [f"© The Author(s) {year}", f"{word(rng)}@{word(rng)}.{rng.choice(['edu.cn', 'org', 'com', 'fr', 'de'])}"]
    forms += [
        f"{n(3)} °C. {phrase(rng)}",
        f"{phrase(rng)} {n(3)} {_pick(rng, UNITS)}",
        f"{n(6)}–{n(6)}",
        f"pp {n(4)}{dash}{n(4)}",
    ]
    return rng.choice(forms)


def short(rng: random.Random) -> str:
    """Return a brief cell: an answer, letters of groups, a sign, a code of a few capitals."""
    note = rng.choice(["+", "-", "−", "*", "a", "b", "c", "1", "2", "ab", "a,b", "†"])
    capitals = "".join(rng.choices(string.ascii_uppercase, k=rng.randint(1, 5)))
    letters = "".join(sorted(rng.sample("abcdefgh", rng.randint(1, 6))))
    unit = _pick(rng, "µM nM mM mg ml % s h d kg cm")
    a, n = _decimal(rng, rng.choice([1, 2, 2, 3])), rng.randint(0, 99)
    forms = ["no", "yes", "No", "Yes", "NO", "YES", "none", "low", "high", "Total", "n", "N", "x", "X", "+"]
    forms += [letters, letters, letters[0], letters[0].upper(), f"({letters[0]})", f"{letters[0]})", capitals, capitals]
    forms += [f"{rng.choice(['yes', 'no', letters, a, capitals])}{RAISED}{note}{END}"] * 3
    forms += [
        f"{capitals} {capitals[::-1][:2]}",
        f"{capitals}-{n % 10}",
        f"{capitals}–{capitals[:2]}",
        f"{capitals}{n}",
    ]
    forms += [f"{capitals}-{n % 10} ({a} {unit})", f"{capitals} ({a} {unit})", f"{a} {unit}", f">{n} {unit}", f"≤{n}"]
    forms += [
        f"{rng.choice('rRnpPtFzβBχ')}{RAISED}2{END}",
        rng.choice("pPnNrRtFzk"),
        f"{n}",
        f"{n % 10}",
        f"{n:02}:{n % 6}0",
    ]
    forms += [
        _pick(rng, "I II III IV V VI VII VIII IX X XI XII i ii iii iv v vi"),
        _pick(rng, "± + − – — - * † NA NS ND"),
    ]
    forms += [f"{a} ± {_decimal(rng, 3)}{RAISED}{rng.choice('abcd*')}{END}", f"{a}–{_decimal(rng, 3)}", f"{n}~{n + 5}"]
    return rng.choice(forms)


def written(rng: random.Random) -> str:
    """Return a name as programs have it, or a word with a reference in brackets."""
    a, b, c = (rng.choice(text.WORDS).lower() for _ in "abc")
    n, m = rng.randint(0, 12), rng.randint(1, 250)
    forms = [f"{a}_{b}", f"{a}{n}", f"{a}_{b}({c})", f"{a}{n}.{b}_{c}({a[:3]}{n})", f"{a}.{b}", f"{a}_{n}", f"{a}[{n}]"]
    forms += [
        f"{phrase(rng)}[{m}]",
        f"{phrase(rng)}{RAISED}[{m}]{END}",
        f"{phrase(rng)} [{m}]",
        f"{a}{n} and {a}{n + 1}",
    ]
    forms += [f"# {a}", f"#{n}", f"{a}() {b}{n}", f"{a}=({b}, {n})", f"{phrase(rng)}{RAISED}[{m}]{END}", f"{a}-{b}{n}"]
    return rng.choice(forms)


# Templates, with "^", "_" and "|" before a raised part, before a lowered one and after both; "~" is a space.
NOTATIONS = {
    "compound": """{greek}-{w} {greek}-{L}{w} {W}[{ring}]{a} {W}[{ring}]{a} {n}-{a} {W}-{greek} {N}-{W} ({N})-{a}
        {a}~({greek}) {greek}-{a}~{W} {a}-{n},{m}-{w} {n}-{W} {n}′-{a} {a}[{n},{m}-{ring}]{W} {n},{m},{n}-{a}""",
    "stage": """{stage}~{roman} {stage}~{roman}{B} {roman}{B} {roman}/{roman}{B} {roman}–IV {stage}~{small} {roman}{b}
        {stage}~{d}/{d} {stage}~I/II/{roman} {stage}~{B} {d}/{d} T{d}N{d}M0 {roman}.~{W}""",
    "species": """{L}.~{a} {L}.~{a} {W}~{a}~L. {L}.~{a}~{w} {a}~{L} {L}.~{a}~({n}) ({L}.~{a}) {W}~({L}.~{a})
        {L}.{B}.~{W}""",
    "quotation": """“{text}” “{text}” “{text}.” “{text} {text}.” {text}” ’{text}’ {text}’ ,,{text}“ «{text}»
        {text},”~{W} “{text},” "{text}" “{text}”~[{n}] {text}?” {text}.”~[{n}:~{m}] {text}…”""",
    "note": """{value}^{group}| {value}^{group}| {value}^{group}| {value}{group} {value}^{sign}|""",
    "variable": """{greek}_{n}| {L}_{n}| {L}_1|{B}_2| {greek}^2| {greek}~=~{value} {L}_T| {greek}~({unit}) Δ{L}_{B}|
        {greek}_{w}|~({unit}) {L}{L}{L}~({rate}) {W}~({rate})""",
    "mark": """{mark} {mark} {mark} {mark} {mark}{mark} {value}{mark} {mark}~{value} {W}~{mark} {mark}~{W}""",
}
_SHARES = {"compound": 18, "stage": 18, "species": 12, "quotation": 14, "note": 14, "variable": 10, "mark": 7}


def scientific(rng: random.Random) -> str:
    """Return a name as chemistry, biology and medicine write them, a quotation, or a mark of a group or a tick."""
    k = rng.random()
    if k < 0.12:
        bases = "".join(rng.choices("ACGT", k=rng.randint(6, 26)))
        return rng.choice([bases, f"5′-{bases}-3′", f"5'-{bases}-3'", f"5’-{bases}", f"{bases}-3′", bases[:10]])
    if k < 0.24:  # C10H16O, with figures of two places
        gap, atoms = " " if rng.random() < 0.15 else "", rng.choice(["CH", "CHO", "CHN", "CHNO", "CHO", "CHOS"])
        counts = [rng.randint(1, 32) for _ in atoms]
        return gap.join(f"{a}{LOWERED}{n}{END}" if n > 1 else a for a, n in zip(atoms, counts, strict=True))
    (kind,) = rng.choices([*_SHARES], [*_SHARES.values()])
    roman, w = _pick(rng, "I II III IV V VI VII IX X"), word(rng)
    parts = {
        "greek": _pick(rng, "α β γ δ ε η θ κ λ µ π ρ σ τ φ χ ω Γ Δ Σ Φ Ω"),
        "roman": roman,
        "small": roman.lower(),
        "w": w.lower(),
        "W": w,
        "a": rng.choice(listed("medical")),
        "L": rng.choice(string.ascii_uppercase),
        "N": rng.choice("NODLRSZE"),
        "B": rng.choice("ABC"),
        "b": rng.choice("abc"),
        "n": rng.randint(1, 12),
        "m": rng.randint(2, 20),
        "d": rng.randint(0, 5),
        "ring": ",".join(rng.sample("abcdefghijkl", rng.randint(1, 2))),
        "stage": _pick(rng, "Stage Grade Class Type Phase Group Level Arm Cohort NYHA ASA Child-Pugh"),
        "text": phrase(rng),
        "value": statistic(rng) if kind == "note" else _decimal(rng),
        "group": _pick(rng, "a b c d e f ab bc cd bcd abc * **"),
        "sign": _pick(rng, "*** # ## ### § † ‡ a,b ✓ ↑ ↓"),
        "unit": _pick(rng, UNITS),
        "rate": _pick(rng, "U/l g/l mg/l mmol/l µg/l IU/l g/dl ml/min/l l/min U/L g/l/h"),
        "mark": rng.choice("✓✓✗●○■▲↑↓←→×−–—"),
    }
    template = _pick(rng, NOTATIONS[kind]).translate(str.maketrans("~^_|", f" {RAISED}{LOWERED}{END}"))
    return template.format(**parts)


def line(rng: random.Random, most: int = 40) -> str:
    """Return a line of at most `most` characters of a real table's kind, with marks around raised and lowered parts."""
    k = rng.random()
    if k < 0.45:
        made = (scientific if k < 0.16 else marked if k < 0.32 else short if k < 0.41 else written)(rng)
        return made if len(plain(made)) <= most else line(rng, most)
    if k < 0.6:
        s = statistic(rng)
    elif k < 0.78:
        s = label(rng)
    elif k < 0.84:
        s = reference(rng)
    elif k < 0.92:
        s = " ".join(phrase(rng) for _ in range(3))
    else:
        s = text.line(rng, most)
    if len(s) > most:
        begin = rng.choice([0, s.find(" ", rng.randrange(len(s) - most + 1)) + 1])
        s = s[begin : begin + most]
    return s.strip() or "0"


def plain(string_: str) -> str:
    """Return a text without its marks."""
    return "".join(c for c in string_ if c not in MARKS)


def pieces(string_: str) -> list[tuple[str, int]]:
    """Return the parts of a text: (characters, 1 if raised, -1 if lowered, else 0)."""
    out: list[tuple[str, int]] = []
    level = 0
    for c in string_:
        if c in MARKS:
            level = {RAISED: 1, LOWERED: -1, END: 0}[c]
        elif out and out[-1][1] == level:
            out[-1] = out[-1][0] + c, level
        else:
            out.append((c, level))
    return out
