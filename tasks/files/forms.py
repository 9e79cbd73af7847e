"""Rows of forms that many have, and the map that each needs: told where such rows are taken for prompts."""

import msgspec

_KNOWN_FORMS = (
    ({"prompt", "reward_model"}, {"messages": "prompt", "answer": "reward_model.ground_truth"}),
    ({"prompt", "solution"}, {"messages": "prompt", "answer": "solution"}),
    ({"prompt", "answer"}, {"messages": "prompt", "answer": "answer"}),
    ({"question", "answer"}, {"messages": "question", "answer": "answer"}),
    ({"problem", "answer"}, {"messages": "problem", "answer": "answer"}),
    ({"problem", "solution"}, {"messages": "problem", "answer": "solution"}),
    ({"conversations"}, {"messages": "conversations", "answer": "conversations"}),
    ({"messages"}, {"answer": "messages"}),
)
"""Columns by which a form that many have is known (verl's, TRL's, OpenAI's chats), and the map that it needs."""


def known_form(text: bytes) -> str | None:
    """What to map in a row that is no prompt, but one of another tool; None for other rows."""
    try:
        columns = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return None
    if "grader" in columns or {"messages", "domain"} <= columns.keys():
        return None
    fields = next((fields for known, fields in _KNOWN_FORMS if known <= columns.keys()), None)
    if fields is None:
        if not columns or columns.keys() & {"messages", "token_ids", "domain"}:
            return None
        fields = {"messages": "COLUMN", "answer": "COLUMN"}
    options = " ".join(f"--map {field}={column}" for field, column in fields.items())
    table = ", ".join(f'{field} = "{column}"' for field, column in fields.items())
    return (
        f"no prompt, but a row with the columns {', '.join(columns)}: publish it with "
        f"`--domain NAME {options}`; in a run's [[data]]: map = {{{table}}}"
    )
