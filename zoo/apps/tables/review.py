"""An HTML page to review tables: the image beside the cells, uncertain ones first; edits are saved as CSV and XLSX.

It is one file that needs nothing else.  Only its own script may run (a Content-Security-Policy has its hash), and texts
reach the page as texts, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from typing import IO, Any

from ...errors import TableError
from ...files.utf8 import to_utf8
from ..batch import formulas
from ..documents import Page
from .as_xlsx import DAY_ZERO, FIRST_DATE
from .batch import ExtractorConfig
from .export import write
from .pages import PageTables
from .table import Table
from .upright import upright_image, upright_table
from .values import (
    CURRENCIES,
    MAX_DIGITS,
    MINUS,
    NUMBER,
    Number,
    decimal_marks,
    number_format,
    table_values,
)

DOUBT = 0.8  # cells with a confidence below it are marked
MAX_SIDE = 1600  # pixels of an image's longer side, enough to read a page
WEBP_QUALITY = 80  # 0 to 100; Pillow's default, without visible loss in text
MAX_BYTES = 256 << 20  # all pages together: browsers still open as many
# What the script has to know of formulas in CSV and of numbers: those of the other writers.
PATTERNS = {
    "formula": formulas.FORMULA,
    "harmless": formulas.HARMLESS_PATTERN,
    "parts": formulas.PARTS.pattern,
    "blank": formulas.BLANK_CHARACTERS,
    "number": NUMBER.pattern.replace("(?P<", "(?<"),
    "money": CURRENCIES,
    "minus": MINUS,
    "digits": MAX_DIGITS,
}


class ReviewWriter:
    """Takes the results of pages; images are rendered again, so that workers need not send them."""

    by_page = True

    def __init__(self, path: Path, config: ExtractorConfig, *, doubt: float = DOUBT, safe: bool = False):
        self.path, self.config = path, config
        self.settings = {"doubt": doubt, "safe": safe, **PATTERNS}
        self._pages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - until `close`
        self._digest = hashlib.sha256(config.key().encode())

    def add(self, result: PageTables, page: Page | None = None) -> None:
        """Add a page with tables.  page: by default it is opened and rendered again."""
        if not result.tables:
            return
        if page is None:
            with self.config.open(result.source) as document:
                page = document.page(result.page)
        block = _script(page_data(page, result), 'class="page"')
        self._digest.update(f"{result.document}:{result.page}".encode())
        self._pages.write(block)
        if self._pages.tell() > MAX_BYTES:
            raise TableError(f"{self.path}: more than {MAX_BYTES >> 20} MB of pages; review fewer at once (--pages)")

    def close(self) -> list[Path]:
        script = _part("review.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        before, after = _part("review.html").replace("%SCRIPT_HASH%", f"sha256-{digest}").split("%DATA%")
        settings = _script(self.settings | {"key": self._digest.hexdigest()[:16]}, 'id="settings"')

        def writing(part: Path) -> None:
            self._pages.seek(0)
            with part.open("wb") as file:
                file.write(before.encode() + settings)
                shutil.copyfileobj(self._pages, file)
                file.write(after.replace("%SCRIPT%", script).encode())

        write(self.path, writing)
        self._pages.close()
        return [self.path]


def page_data(page: Page, result: PageTables) -> dict[str, Any]:
    """The data of a page for the script, which shows it upright."""
    from PIL import Image

    height, width = page.image.shape[:2]
    image, out, tables = Image.fromarray(page.image), io.BytesIO(), result.tables
    if result.angle:
        tables = tuple(upright_table(table, result.angle, (width, height)) for table in tables)
        image = Image.fromarray(upright_image(page.image, result.angle))
        width, height = image.size
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    image.save(out, "WEBP", quality=WEBP_QUALITY)
    return {
        "source": result.source,
        "page": result.page,
        "pages": result.pages,
        "angle": result.angle,
        "width": width,
        "height": height,
        "image": "data:image/webp;base64," + base64.b64encode(out.getvalue()).decode(),
        "tables": [table.to_dict() for table in tables],
        "values": [_values(table) for table in result.tables],
        "marks": [decimal_marks(table) for table in result.tables],
    }


def _values(table: Table) -> list[tuple[float, str] | None]:
    """For each cell what XLSX has in place of its text: a number and its format."""
    values = table_values(table)
    found: list[tuple[float, str] | None] = []
    for cell in table.cells:
        value = values[cell.row][cell.column]
        if isinstance(value, Number):
            found.append((value.value, number_format(value, cell.text)))
        elif value is not None and value >= FIRST_DATE:
            found.append(((value - DAY_ZERO).days, "yyyy-mm-dd"))
        else:
            found.append(None)
    return found


def _script(data: Any, attributes: str) -> bytes:
    """A script element with JSON, in which no text can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return to_utf8(f'<script type="application/json" {attributes}>{text}</script>\n')


def _part(name: str) -> str:
    return resources.files("zoo.apps.tables").joinpath(name).read_text(encoding="utf-8")
