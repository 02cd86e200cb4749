"""Chat templates are rendered in confined processes, one for each template: it is a stranger's program."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from .. import guards
from ..guards.confined import Confined, FailedError, Job, StoppedError

JOB = Job(
    Path(guards.__file__).with_name("template_job.py"),
    "render",
    "rendering chat templates",
    packages=("jinja2", "markupsafe"),
    extra="chat",
)
PROCESSES = 4  # each renders one template


class Rendered(NamedTuple):
    """The text of a template (kind "text"), or an error's message, of another kind, at a line (0: unknown)."""

    kind: str
    line: int
    text: str


@functools.lru_cache(maxsize=PROCESSES)
def process_of(source: str) -> Confined:
    """The process that renders this template and no other: one template cannot reach the messages of another."""
    return Confined(JOB)


def render(source: str, variables: Mapping[str, Any], most: int) -> Rendered:
    """Render a template for variables of plain data, to at most `most` characters."""
    now = datetime.now()
    try:
        answer = process_of(source).ask(
            source, dict(variables), (*now.timetuple()[:6], now.microsecond), most, most=4 * most + 9999
        )
    except StoppedError as e:
        return Rendered("stopped", 0, str(e))
    except FailedError as e:
        return Rendered("fails", 0, str(e))
    head, _, text = answer.decode("utf-8", "replace").partition("\n")
    kind, _, line = head.partition(" ")
    if kind == "stopped":
        process_of(source).close()  # it may still hold what it took
    return Rendered(kind, int(line) if line.isdecimal() else 0, text)
