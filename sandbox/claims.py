"""What judged interpreters claim on their result pipe: lines of `nonce name JSON`. Pure.

The first line is written before judged code runs and can be trusted that far; everything after is a
claim. Bytes that are not such lines make the whole unusable: a result then does not exist.
"""

from dataclasses import dataclass

from sandbox.inside.protocol import CLAIMS


@dataclass(frozen=True)
class Claims:
    """`first` is `compiled`, `syntax` or None; `bodies` what followed, by name; `valid`: nothing else was there."""

    first: str | None
    first_body: bytes
    bodies: dict[str, bytes]
    tests: list[bytes]
    """Bodies of the lines `test`, of which there may be many."""
    valid: bool


def parse(result: bytes, nonce: str) -> Claims:
    """Read a result pipe."""
    first, first_body, bodies, valid = None, b"", dict[str, bytes](), True
    tests: list[bytes] = []
    lines = result.split(b"\n")
    if lines.pop() != b"":
        valid = False
    for index, line in enumerate(lines):
        mark, _, rest = line.partition(b" ")
        raw, _, body = rest.partition(b" ")
        name = raw.decode("ascii", "replace")
        if mark != nonce.encode() or name not in CLAIMS:
            valid = False
        elif index == 0 and name in ("compiled", "syntax"):
            first, first_body = name, body
        elif name == "test":
            tests.append(body)
        elif name in bodies or name in ("compiled", "syntax"):
            valid = False
        else:
            bodies[name] = body
    return Claims(first, first_body, bodies, tests, valid)
