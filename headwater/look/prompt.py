"""A prompt for people: what is asked, and how an answer to it is judged. Pure."""

import msgspec

from schemas import ExactGrader, Grader, Prompt
from tasks.files.answer import FINAL_ANSWER, IN_WORDS

_MAX_CHARACTERS = 2_000
"""Of one message, and of a grader."""
_ALIKE = {
    "text": "the same characters as",
    "number": "the same number as",
    "choice": "the same choice as",
    "math": "equal, by math-verify, to",
}


def shown(prompt: Prompt) -> str:
    """Several lines of text."""
    sampling = prompt.sampling
    temperature = "greedy" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}"
    lines = [
        f"── {prompt.id or '(its id is made when it is sent)'} · domain {prompt.domain} · {prompt.purpose.value} · "
        f"{prompt.group_size} answers, {temperature}, {sampling.max_new_tokens} tokens at most"
    ]
    lines += [f"{message.role}: {_shortened(message.content)}" for message in prompt.messages]
    if prompt.token_ids:
        lines.append(f"{len(prompt.token_ids)} token ids")
    return "\n".join([*lines, f"judged: {judged(prompt.grader)}"])


def judged(grader: Grader) -> str:
    """The grader in words where it is `exact`, else as JSON."""
    if not isinstance(grader, ExactGrader):
        return _shortened(msgspec.json.encode(grader).decode())
    if grader.pattern == FINAL_ANSWER:
        place = IN_WORDS
    elif grader.pattern is not None:
        place = f"the {grader.match} match of {grader.pattern}"
    else:
        place = "the last line"
    right = " or ".join(repr(answer) for answer in (grader.answer, *grader.or_answers))
    return _shortened(f"{place}, must be {_ALIKE[grader.compare]} {right}")


def _shortened(text: str) -> str:
    rest = len(text) - _MAX_CHARACTERS
    return text if rest <= 0 else f"{text[:_MAX_CHARACTERS]}… and {rest:,} characters more"
