"""The server's log: a line on stderr for each request and event, as text or as JSON; the logger is "zoo.serve"."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import uuid
from typing import Any

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
MAX_VALUE = 300  # characters of a value that a client has chosen
FIELDS = ("id", "client", "key", "method", "path", "status", "ms", "error")  # a request's, in this order
PROBE_PATHS = ("/health", "/ready", "/metrics")  # machines ask for them every few seconds: lines of the level debug
_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)

logger = logging.getLogger("zoo.serve")


def configure_log(level: str = "info", form: str = "text") -> None:
    """Write the log from this level on to stderr.  Without a call the logger is as the program has set up its own."""
    handler = _StderrHandler()
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter("zoo: %(asctime)s %(message)s"))
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


def request_id_of(given: str) -> str:
    """The id that a request's lines and answer have: the one that it came with in X-Request-Id, or a new one."""
    return given if _ID.fullmatch(given) else uuid.uuid4().hex


def log_request(fields: dict[str, Any]) -> None:
    """Write the line of a request that was answered; fields: values for some of FIELDS."""
    level = logging.WARNING if fields["status"] >= 500 else logging.INFO
    if fields["path"] in PROBE_PATHS:
        level = logging.DEBUG
    if not logger.isEnabledFor(level):
        return
    shown = {name: value for name in FIELDS if (value := fields.get(name)) not in (None, "")}
    shown |= {name: value[:MAX_VALUE] for name, value in shown.items() if isinstance(value, str)}
    key = f" ({shown['key']})" if "key" in shown else ""
    line = f"{shown['client']}{key} {shown['method']} {shown['path']} {shown['status']}, {shown['ms']:g} ms"
    line += f": {shown['error']}" if "error" in shown else ""
    record = logging.LogRecord(logger.name, level, __file__, 0, line, None, None)  # without a search for the caller
    record.fields = shown
    logger.handle(record)


class _StderrHandler(logging.StreamHandler[Any]):
    """Writes to what sys.stderr is at the time; a line that cannot be written is dropped."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        pass


class _TextFormatter(logging.Formatter):
    """A line with the local time; no sign that a client sent moves the terminal's cursor."""

    def __init__(self, form: str):
        super().__init__(form, "%Y-%m-%d %H:%M:%S")
        self._second, self._time = -1, ""  # that was written last, under the handler's lock

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        if (second := int(record.created)) != self._second:
            self._second, self._time = second, super().formatTime(record, datefmt)
        return self._time

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        if not record.message.isprintable():
            words = " ".join(record.message.split())
            record.message = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in words)
        return super().formatMessage(record)


class _JsonFormatter(logging.Formatter):
    """An object in a line, with the time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {"time": f"{at}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        fields = getattr(record, "fields", None)
        line |= {"message": record.getMessage()} if fields is None else {"message": "request", **fields}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)
