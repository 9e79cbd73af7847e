"""Messages as chats of other tools have them: a text, parts of text, nulls, a chat as JSON text."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from schemas import SchemaError

_KEYS = {"from": "role", "value": "content"}
_ROLES = {"human": "user", "gpt": "assistant", "developer": "system"}
"""ShareGPT's words, and OpenAI's newer one."""


def chat(found: Any) -> Any:
    """A text is the user's message; in a chat, nulls are keys that are not there, and parts of text are one."""
    value = json.loads(bytes(found)) if isinstance(found, msgspec.Raw) else found
    if isinstance(value, str):
        if not value.strip():
            raise SchemaError("`messages`: there is nothing to ask")
        value = chat_of_text(value) or [{"role": "user", "content": value}]
    if not isinstance(value, list):
        return value
    return [_message(message) if isinstance(message, dict) else message for message in value]


def chat_of_text(text: str) -> list[Any] | None:
    """A chat written as JSON text; None for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    chat = isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value)
    return value if chat else None


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {_KEYS.get(key, key): plain(value) for key, value in message.items() if value is not None}
    role = kept.get("role")
    if isinstance(role, str):
        kept["role"] = _ROLES.get(role, role)
    content = kept.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content):
            raise SchemaError("`messages`: a part of a message is no text: images and sounds cannot be asked here")
        kept["content"] = "".join(part["text"] for part in content)
    return kept


def plain(value: Any) -> Any:
    """What a cell in a message of a template says."""
    return json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else value
