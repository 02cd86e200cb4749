"""`zoo demo`: a local web page for trying checkpoints (extra `demo`)."""
