"""`python -m zoo` is the command `zoo`."""

from .apps.cli import main

raise SystemExit(main())
