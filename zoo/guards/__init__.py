"""Guards against files from strangers: bounds before a library opens them, and a confined child process."""
