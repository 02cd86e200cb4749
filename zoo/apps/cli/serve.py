"""`zoo serve`: checkpoints behind an HTTP interface."""

from __future__ import annotations

import argparse
import os
import sys

from ...optional import optional
from ..tables.batch import ExtractorConfig
from .fastest import fastest

PACKAGES = ("starlette", "uvicorn", "msgspec", "prometheus_client")


def serve(args: argparse.Namespace) -> None:
    for package in PACKAGES:  # a missing one is reported before anything else
        optional(package, "the server", "serve")
    from ..serve.app import LOOPBACK
    from ..serve.models import Models
    from ..serve.server import serve as serve_models

    args.device = fastest(args)
    key = args.api_key or os.environ.get("ZOO_API_KEY") or None
    loading = {name: getattr(args, name) for name in ("device", "local_files_only", "lock")}
    tables = ExtractorConfig(**loading) if args.tables else None
    models = Models(
        args.names,
        queue=args.max_queue,
        rows=args.max_rows,
        context=args.context,
        kept=args.prefix_cache << 20,
        seconds=args.timeout,
        tables=tables,
        **loading,
        **{name: getattr(args, name) for name in ("dtype", "weights", "revision", "graphs")},
    )
    if key is None and args.host not in LOOPBACK:
        print(f"zoo: warning: anyone who reaches {args.host} may ask: set --api-key", file=sys.stderr)
    serve_models(models, args.host, args.port, _say_where, key=key, origins=args.cors)


def _say_where(address: str) -> None:
    print(f"zoo: {address} (Ctrl-C ends; {address}/docs lists the endpoints)", file=sys.stderr, flush=True)
