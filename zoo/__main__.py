"""`python -m zoo` is the command `zoo`."""

from .cli import main

raise SystemExit(main())
