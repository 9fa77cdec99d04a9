"""KV cache: pages, the slots of a request, the tensors, and the ledger that accounts for all of them."""
