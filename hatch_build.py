"""What the package index shows: README with links that lead somewhere from there, and the project's addresses."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {"Changelog": "CHANGELOG.md", "Documentation": "docs/README.md", "Security": "SECURITY.md"}


class CustomMetadataHook(MetadataHookInterface):
    """Sets `readme` and `urls` by the address in REPOSITORY_URL; without it links stay relative."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = os.environ.get("REPOSITORY_URL", "").rstrip("/")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, address)}
        metadata["urls"] = urls(address)


def urls(address: str) -> dict[str, str]:
    """The project's pages in a repository at `address`; none for ""."""
    pages = {name: f"{address}/blob/main/{path}" for name, path in PAGES.items()}
    return {"Source": address, "Issues": f"{address}/issues", **pages} if address else {}


def absolute_links(text: str, address: str) -> str:
    """Markdown whose links to files of the repository begin with its `address`; as it is for ""."""
    if not address:
        return text
    images = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)([^)]+\))", rf"\g<1>{address}/raw/main/\2", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)([^)]+\))", rf"\g<1>{address}/blob/main/\2", images)
