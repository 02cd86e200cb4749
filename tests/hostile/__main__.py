"""Makes and opens each case, watched, and prints what came of it: python -m tests.hostile FOLDER [NAME ...].

What PDFium and FFmpeg open is not seen here: they are in confined processes, which can open nothing
(tests/guards/test_confined.py).

A line of JSON for each: the outcome ("loaded", "refused", "raw"), what was said, what was done that must not be, and
the megabytes that it took.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from checks.fuzz.child import Watch
from zoo.errors import ZooError

from .case import CASES, MARK, SECRET, WORDS

SECONDS, MEGABYTES = 20, 1200  # of the processor and of address space, for one case


class Canary(Watch):
    """Notices files written outside of a folder, processes, connections, and a secret that is read."""

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in ("socket.getaddrinfo", "socket.gethostbyname"):
            self.note(f"{event}{arguments!r:.100}")
        if event == "import" and str(arguments[0]).partition(".")[0] == "evil":
            self.note("import evil")
        if event == "open" and isinstance(arguments[0], str | bytes) and os.fsdecode(arguments[0]).endswith(SECRET):
            self.note(f"open {arguments[0]!r}")
        super().hook(event, arguments)


def rss(name: str = "VmRSS") -> float:
    """Megabytes of this process: resident, or the most so far (VmHWM)."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(name: str, root: Path, watch: Canary) -> dict[str, Any]:
    case, at = CASES[name], root / "now" / "checkpoint"
    at.parent.mkdir()
    (at.parent / SECRET).write_text(WORDS, encoding="utf-8")
    case.write(at)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the most so far is forgotten
    before, watch.on, watch.seen, said = rss(), True, "", ""
    os.chdir(at)
    sys.path.insert(0, str(at))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = case.open(at)
        outcome = "raw" if WORDS in repr(found) else "loaded"
    except ZooError as e:
        outcome, said = "refused", str(e)
    except BaseException as e:
        outcome, said = "raw", "".join(traceback.format_exception(e))[-2000:]
    signal.setitimer(signal.ITIMER_PROF, 0)
    watch.on = False
    sys.path.remove(str(at))
    os.chdir(root)
    done = [watch.seen] * bool(watch.seen) + ["the mark"] * (at.parent / MARK).exists()
    if WORDS in said:
        done.append("the secret in an error")
    at.parent.rename(root / f"was-{len(list(root.iterdir()))}")
    return {"name": name, "outcome": outcome, "said": said, "done": done, "mb": round(rss("VmHWM") - before)}


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    watch = Canary(root, starts=True)
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) if os.path.exists("/proc") else 0
    most = pages * resource.getpagesize() + (MEGABYTES << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for name in sys.argv[2:] or CASES:
        print(json.dumps({"begins": name}), flush=True)
        print(json.dumps(run(name, root, watch)), flush=True)


if __name__ == "__main__":
    from . import configs, files, graphs, templates, weights  # noqa: F401  # which add their cases

    main()
