"""In the tester: functions of Python's own that look into objects, applied there where the object is."""

from importlib import import_module
from typing import Any

from .stand_ins import StandIn, content_of, remote_of

_FUNCTIONS = {
    "copy": "copy deepcopy",
    "dataclasses": "asdict astuple fields is_dataclass replace",
    "inspect": (
        "getdoc getmembers getsource isabstract isasyncgen isasyncgenfunction isclass iscoroutinefunction isfunction "
        "isgenerator isgeneratorfunction ismethod signature"
    ),
    "typing": "get_type_hints",
}


def install() -> None:
    """Ask the answer where one of these is called with an object of its own."""
    for module_name, names in _FUNCTIONS.items():
        module = import_module(module_name)
        for name in names.split():
            setattr(module, name, _asking(getattr(module, name), f"{module_name}.{name}"))


def _asking(function: Any, operation: str) -> Any:
    def ours(*arguments: Any, **named: Any) -> Any:
        first = arguments[0] if arguments else None
        if type(first) is not StandIn or content_of(first) is not None:
            return function(*arguments, **named)
        return remote_of(first).ask(operation, *arguments, **named)

    setattr(ours, "__wrapped__", function)  # noqa: B010
    return ours
