"""A recording on the screens of a live engine, by a clock that a person holds in the hand."""
