"""Many inputs at once: shared among processes or machines, stopped and gone on with, errors aside."""
