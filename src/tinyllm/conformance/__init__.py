"""Grade any OpenAI-compatible server, or the `wire` server, by its bytes on the wire."""
