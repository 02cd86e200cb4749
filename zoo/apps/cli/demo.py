"""`zoo demo`: a web page for trying checkpoints."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ..demo.models import ROWS, TABS, Models
from ..demo.serve import serve
from ..serve.listening import unblock_stderr
from .fastest import fastest
from .parser import UsageError
from .table_options import check_finding, extractor_config


def demo(args: argparse.Namespace) -> None:
    check_finding(args)
    unblock_stderr()
    loading = {"device": fastest(args), "local_files_only": args.local_files_only, "lock": args.lock}
    models = Models(extractor_config(args, **loading), dict(map(_parse_model, args.model)), **loading)
    serve(models, args.host, args.port, _say_where)


def _say_where(address: str, server: Any) -> None:
    print(f"zoo: {address} (Ctrl-C ends)", file=sys.stderr)


def _parse_model(text: str) -> tuple[str, str]:
    tab, equals, name = text.partition("=")
    if not (equals and name) or (tab not in TABS and tab not in ROWS):
        raise UsageError(f"--model {text}: expected TAB=NAME, with one of {', '.join([*TABS, *ROWS])}")
    return tab, os.path.expanduser(name)  # a shell does not expand ~ after "="
