"""Serving the demo, by default to this machine only."""

from __future__ import annotations

from typing import Any

from ...errors import ZooError
from ...optional import import_optional
from ..serve.listening import address_of, listen
from .guard import MAX_UPLOAD, Guard, refuse_crowd
from .models import Models
from .page import CSS, build, gradio

MAX_CONNECTIONS = 100


def application(models: Models, host: str) -> Guard:
    """The page as an ASGI application.  host: the name or address that it is served at."""
    gr, fastapi = gradio(), import_optional("fastapi", "the demo", "demo")
    fonts = {
        "font": [gr.themes.Font("system-ui")],
        "font_mono": [gr.themes.Font("system-ui")],  # of tables too
    }
    page = build(models)
    app = gr.mount_gradio_app(
        fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None),
        page,
        path="/",
        footer_links=[],
        run_history=False,
        max_file_size=MAX_UPLOAD,
        ssr_mode=False,
        enable_monitoring=False,
        pwa=False,
        mcp_server=False,
        theme=gr.themes.Default(primary_hue="blue", **fonts),
        css=CSS,
    )
    page.has_launched = True  # Gradio leaves it unset for a mounted page, and then checks no paths
    return Guard(app, gr.utils.get_upload_folder(), host)


def serve(models: Models, host: str, port: int, ready: Any = None) -> None:
    """Serve until Ctrl-C.  port: 0 takes a free one.  ready: called with the address and its token, and the server."""
    gradio()  # a missing package is reported before anything else
    uvicorn: Any = import_optional("uvicorn", "the demo", "demo")
    from ..serve.connections import Connections

    with listen(host, port) as at:
        app = application(models, host)
        # uvicorn logs closed and open connections at the end as errors.
        config = uvicorn.Config(
            app,
            http=Connections(refuse_crowd, MAX_CONNECTIONS, MAX_CONNECTIONS).protocol(),
            log_level="critical",
            timeout_graceful_shutdown=1,
            ws="none",
        )
        server = uvicorn.Server(config)
        if ready is not None:
            ready(f"{address_of(host, at)}/?token={app.token}", server)
        server.run(sockets=[at])
    if not server.started:
        raise ZooError("the server did not start")
