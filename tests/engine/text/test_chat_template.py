from __future__ import annotations

from typing import Any

import pytest

from engine.text.chat_template import ChatTemplate, ChatTemplateError

CHAT_ML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_a_conversation() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there <b>"}]},
        {"role": "assistant", "content": ""},
    ]
    expected = (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi\nthere <b><|im_end|>\n"
        "<|im_start|>assistant\n<|im_end|>\n"
    )
    template = ChatTemplate(CHAT_ML)
    assert template.render(messages, add_generation_prompt=False) == expected
    assert template.render(messages) == expected + "<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([], "messages: got an empty list"),
        ([{"role": "robot", "content": "x"}], "messages[0].role: got 'robot', expected one of system, user, assistant"),
        ([{"content": "x"}], "messages[0].role: got None"),
        ([{"role": ["user"], "content": "x"}], "messages[0].role: got ['user']"),
        ([{"role": "user", "content": "x"}, {"role": "user"}], "messages[1].content: got None, expected a string"),
        ([{"role": "user", "content": []}], "messages[0].content: got []"),
        ([{"role": "user", "content": 5}], "messages[0].content: got 5"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            "messages[0].content[0]: got a part of type 'image_url'",
        ),
        ([{"role": "user", "content": ["x"]}], "messages[0].content[0]: got a part of type 'str'"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0]: got a part of type 'text'"),
    ],
)
def test_what_cannot_be_rendered_is_named(messages: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(ChatTemplateError) as refusal:
        ChatTemplate(CHAT_ML).render(messages)
    assert says in str(refusal.value)


def test_what_templates_expect_to_find() -> None:
    source = (
        "{%- set ns = namespace(n=0) -%}\n"
        "{{ bos_token }}{{ strftime_now('%Y')|length }}\n"
        "    {% for m in messages %}\n"
        "{% if m.content == 'stop' %}{% break %}{% endif %}\n"
        "{{ {'a': '<é>'}|tojson }}\n"
        "    {% endfor %}\n"
        "{{ eos_token }}"
    )
    template = ChatTemplate(source, bos_token="<s>", eos_token="</s>")
    messages = [{"role": "user", "content": "x"}, {"role": "user", "content": "stop"}]
    assert template.render(messages) == '<s>4\n{"a": "<é>"}\n</s>'


def test_a_template_may_refuse() -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(ChatTemplateError, match="the model's chat template refused them: roles must alternate"):
        template.render([{"role": "user", "content": "x"}])


def test_a_template_cannot_leave_the_sandbox() -> None:
    template = ChatTemplate("{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(ChatTemplateError, match="refused"):
        template.render([{"role": "user", "content": "x"}])


def test_bad_syntax_names_the_line() -> None:
    with pytest.raises(ChatTemplateError, match="chat template, line 2"):
        ChatTemplate("fine\n{% if %}")
