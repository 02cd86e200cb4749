"""GGUF, the one-file checkpoints of llama.cpp: read, as they lie, and written.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""
