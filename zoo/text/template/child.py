"""The process in which templates are rendered: it reads requests, writes answers, and can do nothing else.

Both are framed by their length.  A request is marshalled by the process that started this one, for this one alone.
An answer is a kind, a line of the template and a text: nothing in it is more than that to who reads it.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import signal
import sys
import time
from datetime import datetime
from typing import Any, BinaryIO

from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError

from . import HEAD, LENGTH
from .language import Template
from .scope import RefusedError, Run, TooMuchError

try:
    import resource
except ImportError:  # not on Windows
    resource = None

MEMORY = 224 << 20  # bytes of address space, beyond its own and those in proportion to a request
PER_BYTE = 32  # of a request: texts of 4 bytes a character, the parts of an answer, their sum
SAID = 2000  # characters of what an error says
DEPTH = 3000  # of Python's calls

# What Python reads from files when it is first asked for: codecs of the parser's, modules of the filters'.
_FIRST = r"""{{ '\u00e9' | urlencode ~ [1.5] | pprint ~ '{:>3}'.format(1) ~ strftime_now('%Y') }}
{{ {'a': [1]} | tojson(indent=1) | striptags | wordwrap(9) }}"""

KEPT = 1 << 16  # characters of a template that is kept, ready for its next rendering; longer ones take memory
_kept = functools.lru_cache(maxsize=8)(Template)


def main() -> None:
    """Answer until the requests end; the first answer says that all is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the process that asks
    sys.setrecursionlimit(DEPTH)
    requests, answers = os.fdopen(0, "rb"), os.fdopen(1, "wb")
    rendered(_FIRST, {}, (2026, 1, 1), 1000)
    own = _own_space()
    _confine()
    _answer(answers, b"text", 0, "")
    while head := requests.read(LENGTH.size):
        (size,) = LENGTH.unpack(head)
        _allow("AS", own + MEMORY + PER_BYTE * size)
        *request, seconds = marshal.loads(requests.read(size))
        _allow("CPU", int(time.process_time() + seconds))  # which is of whole seconds: at most so many
        kind, line, text = rendered(*request)
        _answer(answers, kind, line, text if kind == b"text" else text[:SAID])


def rendered(source: str, variables: dict[str, Any], clock: Any, most: int) -> tuple[bytes, int, str]:
    """Kind, line and text: of a text, or of what an error says and where it was."""
    run = Run(most, datetime(*clock))
    try:
        template = _kept(source) if len(source) <= KEPT else Template(source)
        return b"text", 0, template.render(variables, run)
    except TemplateSyntaxError as e:
        return b"syntax", e.lineno, e.message or ""
    except TooMuchError as e:
        return b"stopped", run.line, str(e)
    except SecurityError as e:
        return b"forbidden", run.line, str(e)
    except UndefinedError as e:
        return b"undefined", run.line, str(e)
    except RefusedError as e:
        return b"refused", run.line, str(e)
    except MemoryError:
        return b"stopped", run.line, "it takes too much memory"
    except RecursionError:
        return b"stopped", run.line, "it is nested too deeply"
    except Exception as e:  # whatever somebody else's program comes up with
        return b"fails", run.line, f"{type(e).__name__}: {e}"


def _answer(answers: BinaryIO, kind: bytes, line: int, text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError as e:
        kind, data = b"fails", f"it writes half of a surrogate pair at character {e.start}".encode()
    answers.write(HEAD.pack(kind, line, len(data)) + data)
    answers.flush()


def _confine() -> None:
    """No more files, no writing to any, no processes, no core dumps; where the platform can be told so."""
    for name, limit in (("NOFILE", 3), ("FSIZE", 0), ("NPROC", 0), ("CORE", 0)):
        _allow(name, limit, for_good=True)


def _own_space() -> int:
    """Bytes of address space that a Python takes before it does anything; some builds reserve a lot."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _allow(name: str, limit: int, *, for_good: bool = False) -> None:
    """Set one of the limits of this process, where the platform has it; if not for good, it can be raised again."""
    kind = getattr(resource, f"RLIMIT_{name}", None)
    if resource is None or kind is None:
        return
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(kind)[1]
        soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (soft, soft if for_good else hard))
