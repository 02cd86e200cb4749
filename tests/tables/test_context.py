"""Letters and figures, primes and other signs that the texts of a table settle."""

from __future__ import annotations

import pytest

from zoo.apps.tables.context import agreed


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("3S% of 2S.5%", "35% of 25.5%"),
        ("S0.9%", "50.9%"),
        ("None/grade I/ll", "None/grade I/II"),
        ("grade Il", "grade II"),
        ("Type lll", "Type III"),
        ("lnterval (ldentified)", "Interval (Identified)"),
    ],
)
def test_a_text_settles_its_own_letters(text: str, right: str) -> None:
    assert agreed([text]) == [right]
    assert agreed([right]) == [right]


@pytest.mark.parametrize(
    "text",
    [
        *("S%", "10S", "Il y a", "Ill", "I'll", "ISO14001", "AAO12345", "lncRNA", "lhes", "llama", "N2", "NO"),
        *("lmer", "lstm", "lvalue", "lgamma"),
        *("C10H18O", "5*-3", "35* to 3*", "p5'-3", "Fig. 5’", "TO", "2*-3*", "O2", "MgSO4"),
    ],
)
def test_what_has_two_readings_stays(text: str) -> None:
    others = ["C10H16", "N1" if text != "NO" else "M1", "AAN10001", "T1", "Mg50"]
    assert agreed([text, *others])[0] == text


def test_names_have_figures_where_others_of_the_table_have() -> None:
    texts = ["marker155", "marker15S", "markerO4", "Nmarker15S", "cells"]
    assert agreed(texts) == ["marker155", "marker155", "marker04", "Nmarker15S", "cells"]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["AB123456", "ABO46533", "LO8165"], ["AB123456", "AB046533", "L08165"]),
        (["AAN12345", "ABO46533"], ["AAN12345", "ABO46533"]),  # proteins have three letters
        (["N1–3", "NO/N1–3", "RO", "NOT"], ["N1–3", "N0/N1–3", "RO", "NOT"]),
        (["N2", "NO", "O2"], ["N2", "NO", "O2"]),  # gases
    ],
)
def test_codes_are_as_others_of_the_table(texts: list[str], told: list[str]) -> None:
    assert agreed(texts) == told


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["Sequence 5’–3†", "5′-ACGTAC-3†", "5'-ACGTAC"], ["Sequence 5′–3′", "5′-ACGTAC-3′", "5′-ACGTAC"]),
        (["(5* to 3†)", "a*", "†"], ["(5′ to 3′)", "a*", "†"]),
        (["5'-ACGTAC-3'", "5'-ACGTAC-3†"], ["5'-ACGTAC-3'"] * 2),  # printed with apostrophes
    ],
)
def test_the_ends_of_strands_have_one_sign(texts: list[str], told: list[str]) -> None:
    assert agreed(texts) == told
