"""Fused kernels of the device worker: each a Triton kernel and, in the same file, the torch reference it is held to."""
