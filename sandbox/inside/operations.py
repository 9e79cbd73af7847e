"""What either side may ask the other to do with an object: the same names on both."""

import contextlib
import operator
from collections.abc import Callable
from typing import Any

_OF_OPERATOR = (
    "getitem setitem delitem contains eq ne lt le gt ge neg pos invert add sub mul truediv floordiv mod pow matmul "
    "and_ or_ xor lshift rshift iadd isub imul iand ior ixor"
)


def _exit(manager: Any, kind: Any = None, words: str = "") -> Any:
    """Leave a context, with an error of this kind if there is one."""
    error = None
    with contextlib.suppress(Exception):  # whatever it wants for arguments
        error = None if kind is None else kind(words)
    return type(manager).__exit__(manager, kind, error, None)


OPERATIONS: "dict[str, Callable[..., Any]]" = {
    "call": lambda function, *arguments, **named: function(*arguments, **named),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "len": len,
    "iter": iter,
    "next": next,
    "repr": repr,
    "str": str,
    "format": format,
    "bool": bool,
    "int": int,
    "float": float,
    "index": operator.index,
    "hash": hash,
    "reversed": reversed,
    "round": round,
    "abs": abs,
    "isinstance": isinstance,
    "issubclass": issubclass,
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": _exit,
    **{name: getattr(operator, name) for name in _OF_OPERATOR.split()},
}
