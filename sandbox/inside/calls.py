"""One call of an answer's function with the arguments of one test, and what came of it: claims, and no more."""

import json
import sys
from array import array
from decimal import Decimal
from fractions import Fraction
from typing import Any

from . import nodes, programs, values

Json = dict[str, Any]
_RECURSION = 10_000
"""While a value is handed over, whatever the answer had set."""


class ValueEncoder(values.Encoder):
    """Plain data, and what stands for it: numbers of Python's own, arrays as lists, LeetCode's nodes as lists."""

    def odd(self, value: Any, kind: type, depth: int) -> Any:
        if kind is Decimal:
            return {"n": str(value)}
        if kind is Fraction:
            return {"q": [self.walk(value.numerator, depth), self.walk(value.denominator, depth)]}
        if kind is array or kind.__module__.partition(".")[0] in ("numpy", "pandas"):
            listed = value.tolist()
            if type(listed) is not kind:
                return self.walk(listed, depth + 1)
        if kind.__name__ in nodes.KINDS:
            return self.walk(nodes.plain(value), depth + 1)
        return super().odd(value, kind, depth)


def run_call(descriptors: "list[int]", process: Json) -> None:
    """Load the answer, call its function, claim the value that it returned, or what its first argument became."""
    source, payload = programs.read_all(descriptors[0]), programs.read_all(descriptors[1])
    claims = programs.ResultPipe(descriptors[2], process["nonce"])
    code = programs.compiled(source, claims)
    programs.be_script(source)
    sys.set_int_max_str_digits(0)
    arguments = json.loads(payload, object_pairs_hook=_whole_keys if process["int_keys"] else None)
    sys.set_int_max_str_digits(process["int_digits"])
    encoder = ValueEncoder(process["result_bytes"])
    try:
        module = programs.load(code, process)
        function = function_of(module, process["entry_point"])
        named = annotations_of(function)
        arguments = built(arguments, named, module)
        value = function(*arguments)
        sys.setrecursionlimit(_RECURSION)
        name, body = result(process["returns"], value, arguments, named, encoder)
        claims.write(name, body)
    except programs.BrokenPrelude as error:
        claims.text("broken", str(error))
    except (values.NotPlain, nodes.Endless) as error:
        claims.text("unprintable", str(error))
    except BaseException as error:  # noqa: BLE001 - a result, whatever it is
        sys.setrecursionlimit(_RECURSION)
        claims.text("raised", programs.described(error))
    programs.leave()


def result(
    returns: str, value: Any, arguments: "list[Any]", named: "list[Any]", encoder: values.Encoder
) -> "tuple[str, bytes]":
    """What came of a call: the claim's name and body.

    `argument`: None was returned, and this is what the first argument has become.
    """
    if returns.startswith("argument "):
        return "value", encoder.encode(_listed(arguments[int(returns.removeprefix("argument "))], named[:1]))
    if value is None and returns == "" and arguments and nodes.kind_of(named[-1]) is None:
        try:
            return "argument", encoder.encode(_listed(arguments[0], named[:1]))
        except (values.NotPlain, nodes.Endless):
            encoder.left = encoder.max_bytes
    return "value", encoder.encode(_listed(value, named[-1:]))


def _listed(value: Any, annotation: "list[Any]") -> Any:
    """No node, where one is annotated, is an empty list."""
    return [] if value is None and any(nodes.kind_of(one) for one in annotation) else value


def function_of(module: Any, entry_point: str) -> Any:
    """Find `name`, `Class.method` (of a new instance) or `Class().method`."""
    found = module
    parts = entry_point.split(".")
    for number, part in enumerate(parts, 1):
        found = getattr(found, part.removesuffix("()"))
        if number < len(parts) and isinstance(found, type):
            found = found()
    return found


def annotations_of(function: Any) -> "list[Any]":
    """The annotation of each parameter in order, and that of the result; None where there is none."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    bound = hasattr(function, "__self__")
    function = getattr(function, "__func__", function)
    annotations: dict[str, Any] = getattr(function, "__annotations__", {})
    code = getattr(function, "__code__", None)
    names = code.co_varnames[int(bound) : code.co_argcount] if code is not None else ()
    return [*map(annotations.get, names), annotations.get("return")]


def built(arguments: "list[Any]", named: "list[Any]", module: Any) -> "list[Any]":
    """Make nodes of arguments whose parameters are annotated so, of the answer's own class if it has one."""
    made: list[Any] = []
    for value, annotation in zip(arguments, named[:-1], strict=False):
        kind = nodes.kind_of(annotation)
        made.append(value if kind is None else nodes.build(value, kind, _class(module, kind[0])))
    return made + arguments[len(made) :]


def _class(module: Any, name: str) -> Any:
    return getattr(module, name, None) or getattr(nodes, name)


def _whole_keys(pairs: "list[tuple[str, Any]]") -> "dict[Any, Any]":
    """An object whose keys all are whole numbers, as a dict of such."""
    whole = pairs and all(key.removeprefix("-").isascii() and key.removeprefix("-").isdigit() for key, _ in pairs)
    return {int(key): value for key, value in pairs} if whole else dict(pairs)
