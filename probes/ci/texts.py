"""What the scripted probes ask: user messages of different lengths, about different things."""

from __future__ import annotations

TEXTS = (
    "What is the capital of France, and what is it known for?",
    "Explain in two sentences why the sky is blue.",
    "Write a Python function that reverses a string.",
    "Give me three tips for sleeping well.",
    "Translate into French: Good morning, my friend. The train leaves at nine.",
    "Summarize: The river rose in spring, and the town moved its market uphill. In summer it came back.",
    "Write a short poem about rain on a tin roof.",
    "List the planets of the solar system, the nearest to the sun first.",
)
