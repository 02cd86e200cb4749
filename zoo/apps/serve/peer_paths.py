"""Paths of other servers (Ollama, TEI, TGI, llama.cpp, whisper.cpp) -> zoo's, for the message of a 404."""

from __future__ import annotations

PEER_PATHS = {
    **dict.fromkeys(("/api/generate", "/generate", "/generate_stream", "/completion"), "/v1/completions"),
    **dict.fromkeys(("/api/chat", "/chat", "/v1/messages"), "/v1/chat/completions"),
    **dict.fromkeys(("/api/embed", "/api/embeddings", "/embed", "/embed_all"), "/v1/embeddings"),
    **dict.fromkeys(("/score", "/v1/score"), "/v1/rerank"),
    "/predict": "/v1/classify",
    "/inference": "/v1/audio/transcriptions",
    **dict.fromkeys(("/api/tags", "/info"), "/v1/models"),
    **dict.fromkeys(("/ping", "/healthz", "/livez"), "/health"),
}
