"""``make gpu-check``: on a machine with a CUDA GPU, all that the project claims of one, in one run and one file."""
