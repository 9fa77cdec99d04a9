"""Speculation: the policy that decides, the proposers that draft, the walk that verifies, the sync that follows."""
