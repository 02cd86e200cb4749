"""A checkpoint as files: what is read, pinned, written and written over."""
