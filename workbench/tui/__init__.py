"""The attached screen: a feed of events, a pure state built from them, and the panels that draw it."""
