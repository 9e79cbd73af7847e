"""From messages to token ids and back: tokenizer, chat template, and the tokens that end an answer."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from transformers import AutoTokenizer

from streams.rollout.engines.base import ModelRefused, PromptRefused

log = logging.getLogger(__name__)

_PROBE = "headwater"
_USER = {"role": "user", "content": _PROBE}
_NO_TEMPLATE = (
    "the tokenizer has no chat template: messages cannot be asked, only `token_ids`. Give one as `chat_template` of "
    "[engine]"
)


@dataclass(frozen=True, slots=True)
class Chat:
    """A model's tokenizer, with the template that its messages are rendered by."""

    tokenizer: Any
    template: str | None

    @classmethod
    def of(cls, directory: Path, template: str | None) -> Self:
        """`template` goes before the tokenizer's own. Raises ModelRefused."""
        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(directory, local_files_only=True)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise ModelRefused(f"no tokenizer in {directory}: {error}") from error
        try:
            return cls(tokenizer, template or tokenizer.get_chat_template())
        except ValueError:  # there is none, or several and no default
            return cls(tokenizer, None)

    def render(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Ready for the assistant's answer; a last message of the assistant's is left open. Raises PromptRefused."""
        open_end = messages[-1]["role"] == "assistant"
        return self.tokens(messages, add_generation_prompt=not open_end, continue_final_message=open_end)

    def tokens(self, messages: Sequence[Mapping[str, str]], **how: bool) -> list[int]:
        """What the template makes of messages, `how` as transformers' `apply_chat_template` has it.

        Raises PromptRefused.
        """
        if self.template is None:
            raise PromptRefused(_NO_TEMPLATE)
        try:
            text = self.tokenizer.apply_chat_template(
                list(messages), chat_template=self.template, tokenize=False, **how
            )
        except Exception as error:  # a template is a program, and raises what it likes
            roles = ", ".join(message["role"] for message in messages)
            raise PromptRefused(f"the chat template refuses these messages ({roles}): {error}") from error
        # a template writes the special tokens itself
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def check(self, vocabulary: int) -> None:
        """Say what cannot be asked. Raises ModelRefused for a template with which nothing can.

        vocabulary: rows of the model's embedding.
        """
        if len(self.tokenizer) > vocabulary:
            log.warning(
                "the tokenizer knows %d tokens, the model's embedding %d: prompts with others are refused",
                len(self.tokenizer),
                vocabulary,
            )
        if self.template is None:
            log.warning("%s", _NO_TEMPLATE)
            return
        try:
            tokens = self.render([_USER])
        except PromptRefused as error:
            raise ModelRefused(f"{error}: give another one as `chat_template` of [engine]") from error
        if outside := sorted({token for token in tokens if token >= vocabulary}):
            raise ModelRefused(
                f"the chat template writes {self.tokenizer.convert_ids_to_tokens(outside[0])!r}, token {outside[0]}, "
                f"but the model's embedding has {vocabulary} rows: train it in first (`resize_token_embeddings`), or "
                "give another template as `chat_template` of [engine]"
            )
        try:
            self.render([{"role": "system", "content": _PROBE}, _USER])
        except PromptRefused:
            log.warning("the chat template refuses system messages: prompts that have one are refused, each by itself")


def ends_of_text(model: Any, chat: Chat, vocabulary: int) -> frozenset[int]:
    """Every id that ends an answer: of both configurations and of the tokenizer (each may name one or many), and the
    special token with which the chat template closes the assistant's turn. Published models name some here, some there.
    """
    found: set[int] = set()
    for config in (model.generation_config, model.config, model.config.get_text_config(decoder=True), chat.tokenizer):
        ids = getattr(config, "eos_token_id", None)
        found.update([ids] if isinstance(ids, int) else ids or [])
    found.update(_end_of_turn(chat))
    ends = frozenset(token for token in found if 0 <= token < vocabulary)
    if not ends:
        log.warning("neither model nor tokenizer says how a text ends: every answer goes on to its max_new_tokens")
    return ends


def _end_of_turn(chat: Chat) -> list[int]:
    """The special token right behind what the assistant said; none where the template writes none there."""
    tokenizer, messages = chat.tokenizer, [_USER, {"role": "assistant", "content": _PROBE}]
    try:
        begun, closed = chat.render(messages), chat.tokens(messages)
    except PromptRefused:
        return []
    if closed[: len(begun)] != begun:
        return []
    special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    special.update(tokenizer.all_special_ids)
    return [token for token in closed[len(begun) :][:1] if token in special and token != tokenizer.unk_token_id]
