"""The OpenAI-compatible server: HTTP in, completions out."""
