"""`zoo serve`: checkpoints behind an HTTP interface that clients of OpenAI, Cohere, Jina, ... speak (extra `serve`)."""
