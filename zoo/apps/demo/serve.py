"""Serving the demo: on this machine, to this machine, and to nobody else unless it is asked for."""

from __future__ import annotations

import os
import socket
from typing import Any

from ...errors import InputError, ZooError
from ...optional import optional
from .guard import MAX_UPLOAD, Guard
from .models import Models
from .page import CSS, build, gradio


def application(models: Models) -> Any:
    """The page as an ASGI application."""
    gr = gradio()
    fastapi: Any = optional("fastapi", "the demo", "zoo[demo]")
    system = [gr.themes.Font("system-ui"), gr.themes.Font("sans-serif")]
    mono = [gr.themes.Font("ui-monospace"), gr.themes.Font("monospace")]
    page = build(models)
    app = gr.mount_gradio_app(
        fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None),
        page,
        path="/",
        footer_links=[],
        run_history=False,
        show_error=False,
        max_file_size=MAX_UPLOAD,
        ssr_mode=False,
        enable_monitoring=False,
        pwa=False,
        mcp_server=False,
        theme=gr.themes.Default(primary_hue="blue", font=system, font_mono=mono),
        css=CSS,
    )

    page.has_launched = True  # of a page that is mounted Gradio does not know that, and checks no path
    return Guard(app, gr.utils.get_upload_folder())


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; InputError if it cannot be had."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name == "posix":  # elsewhere it would let another server take the port
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(address)
            server.listen(64)
        except BaseException:
            server.close()
            raise
    except (OSError, OverflowError, UnicodeError) as e:
        why = getattr(e, "strerror", None) or e
        raise InputError(f"cannot listen at {host}, port {port}: {why}") from None
    return server


def serve(models: Models, host: str, port: int, ready: Any = None) -> None:
    """Serve until Ctrl-C.  port: 0 takes a free one.  ready: called with the address and the server."""
    gradio()  # what is missing is said before anything else
    uvicorn: Any = optional("uvicorn", "the demo", "zoo[demo]")
    with listen(host, port) as at:
        app = application(models)
        # Visitors who leave, and pages that are open when the server ends, are errors to uvicorn.
        config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        name = f"[{host}]" if ":" in host else host
        if ready is not None:
            ready(f"http://{name}:{at.getsockname()[1]}", server)
        server.run(sockets=[at])
    if not server.started:
        raise ZooError("the server did not start")
