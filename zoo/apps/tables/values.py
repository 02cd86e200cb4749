"""Numbers and dates from the texts of cells: thousands, percent, money, negative numbers in parentheses.

A text becomes a value only if there is one way to read it, for the whole column; any other text stays a text.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from .boxes import HALF_SHARE
from .grid import Grid

MAX_DIGITS = 15  # digits of a number: as many are exact in a double, and in a spreadsheet
MAX_CHARACTERS = 64  # length of a number as printed, with its signs and spaces
MIN_SURE = 0.6  # probability that all characters of a number are right: with less it is uncertain
CURRENCIES = "$€£¥₹₩₽¢"
MINUS = "-\u2212\u2013"  # hyphen, minus sign, and the dash that many tables print for it
_LETTERS = "lIOoSB|"  # letters that are read for digits
_SPACES = " \u00a0\u202f\u2009"  # between thousands, and before a percent sign
LIKE_NUMBERS = f".,'’()%+{CURRENCIES}{MINUS}{_SPACES}{_LETTERS}"

# In the syntax that Python and JavaScript share but for "(?P<", since the review page reads numbers, too.
NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[{MINUS}+])?\s*(?P<before>[{CURRENCIES}]|[A-Z]{{3}}(?=\s))?\s*(?P<sign2>[{MINUS}+])?"
    rf"(?P<digits>[0-9](?:[0-9.,'’{_SPACES}]*[0-9])?|[.,][0-9]+)\s*(?P<percent>%)?\s*(?P<after>[{CURRENCIES}]|[A-Z]{{3}})?\s*"
    r"(?P<close>\))?"
)
_DATES = (
    (re.compile(r"(?P<y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"), ""),
    (re.compile(r"(?P<d>[0-9]{1,2})\.(?P<m>[0-9]{1,2})\.(?P<y>[0-9]{4})"), ""),
    (re.compile(r"(?P<d>[0-9]{1,2})/(?P<m>[0-9]{1,2})/(?P<y>[0-9]{4})"), "day first"),
    (re.compile(r"(?P<m>[0-9]{1,2})/(?P<d>[0-9]{1,2})/(?P<y>[0-9]{4})"), "month first"),
    (re.compile(r"(?P<d>[0-9]{1,2})\.? (?P<month>[A-Za-z]{3,9})\.? (?P<y>[0-9]{4})"), ""),
    (re.compile(r"(?P<month>[A-Za-z]{3,9})\.? (?P<d>[0-9]{1,2}), (?P<y>[0-9]{4})"), ""),
)
_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905


def is_mostly_figures(text: str) -> bool:
    """Return True if half of the characters are figures, or more, as of a number with its signs and its unit."""
    return sum(map(str.isdigit, text)) >= HALF_SHARE * len(text)


class Number(NamedTuple):
    """A number, and the way it was written."""

    value: int | float  # a fraction for percent: 0.125 for "12.5 %"
    decimals: int = 0  # digits after the decimal mark
    grouped: bool = False  # thousands are separated
    percent: bool = False


Value: TypeAlias = "Number | datetime.date"


def table_values(table: Grid) -> list[list[Value | None]]:
    """R lists of C values, None for a text that stays a text, as every text of the header does.

    Columns are read one by one: the decimal mark is "." or "," if the texts of the column leave no doubt, or else those
    of the table.  If none does, 1,204 is read as in English, and 1.204, which may be either, stays a text.  Dates such
    as 03/04/2024 are read only if another date of the column shows whether the day or the month comes first.  What
    `uncertain_numbers` has stays a text.
    """
    rows, body = table.rows(), slice(table.header_rows, None)
    columns = [[row[c] for row in rows[body]] for c in range(table.shape[1])]
    read = [
        [None] * table.header_rows + column_values(column, mark)
        for column, mark in zip(columns, decimal_marks(table), strict=True)
    ]
    for cell in (table.cells[i] for of in uncertain_numbers(table).values() for i in of):
        for c in range(cell.column, cell.column + cell.column_span):
            read[c][cell.row : cell.row + cell.row_span] = [None] * cell.row_span
    return [list(row) for row in zip(*read, strict=True)] if read else [[] for _ in rows]


def decimal_marks(table: Grid) -> list[str]:
    """The decimal mark of each column, which its texts say or else those of the table; "" where none does."""
    rows = table.rows()[table.header_rows :]
    of_columns = [_marks([row[c] for row in rows]) for c in range(table.shape[1])]
    known = {mark for mark in of_columns if len(mark) == 1}
    usual = next(iter(known)) if len(known) == 1 else ""
    return [mark if len(mark) == 1 else usual for mark in of_columns]


def uncertain_numbers(table: Grid) -> dict[str, list[int]]:
    """The cells whose number was perhaps misread, by the reason: numbers of `table.cells`.

    Only texts that a reader found in pixels are doubted: those of a text layer have a confidence of 1.
    """
    found: dict[str, list[int]] = {}
    grid, numbers = table.grid()[table.header_rows :], {id(cell): i for i, cell in enumerate(table.cells)}
    for c in range(table.shape[1]):
        cells = list({id(row[c]): row[c] for row in grid if row[c].column == c}.values())
        for cell, reason in zip(cells, _misread([cell.text for cell in cells]), strict=True):
            # The confidence is the mean of the characters: here that of all of them together.
            together = cell.confidence ** (len(cell.text) + 1)
            if together < MIN_SURE and any(c.isdigit() for c in cell.text) and len(cell.text) <= MAX_CHARACTERS:
                reason = reason or "a number with an uncertain character"
            if reason and cell.confidence < 1:
                found.setdefault(reason, []).append(numbers[id(cell)])
    return found


def column_values(texts: Sequence[str], usual: str = ".") -> list[Value | None]:
    """The value of each text; usual: the decimal mark of a column that leaves it open, "" if nothing says it."""
    marks = _marks(texts)
    mark = marks if len(marks) == 1 else usual
    numbers: list[Number | None] = [parse_number(text, mark or ".") for text in texts]
    if not mark:  # 1.204 may be either
        numbers = [
            None if n and n.decimals and parse_number(t, ",") else n for n, t in zip(numbers, texts, strict=True)
        ]
    dates = _column_dates(texts)
    return [number if date is None else date for number, date in zip(numbers, dates, strict=True)]


def parse_number(text: str, mark: str = ".") -> Number | None:
    """The number in a text, None if it is not a number; mark: the decimal mark.

    Thousands are separated by the other one of "." and ",", by an apostrophe or by a space, in threes.  (1.5) is -1.5.
    A text with a leading zero (007) or more than 15 digits is a name, not a number.
    """
    found = NUMBER.fullmatch(text.strip()) if len(text) <= MAX_CHARACTERS else None
    if found is None or bool(found["open"]) != bool(found["close"]) or (found["sign"] and found["sign2"]):
        return None
    whole, parted, decimals = found["digits"].partition(mark)
    other = "," if mark == "." else "."
    groups = re.split(rf"[{re.escape(other)}'’{_SPACES}]", whole)
    if mark in decimals or not re.fullmatch("[0-9]*", decimals) or (parted and not decimals):
        return None
    if len(groups) > 1 and not (
        1 <= len(groups[0]) <= 3
        and all(len(group) == 3 for group in groups[1:])
        and len(set(re.findall(r"\D", whole))) == 1
    ):
        return None
    digits = "".join(groups)
    if (len(digits) > 1 and digits[0] == "0") or len(digits) + len(decimals) > MAX_DIGITS:
        return None
    sign = found["sign"] or found["sign2"] or ""
    negative = bool(sign and sign in MINUS) != bool(found["open"])
    if found["open"] and sign:
        return None
    share = 2 if found["percent"] else 0
    value = float(f"{digits or 0}.{decimals or 0}e-{share}") if decimals or share else int(digits)
    return Number(-value if negative else value, len(decimals), len(groups) > 1, bool(share))


def number_format(number: Number, text: str) -> str:
    """The format with which a spreadsheet shows a number as its text does, but for the local marks of thousands."""
    found = NUMBER.fullmatch(text.strip())
    shape = ("#,##0" if number.grouped else "0") + ("." + "0" * number.decimals if number.decimals else "")
    shape += "%" if number.percent else ""
    if found is None:
        return shape
    money, currency = found["before"] or "", found["after"]
    before = f'"{money}{" " * (len(money) > 1)}"' if money else ""
    shape = before + shape + (f'" {currency}"' if currency else "")
    if found["open"]:
        return f"{shape};({shape})"
    return f"+{shape};-{shape}" if "+" in (found["sign"], found["sign2"]) else shape


def _misread(texts: Sequence[str]) -> list[str]:
    """For each text of a column the reason why it may be a misread number, or ""."""
    shapes = [_shape(text) for text in texts]
    numbers = [shape for shape in shapes if shape]
    if 2 * len(numbers) < sum(map(bool, texts)):
        return [""] * len(texts)
    ends = Counter(end[0] for shape in numbers for end in re.findall("[.,]0{1,2}$|[.,]0{4,}$", shape))
    threes = Counter(end for shape in numbers for end in re.findall("^0{1,3}([.,])000$", shape))

    def reason(text: str, shape: str) -> str:
        if not shape:
            like = any(c.isdigit() for c in text) and all(c.isdigit() or c in LIKE_NUMBERS for c in text)
            return "not a number, as others in its column are" if like else ""
        mark = shape.strip("0")[-1:]
        other = {".": ",", ",": "."}.get(mark, "")
        if re.fullmatch("0{1,3}[.,]000", shape) and (ends[mark] or threes[other] > threes[mark]):
            return "a mark of thousands or of decimals"
        if re.search("[.,](0{1,2}|0{4,})$", shape) and ends[other] > ends[mark]:
            return "another decimal mark than others in its column"
        return ""

    return list(map(reason, texts, shapes))


def _shape(text: str) -> str:
    """The digits of a number, whichever its decimal mark is, as zeros, with the marks between them; or ""."""
    if parse_number(text) is None and parse_number(text, ",") is None:
        return ""
    found = NUMBER.fullmatch(text.strip())
    return re.sub("[0-9]", "0", found["digits"]) if found else ""


def _marks(texts: Sequence[str]) -> str:
    """The decimal marks, of "." and ",", that suit every number of these texts; "" if neither does."""
    with_marks = [
        text for text in texts if re.search(r"[0-9][.,][0-9]|^[.,][0-9]", text) and NUMBER.fullmatch(text.strip())
    ]
    able = [mark for mark in ".," if all(parse_number(text, mark) is not None for text in with_marks)]
    return "".join(able) if with_marks else ".,"


def _column_dates(texts: Sequence[str]) -> list[datetime.date | None]:
    orders = {ways[0][0] for text in texts if len(ways := _dates(text)) == 1 and ways[0][0]}
    found: list[datetime.date | None] = []
    for text in texts:
        dates = {date for order, date in _dates(text) if not order or orders == {order}}
        found.append(dates.pop() if len(dates) == 1 else None)
    return found


def _dates(text: str) -> list[tuple[str, datetime.date]]:
    """Each way to read a date, with the order that it assumes, "" if the form leaves no doubt."""
    ways = []
    for pattern, order in _DATES:
        if found := pattern.fullmatch(text.strip()):
            parts = found.groupdict()
            name = parts.get("month", "").lower()  # in English, or its beginning
            months = (i for i, month in enumerate(_MONTHS, 1) if month.startswith(name))
            month = next(months, 0) if name else int(parts["m"])
            try:
                ways.append((order, datetime.date(int(parts["y"]), month, int(parts["d"]))))
            except ValueError:
                continue
    return ways
