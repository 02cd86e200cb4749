"""The report as one HTML file that can be read offline: its policy forbids scripts and requests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from zoo.errors import ZooError
from zoo.optional import pip_install

from ..report import document
from ..run import Result
from .overview import overview
from .sections import ordered, section
from .texts import runs

__all__ = ["MissingToolError", "require", "write_page"]

HERE = Path(__file__).parent
MAX_OPEN = 3  # results on a page up to which all sections are open


class MissingToolError(ZooError):
    """A package that makes the page is not installed."""


def require() -> None:
    """Import the packages that make the page; MissingToolError tells how to install them."""
    try:
        import jinja2  # noqa: F401
        import matplotlib.backends.backend_svg  # noqa: F401
    except ImportError as e:
        raise MissingToolError(f"the HTML report needs {e.name}: {pip_install('parity')}") from None


def write_page(folder: Path, results: Sequence[Result], command: str) -> Path:
    """Write folder/index.html about the results of `command` -> its path.  The folder is made if it does not exist."""
    require()
    import jinja2
    import markupsafe

    options: dict[str, Any] = {"autoescape": True, "undefined": jinja2.StrictUndefined}
    options |= dict.fromkeys(("trim_blocks", "lstrip_blocks"), True)
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), **options)
    style = (HERE / "page.css").read_text(encoding="utf-8")
    environment.filters["drawing"] = markupsafe.Markup  # the plots, which parity.page.plots has escaped
    environment.filters["runs"] = runs
    sections = [section(number, result) for number, result in enumerate(ordered(results), 1)]
    text = environment.get_template("page.html.jinja").render(
        style=markupsafe.Markup(style),
        policy=_policy(style),
        sections=sections,
        max_open=MAX_OPEN,
        now=datetime.now(timezone.utc),
        **overview(results, sections, document(results, command)),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def _policy(style: str) -> str:
    """The page's Content-Security-Policy: its one style sheet, images that are part of it, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
