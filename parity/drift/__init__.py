"""`zoo parity --drift`: what other versions of transformers make of the same checkpoints.

Each version runs in a process of its own (`recording`), on the inputs that zoo was given, and is compared with the one
that is installed here, the reference of all other reports.
"""
