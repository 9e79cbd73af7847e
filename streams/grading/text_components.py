"""Components of a reward that only the answer's text shows. Pure; they ride along beside the raw reward."""

_FENCES = ("```", "~~~")
_NGRAM_WORDS = 4


def text_components(text: str) -> dict[str, float]:
    """`format` and `repetition`, each from 0.0 to 1.0."""
    return {"format": format_component(text), "repetition": repetition_component(text)}


def format_component(text: str) -> float:
    """1.0 when the text holds exactly one fenced block, and it is closed; else 0.0."""
    fences = [line.strip() for line in text.splitlines() if line.lstrip().startswith(_FENCES)]
    return 1.0 if len(fences) == 2 and not fences[1].strip(fences[0][0]) else 0.0


def repetition_component(text: str) -> float:
    """0.0: no run of four words comes twice; towards 1.0: nothing else does."""
    words = text.split()
    runs = [tuple(words[i : i + _NGRAM_WORDS]) for i in range(len(words) - _NGRAM_WORDS + 1)]
    return 1.0 - len(set(runs)) / len(runs) if runs else 0.0
