"""A load generator for OpenAI-compatible endpoints, and what it makes of speculation off, on and by policy."""
