"""What is done about files from strangers: bounds before a library opens them, and a confined child process."""
