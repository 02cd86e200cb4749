"""Reading GGUF, the one-file checkpoints of llama.cpp.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""
