"""Attention over the KV pool."""
