"""`zoo example`: write the picture of a page that comes with zoo, to try `zoo table` on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..documents import EXAMPLE
from ..tables.export import write
from .parser import UsageError


def example(args: argparse.Namespace) -> None:
    data, path = EXAMPLE.read_bytes(), Path(args.output)
    if path.suffix.lower() != EXAMPLE.suffix:
        raise UsageError(f"{args.output}: the page is a PNG file: give a name that ends in .png")
    if path.is_file() and path.read_bytes() != data:
        raise UsageError(f"{args.output} exists and is another file: give another name")
    write(path, lambda part: part.write_bytes(data))
    print(f"zoo: wrote {args.output}", file=sys.stderr)
