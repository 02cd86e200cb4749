"""Characters that look alike to a reader, told apart by what stands beside them or elsewhere in the table.

Nothing is looked up: a text changes only where its own characters, or those of other texts of the table, leave one way
to read it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

NEARLY = 0.7  # of a table's negative numbers
NEGATIVE = re.compile(r"[-–−][0-9.,]+%?$")
# A number with an "O" in it or at its end, but not "H2O", and "l" or "I" at its beginning.
NOUGHT = re.compile(r"(?<![^\W_])[0-9][0-9.,Oo]*[Oo](?=[0-9.,%)]|\b)")
ONE = re.compile(r"(?<![^\s($€£–-])[lI](?=[0-9]+([.,][0-9]+)*%?(\)|\s|$|[(/±–-][0-9.,]*[0-9]))")
FIVE = re.compile(r"(?<=[0-9])S(?=[0-9.,]*%)|(?<![^\W_])S(?=[0-9][0-9.,]*%)")  # of a share, with another figure
# Roman numbers: "I/ll", "grade Il", but not "Ill" and "Il", which are words.
ROMAN = re.compile(r"(?<![\w'’.-])l[Il]{1,2}(?![\w'’])")
GRADE = re.compile(r"(?<![^\W_])((?:[Gg]rade|[Ss]tage|[Cc]lass|[Tt]ype|[Pp]hase|I{1,3})[ /–-])([Il]{2,3})(?![\w'’])")
INITIAL = re.compile(r"(?<![\w'’.-])l(?=n[a-z]{3}|[dt][ae][a-z]|mp[a-z]{2})")  # "lnterval", not "lmer"
# A name with an "l" or "I" at its end, which is "1" if another is the same but for a figure there: "blockl", "block2".
NAME = re.compile(r"\b([A-Za-z]{3,})([lI0-9])(?![^\W_])")
# "marker15S"; no formula has two small letters: "C10H16O".
NUMBERED = re.compile(r"(?<![^\W_])(\w*?[a-z]{2})(?=[OSlI]*[0-9])([0-9OSlI]{2,})(?![^\W_])")
FIGURES = str.maketrans("OSlI", "0511")
# Of GenBank, of one letter and five figures or two and six; "ABO46533" is one of three letters, if others are.
ACCESSION = re.compile(r"(?<![^\W_])([A-Z]{1,2})O([0-9]{4,5})(?![^\W_])")
OTHERS = re.compile(r"(?<![^\W_])([A-NP-Z]{1,3})([0-9]{5,6})(?![^\W_])")
STAGE = re.compile(r"(?<![^\W_])([NMR])([O1-4])(?![^\W_])")  # of a tumour: "NO" for "N0"
# The ends of a strand: 5′-ACGT-3′, and the heading "Sequence (5′ to 3′)".
PRIMES = "′'’"
_SIGN, _BASES = f"[{PRIMES}*†]", "[ACGTURYSWKMBDHVN]"
STRANDS = (
    re.compile(rf"(?<![^\W_])([35])({_SIGN})(?=[-–][({_BASES[1:-1]}]{{4}})"),
    re.compile(rf"(?<={_BASES}{{4}}[-–])([35])({_SIGN})(?!\w)"),
)
DIRECTION = re.compile(rf"(?<![\w.])([35])({_SIGN})( to | ?[-–] ?)(?!\1)([35])({_SIGN})")


def agreed(texts: Sequence[str]) -> list[str]:
    """The texts of a table's lines, with figures and letters told apart, one sign of primes, and one of minus."""
    return _with_one_sign(_with_one_prime(_numbered([_alone(text) for text in texts])))


def _alone(text: str) -> str:
    """A text with what it settles itself."""
    text = FIVE.sub("5", NOUGHT.sub(lambda found: re.sub("[Oo]", "0", found[0]), text))
    text = ROMAN.sub(lambda found: "I" * len(found[0]), ONE.sub("1", text))
    return INITIAL.sub("I", GRADE.sub(lambda found: found[1] + "I" * len(found[2]), text))


def _numbered(texts: Sequence[str]) -> list[str]:
    """The texts with figures for letters in the numbers of names, of which a table has others that end in figures."""
    known = {name for text in texts for name, end in NAME.findall(text) if end.isdigit()}
    longer = {name for text in texts for name, end in NUMBERED.findall(text) if end.isdigit()}
    stages = {letter for text in texts for letter, end in STAGE.findall(text) if end == "1"}  # beside N2, NO is a gas
    forms = Counter((len(of[1]), len(of[2])) for text in texts for of in OTHERS.finditer(text))

    def accession(of: re.Match[str]) -> str:
        letters, figures = map(len, of.groups())
        usual = figures == letters + 3 and forms[1, 5] + forms[2, 6] > forms[letters + 1, figures]
        return f"{of[1]}0{of[2]}" if usual else of[0]

    out = []
    for text in texts:
        text = NAME.sub(lambda of: f"{of[1]}1" if of[1] in known and of[2] in "lI" else of[0], text)
        text = NUMBERED.sub(lambda of: of[1] + of[2].translate(FIGURES) if of[1] in longer else of[0], text)
        text = ACCESSION.sub(accession, text)
        out.append(STAGE.sub(lambda of: f"{of[1]}0" if of[1] in stages and of[2] == "O" else of[0], text))
    return out


def _with_one_prime(texts: Sequence[str]) -> list[str]:
    """The texts with one sign at the ends of strands: the prime, or the apostrophe that most of them have."""
    found = [of for text in texts for strand in (*STRANDS, DIRECTION) for of in strand.finditer(text)]
    signs = Counter(sign for of in found for sign in of.groups() if sign in PRIMES)
    sign = max(PRIMES, key=lambda sign: signs[sign])  # the first of equal ones
    for strand in STRANDS:
        texts = [strand.sub(rf"\g<1>{sign}", text) for text in texts]
    return [DIRECTION.sub(rf"\g<1>{sign}\3\4{sign}", text) for text in texts]


def _with_one_sign(texts: Sequence[str]) -> list[str]:
    """The texts with the sign that nearly all negative numbers of a table begin with before all of them."""
    signs = Counter(text[0] for text in texts if NEGATIVE.match(text))
    sign, count = signs.most_common(1)[0] if signs else ("", 0)
    if count < NEARLY * signs.total():
        return list(texts)
    return [sign + text[1:] if NEGATIVE.match(text) else text for text in texts]
