"""The demo's checkpoints, each loaded when its tab is first used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import OfflineError, UnsupportedError, nearest
from ...hub import find
from ...task_kinds import TASKS, TaskKind
from ...tasks import load_task
from ..tables import TableExtractor
from ..tables.batch import ExtractorConfig

# tab -> (task, default checkpoint)
TABS = {
    "classify": ("classify", "google/vit-base-patch16-224"),
    "segment": ("segment", "microsoft/beit-base-finetuned-ade-640-640"),
    "read": ("read", "zoo-read"),
    "embed": ("embed", "sentence-transformers/all-MiniLM-L6-v2"),
    "chat": ("generate", "stories260k"),
}
# Further tabs, each made from its task's row: those of --model.  A page has no place for lists of words or points.
ROWS: dict[str, TaskKind] = {
    kind.name: kind
    for kind in TASKS
    if kind.name not in TABS and not kind.streams and not any(one.is_list for one in kind.options)
}


class Models:
    """config: options of the Tables tab.  names: tab -> checkpoint, over TABS; a tab of ROWS is there if it is named.
    options: as for `zoo.load`.
    """

    def __init__(self, config: ExtractorConfig, names: Mapping[str, str] | None = None, **options: Any):
        for tab in names or {}:
            if tab not in TABS and tab not in ROWS:
                known = [*TABS, *ROWS]
                raise UnsupportedError(f"there is no tab {tab!r}, only {', '.join(known)}{nearest(tab, known)}")
        self.config, self.options = config, options
        self.names = {tab: default for tab, (_, default) in TABS.items()} | dict(names or {})
        self.rows = [kind for tab, kind in ROWS.items() if tab in self.names]
        self._loaded: dict[str, Any] = {}
        self._lock = threading.Lock()

    def note(self, tab: str) -> str:
        """The checkpoint of a tab, and whether it has to be downloaded first."""
        name = self.names[tab]
        try:
            find(name, local_files_only=True)
        except OfflineError:
            download = "" if self.options.get("local_files_only") else " yet: this tab's first use downloads it"
            return f"{name} (not on this machine{download})"
        return name

    def task(self, tab: str) -> Any:
        return self._load_once(tab, lambda: load_task(self.names[tab], task=TABS.get(tab, (tab,))[0], **self.options))

    def extractor(self) -> TableExtractor:
        return self._load_once("tables", self.config.extractor)

    def _load_once(self, name: str, load: Callable[[], Any]) -> Any:
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load()
            return self._loaded[name]
