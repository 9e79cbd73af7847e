"""What is asked of a model, and which tokens end its answers: real tokenizers, real templates."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import AutoTokenizer, LlamaConfig

from streams.rollout.engines.base import ModelRefused, PromptRefused
from streams.rollout.engines.chat import Chat, ends_of_text
from tests.model_zoo import TEMPLATE, TURN_END, VOCABULARY, WORDS, write_tokenizer

USER = {"role": "user", "content": "w20 w21"}
ASSISTANT = {"role": "assistant", "content": "w30"}
SYSTEM = {"role": "system", "content": "w40"}
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + TEMPLATE
)


def chat(directory: Path, template: str | None = None, own: str | None = TEMPLATE, words: int = WORDS) -> Chat:
    write_tokenizer(directory, own, words)
    return Chat.of(directory, template)


def model(**settings: Any) -> Any:
    """As much of one as says how a text ends."""
    generation = settings.pop("generation", None)
    return SimpleNamespace(config=LlamaConfig(**settings), generation_config=SimpleNamespace(eos_token_id=generation))


def test_messages_are_rendered_for_the_assistant_to_answer(tmp_path: Path):
    # <|im_start|> role content <|im_end|>; roles are no words of this tokenizer
    assert chat(tmp_path).render([USER]) == [8, 0, 20, 21, 9, 8, 0]


def test_a_last_message_of_the_assistant_is_continued(tmp_path: Path):
    assert chat(tmp_path).render([USER, ASSISTANT]) == [8, 0, 20, 21, 9, 8, 0, 30]


def test_a_template_that_is_given_goes_before_the_tokenizers_own(tmp_path: Path):
    assert chat(tmp_path, "{{ messages[0]['content'] }} w7").render([USER]) == [20, 21, 7]
    (tmp_path / "none").mkdir()
    assert chat(tmp_path / "none", TEMPLATE, own=None).render([USER])[0] == 8


def test_a_system_message_is_refused_only_where_the_template_refuses_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    refuses = chat(tmp_path, NO_SYSTEM)
    refuses.check(VOCABULARY)
    assert [record.message for record in caplog.records] == [
        "the chat template refuses system messages: prompts that have one are refused, each by itself"
    ]
    with pytest.raises(PromptRefused, match=r"\(system, user\): System role not supported"):
        refuses.render([SYSTEM, USER])
    assert refuses.render([USER]) == chat(tmp_path).render([USER])
    assert chat(tmp_path).render([SYSTEM, USER])[:4] == [8, 0, 40, 9]


def test_without_a_template_messages_are_refused_and_it_is_said_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    none = chat(tmp_path, own=None)
    none.check(VOCABULARY)
    assert "chat_template" in caplog.records[0].message
    with pytest.raises(PromptRefused, match=r"no chat template.*`chat_template` of"):
        none.render([USER])


@pytest.mark.parametrize(
    "template", ["{% if %}", "{{ raise_exception('tools only') }}", "{{ messages[7]['content'] }}"]
)
def test_a_template_with_which_nothing_can_be_asked_is_refused_at_the_start(tmp_path: Path, template: str):
    with pytest.raises(ModelRefused, match=r"refuses these messages.*another one as `chat_template`"):
        chat(tmp_path, template).check(VOCABULARY)


def test_a_tokenizer_larger_than_the_embedding(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    larger = chat(tmp_path, words=VOCABULARY + 5)
    larger.check(VOCABULARY)  # its template is fine
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"knows {VOCABULARY + 5} tokens, the model's embedding {VOCABULARY}" in caplog.records[0].getMessage()
    with pytest.raises(ModelRefused, match=r"writes '<\|im_start\|>', token 8, but the model's embedding has 8 rows"):
        larger.check(8)


def test_ends_of_all_who_name_one(tmp_path: Path):
    """Both configurations, the tokenizer, and the template's end of a turn."""
    write_tokenizer(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.eos_token = "w6"
    tokenizer.save_pretrained(tmp_path)
    ends = ends_of_text(model(eos_token_id=[3, 4], generation=5), Chat.of(tmp_path, None), VOCABULARY)
    assert ends == {3, 4, 5, 6, TURN_END}


def test_an_end_known_only_to_the_tokenizer_ends_an_answer(tmp_path: Path):
    write_tokenizer(tmp_path, template="{{ messages[0]['content'] }}")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.eos_token = "w6"
    tokenizer.save_pretrained(tmp_path)
    assert ends_of_text(model(eos_token_id=None), Chat.of(tmp_path, None), VOCABULARY) == {6}


def test_an_end_outside_the_embedding_is_none_and_no_end_at_all_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    plain = chat(tmp_path, own="{{ messages[0]['content'] }}")
    assert ends_of_text(model(eos_token_id=VOCABULARY + 1), plain, VOCABULARY) == frozenset()
    assert "every answer goes on" in caplog.records[0].message
