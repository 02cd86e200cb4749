"""The folder of what zoo keeps on this machine from one run to the next."""

from __future__ import annotations

import os
from pathlib import Path


def assets_folder() -> Path:
    """`assets/zoo` beside the hub's cache (HF_HOME, HF_ASSETS_CACHE, XDG_CACHE_HOME)."""
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface"
    )
    assets = os.environ.get("HF_ASSETS_CACHE") or os.path.join(home, "assets")
    return Path(os.path.expanduser(assets)) / "zoo"
