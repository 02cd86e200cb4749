"""The proof: zoo and transformers on the same checkpoint and the same texts or images, compared stage by stage.

`zoo parity --help` is the way in.  Only `parity.reference` imports transformers, and torch with it.
"""
