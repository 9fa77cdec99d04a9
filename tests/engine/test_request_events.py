"""What request events say of prompts and answers: with --publish-tokens all that it takes to run them again."""

from __future__ import annotations

from engine.sampling_params import SamplingParams
from probes.events import RequestEvent
from tests.engine.tiny import STORY, both_schedulers, eagle_engine, prompts

pytestmark = both_schedulers


def test_a_request_tells_what_was_asked_and_what_came() -> None:
    prompt, asked = prompts(1, seed=4)[0], SamplingParams(max_tokens=9, stop=("zzz",), ignore_eos=True)
    llm, sink = eagle_engine(STORY, publish_tokens=True)
    (completion,) = llm.generate([prompt], asked)
    events = [event for event in sink.events if isinstance(event, RequestEvent)]
    assert [event.phase for event in events] == ["arrived", "first_token", "finished"]
    arrived, first, finished = events
    assert arrived.prompt_token_ids == prompt
    assert arrived.sampling is not None
    assert (list(arrived.sampling["stop"]), arrived.sampling["max_tokens"]) == (["zzz"], 9)
    assert arrived.sampling["seed"] is None
    assert arrived.seed is not None
    assert arrived.step == 0
    assert (arrived.output_token_ids, first.prompt_token_ids, first.output_token_ids) == (None, None, None)
    assert finished.output_token_ids == completion.token_ids
    assert (finished.prompt_token_ids, finished.sampling, finished.seed) == (None, None, None)


def test_an_aborted_one_tells_what_it_had_and_at_which_step() -> None:
    llm, sink = eagle_engine(STORY, publish_tokens=True)
    request = llm.core.add("r", prompts(1)[0], SamplingParams(max_tokens=50, seed=3, ignore_eos=True))
    while request.output_len < 3:
        llm.core.step()
    at = llm.core.step_number
    llm.core.abort("r")
    event = next(e for e in reversed(sink.events) if isinstance(e, RequestEvent))
    assert (event.phase, event.step, event.output_token_ids) == ("aborted", at, request.ids[request.prompt_len :])
    arrived = next(e for e in sink.events if isinstance(e, RequestEvent))
    assert (arrived.seed, (arrived.sampling or {})["seed"]) == (3, 3)


def test_without_the_option_nothing_of_it_is_said() -> None:
    llm, sink = eagle_engine(STORY)
    llm.generate(prompts(2), SamplingParams(max_tokens=5, seed=3, ignore_eos=True))
    for event in sink.events:
        if isinstance(event, RequestEvent):
            assert (event.prompt_token_ids, event.sampling, event.seed, event.output_token_ids) == (None,) * 4
