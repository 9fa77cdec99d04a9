"""The engine's step on one device: every number that the next step needs stays there, nothing waits for the host."""
