"""A progress bar on stderr, for work that takes over a second, if someone watches: on a terminal or in a notebook."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from typing import Any

BAR_DELAY = 1.0  # seconds of work before a bar appears
REDRAW_INTERVAL = 0.1  # seconds


class Progress:
    """A bar with the count, the rate and the time that is left; a context that gives the function to advance it with.

    total: None if it is not known.  unit: what is counted; "" for work without a count, whose bar shows the time.
    wanted: None: after BAR_DELAY, gone at the end; True: at once, and it stays; False: never; a function: it is told
    the counts, and there is no bar.  what: what is done, before the bar.
    """

    def __init__(
        self,
        total: int | None,
        wanted: bool | Callable[[int], object] | None = None,
        unit: str = "texts",
        what: str | None = None,
    ):
        self.total, self.count = total, 0
        self._listener = wanted if callable(wanted) else None
        self._options = {"unit": f" {unit}", "desc": what, "leave": wanted is True, "file": sys.stderr}
        if not unit:
            self._options["bar_format"] = "{desc}: {elapsed}"
        self._bar: Any = None
        self._thread: threading.Thread | None = None
        self._is_over = threading.Event()
        if wanted is True or (wanted is None and in_notebook()):
            self._bar = _bar_class()(total=total, delay=0 if wanted else BAR_DELAY, **self._options)
        elif wanted is None and is_watched():
            # Its own thread draws it, so that it shows the time before the first item is done, too.
            self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Callable[[int], object]:
        if self._thread is not None:
            self._thread.start()
        return self._listener or self._advance

    def _advance(self, count: int) -> None:
        self.count += count
        if self._bar is not None:
            self._bar.update(count)

    def expect(self, total: int) -> None:
        """Say how many there are, where that was a guess."""
        self.total = total
        if self._bar is not None and self._bar.total != total:
            self._bar.total = total
            self._bar.refresh()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        if self._bar is not None:
            self._bar.close()

    def _draw(self) -> None:
        if self._is_over.wait(BAR_DELAY):
            return
        with contextlib.suppress(OSError, ValueError):  # stderr is closed
            bar = _bar_class()(total=self.total, **self._options)
            if bar.disable:  # by TQDM_DISABLE
                return
            bar.start_t -= BAR_DELAY
            while True:
                bar.total = self.total
                bar.update(self.count - bar.n)
                bar.refresh()
                if self._is_over.wait(REDRAW_INTERVAL):
                    break
            bar.close()


def is_watched() -> bool:
    """True for the main thread of a program whose stderr is a terminal; those of a server show nothing."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    return in_main_thread and sys.stderr is not None and sys.stderr.isatty()


def in_notebook() -> bool:
    """True in a notebook's process, whose stderr is no terminal."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _bar_class() -> Any:
    """tqdm's bar; in a notebook that has ipywidgets the one that is a widget."""
    if in_notebook() and importlib.util.find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm

    return tqdm


def write_line(text: str) -> None:
    """Write a line to stderr, above the bar if there is one."""
    if "tqdm" in sys.modules:
        sys.modules["tqdm"].tqdm.write(text, file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)
