"""Fields of OpenAI's API (and of common extensions) that change the answer and that we do not implement.

A request that sets one to anything but its neutral value gets a 400 that names it, never a 200 that ignores it.
Fields without any effect on the text (``user``, ``metadata``, ``safety_identifier``, ``prompt_cache_key``,
``service_tier``, ``parallel_tool_calls`` …) and unknown ones are ignored.
"""

from __future__ import annotations

from typing import Any

from engine.server.api_error import bad_field
from engine.server.fields import Fields, shown

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "length_penalty": (1,),
    "no_repeat_ngram_size": (0,),
    "logit_bias": ({},),
    "min_tokens": (0,),
    "bad_words": ([],),
    "allowed_token_ids": ([],),
    "use_beam_search": (False,),
    "include_stop_str_in_output": (False,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "truncate_prompt_tokens": (),
    "prompt_logprobs": (),
    "logits_processors": ([],),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "structured_outputs": ({},),
    "response_format": ({"type": "text"},),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
    "reasoning_effort": ("none",),
    "verbosity": ("medium",),
    "store": (False,),
    "continue_final_message": (False,),
    "add_generation_prompt": (True,),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "documents": ([],),
}
"""Field -> values that ask for nothing; null always does."""


def refuse_unimplemented(fields: Fields) -> None:
    """Look for known fields with an effect that we lack.

    Raises:
        ApiError: 400 naming the first one.
    """
    for name, neutral in NEUTRAL.items():
        value = fields.raw(name)
        if value is None or any(_same(value, calm) for calm in neutral):
            continue
        hint = f"; leave it out, or send {shown(neutral[0])}" if neutral else "; leave it out"
        raise bad_field(name, f"{shown(value)} is not supported by this server{hint}", code="unsupported_parameter")


def _same(value: object, neutral: object) -> bool:
    """Equality as JSON sees it: 0 == 0.0, but false is not 0."""
    return value == neutral and isinstance(value, bool) == isinstance(neutral, bool)
