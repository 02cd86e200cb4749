"""A page to review tables: the image beside the cells, doubtful ones first, edits saved as CSV and XLSX in the browser.

One file that needs nothing else: the page's script is the only one that may run (a Content-Security-Policy names its
hash), and texts reach the page as texts, never as markup.
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
from ..documents import Page
from .batch import Recipe
from .export import write
from .pages import PageTables

DOUBT = 0.8  # a cell of less confidence is marked
LONGEST = 1600  # pixels of an image's longer side
QUALITY = 80  # of its WebP
MAX_BYTES = 256 << 20  # what a browser still opens


class Review:
    """Takes the results of pages; images are drawn again, so that workers need not send them."""

    by_page = True

    def __init__(self, path: Path, recipe: Recipe, *, doubt: float = DOUBT, safe: bool = False):
        self.path, self.recipe = path, recipe
        self.settings = {"doubt": doubt, "safe": safe}
        self._pages: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - until `close`
        self._digest = hashlib.sha256(recipe.key().encode())

    def add(self, result: PageTables, page: Page | None = None) -> None:
        """page: where it is at hand; by default it is drawn again."""
        if not result.tables:
            return
        if page is None:
            with self.recipe.open(result.source) as document:
                page = document.page(result.page)
        block = _script(page_data(page, result), 'class="page"')
        self._digest.update(f"{result.document}:{result.page}".encode())
        self._pages.write(block)
        if self._pages.tell() > MAX_BYTES:
            raise TableError(f"{self.path}: more than {MAX_BYTES >> 20} MB of pages; review fewer at once (--pages)")

    def close(self) -> list[Path]:
        """Write the page."""
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
    """What the script is told of a page."""
    from PIL import Image

    height, width = page.image.shape[:2]
    image, out = Image.fromarray(page.image), io.BytesIO()
    image.thumbnail((LONGEST, LONGEST))
    image.save(out, "WEBP", quality=QUALITY)
    return {
        "source": result.source,
        "page": result.page,
        "pages": result.pages,
        "width": width,
        "height": height,
        "image": "data:image/webp;base64," + base64.b64encode(out.getvalue()).decode(),
        "tables": [table.to_dict() for table in result.tables],
    }


def _script(data: Any, attributes: str) -> bytes:
    """JSON that no text in it can end."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" {attributes}>{text}</script>\n'.encode()


def _part(name: str) -> str:
    return resources.files("zoo.apps.tables").joinpath(name).read_text(encoding="utf-8")
