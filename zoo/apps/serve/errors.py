"""Errors as OpenAI's interface words them: a status, and an object with message, type, param and code."""

from __future__ import annotations

from typing import Any

from ...errors import InputError, UnsupportedError, ZooError
from .logs import logger


class ApiError(Exception):
    """An error that is sent to a client.  param: the wrong field.  wait: seconds after which to try again."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, param: str | None = None, wait: int | None = None
    ):
        super().__init__(message)
        self.status, self.code, self.param, self.wait = status, code, param, wait

    @property
    def body(self) -> dict[str, Any]:
        if self.status == 401:
            kind = "authentication_error"
        elif self.status == 429:
            kind = "rate_limit_error"
        else:
            kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.wait is None else {"retry-after": str(self.wait)}


def as_api_error(error: BaseException) -> ApiError:
    """The error to send for one of zoo's; any other is sent without details, and its traceback goes to the log."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, InputError | UnsupportedError):
        return ApiError(400, str(error), param=error.argument)
    if isinstance(error, ZooError):
        logger.error("%s", error)
        return ApiError(500, str(error))
    if isinstance(error, MemoryError):
        logger.error("not enough memory for a request")
        return ApiError(503, "not enough memory for this request", code="no_memory", wait=5)
    logger.error("internal error", exc_info=error)
    return ApiError(500, "internal error: the server's log has the traceback")
