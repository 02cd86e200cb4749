"""`zoo serve`: checkpoints behind an HTTP interface."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

from ...errors import InputError
from ...optional import import_optional
from .fastest import fastest
from .parser import UsageError
from .table_options import check_finding, extractor_config

PACKAGES = ("starlette", "uvicorn", "msgspec", "prometheus_client")


def serve(args: argparse.Namespace) -> None:
    check_finding(args)
    for name in ("detection", "structure", "no_detection", "ocr", "reader"):
        if getattr(args, name) and not args.tables:
            raise UsageError(f"--{name.replace('_', '-')} is for /v1/tables: add --tables")
    if args.mmproj and len(args.names) != 1:
        raise UsageError(f"--mmproj is for one NAME, and there are {len(args.names)}")
    for package in PACKAGES:  # a missing one is reported before anything else
        import_optional(package, "the server", "serve")
    from ..serve.isolated import IsolatedModels
    from ..serve.keys import read_keys
    from ..serve.listening import is_loopback, unblock_stderr
    from ..serve.logs import configure_log, logger
    from ..serve.models import Models
    from ..serve.server import serve as serve_models

    unblock_stderr()
    configure_log(args.log_level, args.log_format)
    with redirect_stderr(StringIO()) as said:  # a line of the log too
        args.device = fastest(args)
    if device := said.getvalue().removeprefix("zoo: ").strip():
        logger.info("%s", device)
    keys = {} if args.keys is None else read_keys(args.keys)
    if key := args.api_key or os.environ.get("ZOO_API_KEY"):
        keys.setdefault(key, "--api-key")
    loading = {name: getattr(args, name) for name in ("device", "local_files_only", "lock")}
    tables = extractor_config(args, **loading) if args.tables else None
    settings = {
        **loading,
        **{name: getattr(args, name) for name in ("dtype", "weights", "revision", "graphs", "mmproj")},
        "queue": args.max_queue,
        "rows": args.max_rows,
        "context": args.context,
        "kept": args.prefix_cache << 20,
        "seconds": args.timeout,
        "tables": tables,
        "url_hosts": args.allow_url or (),
    }
    if not keys and not is_loopback(args.host):
        logger.warning("anyone who reaches %s may ask: set --api-key or --keys", args.host)

    def say_where(address: str) -> None:
        if args.log_format == "json":
            logger.info("%s", address)
        else:
            print(f"zoo: {address} (Ctrl-C ends; {address}/docs lists the endpoints)", file=sys.stderr, flush=True)

    log = args.log_level, args.log_format
    where, asking = (args.host, args.port, say_where), {"keys": keys, "origins": args.cors}
    if args.engine == "ray":
        if args.isolate:
            raise InputError("--isolate is for --engine local: Ray's replicas are processes of their own")
        from ..serve.on_ray import serve_on_ray

        scaling = {"replicas": args.replicas, "autoscaling": args.autoscaling and _object(args.autoscaling)}
        gpu = "cuda" in (args.device or "")
        serve_on_ray(args.names, settings, *where, threads=args.threads or 1, gpu=gpu, log=log, **scaling, **asking)
    elif args.replicas or args.autoscaling:
        raise InputError("--replicas and --autoscaling are for --engine ray")
    else:
        models = Models(args.names, **settings) if not args.isolate else IsolatedModels(args.names, log=log, **settings)
        serve_models(models, *where, **asking)


def _object(text: str) -> dict[str, Any]:
    """The object of --autoscaling."""
    try:
        found = json.loads(text)
    except ValueError as e:
        raise InputError(f"--autoscaling is not JSON: {e}") from None
    if not isinstance(found, dict):
        raise InputError('--autoscaling: expected an object, such as {"min_replicas": 1, "max_replicas": 4}')
    return found
