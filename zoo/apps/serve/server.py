"""Serving until Ctrl-C or SIGTERM, after which running requests are finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvicorn

from ...errors import ZooError
from .app import application
from .connections import Connections, allow_files
from .listening import address_of, listen
from .models import Models


def serve(models: Models, host: str, port: int, ready: Callable[[str], None], **options: Any) -> None:
    """Serve; port: 0 takes a free one.  ready: called with the address.  options: of `application`.

    ZooError: the port is taken, or no model can be loaded.
    """
    allow_files()
    with listen(host, port) as at:

        def stop() -> None:
            server.should_exit = True

        app = application(models, host=host, failed=stop, **options)
        config = uvicorn.Config(
            app,
            http=Connections(app.answer_when_full).protocol(),
            log_level="critical",
            ws="none",
            timeout_graceful_shutdown=int(models.seconds),
            server_header=False,
        )
        server = uvicorn.Server(config)
        ready(address_of(host, at))
        server.run(sockets=[at])
    if models.has_failed:
        raise ZooError("no model could be loaded")
