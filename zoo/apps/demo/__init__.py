"""`zoo demo`: a page to try checkpoints on, from this process alone (extra `demo`)."""
