"""Checks the types of arguments and options of declaration words, because module texts are edited by hand and no type
checker reads them."""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

_NAMES: Mapping[object, str] = {
    **{str: "text", int: "a whole number", bool: "True or False"},
    **{type: "a class", Mapping: "a dictionary", Callable: "a function, which a module text cannot contain"},
}


def check(word: Callable[..., object], arguments: Sequence[object], options: Mapping[str, object]) -> None:
    """Check the arguments and options of a call.

    Raises:
        TypeError: the word has no such argument or option, or a value has a wrong type. The text names the argument or
            option.
    """
    signature = inspect.signature(word)
    hints = _hints(word)
    for name, value in signature.bind(*arguments, **options).arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            check_options(cast("Mapping[str, object]", value), hints[name])
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            for element in cast("Sequence[object]", value):
                _check(name, element, hints[name])
        else:
            _check(name, value, hints[name])


def check_options(options: Mapping[str, object], expected: object) -> None:
    """Check the types of options. `expected` is one type for all options, or a typed dictionary. Unknown options are
    not checked.

    Raises:
        TypeError: an option has a wrong type.
    """
    described = get_args(expected)[0] if get_origin(expected) is typing.Unpack else expected
    hints = _hints(described) if typing.is_typeddict(described) else dict.fromkeys(options, described)
    for name, value in options.items():
        _check(name, value, hints.get(name, object))


@lru_cache(maxsize=128)
def _hints(described: object) -> dict[str, object]:
    is_word = isinstance(described, type) and not typing.is_typeddict(described)
    return get_type_hints(described.__init__ if is_word else described)


def _check(name: str, value: object, expected: object) -> None:
    if not _fits(value, expected):
        raise TypeError(f"{name} must be {_described(expected)}")


def _fits(value: object, expected: object) -> bool:
    """Return whether the value has the expected type. A boolean does not count as a number."""
    origin, parts = get_origin(expected), get_args(expected)
    if origin is None:
        is_wrong_bool = expected is int and isinstance(value, bool)
        return isinstance(value, cast("type", expected)) and not is_wrong_bool
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    return _CONTAINERS.get(origin, _is_list)(value, parts)


def _is_class(value: object, parts: Sequence[Any]) -> bool:
    return isinstance(value, type) and issubclass(value, parts[0])


def _is_function(value: object, _: Sequence[Any]) -> bool:
    return callable(value)


def _is_dictionary(value: object, parts: Sequence[Any]) -> bool:
    items = cast("Mapping[object, object]", value).items() if isinstance(value, Mapping) else None
    return items is not None and all(
        _fits(key, parts[0]) and _fits(entry_value, parts[1]) for key, entry_value in items
    )


def _is_list(value: object, parts: Sequence[Any]) -> bool:
    return isinstance(value, tuple) and all(_fits(element, parts[0]) for element in cast("tuple[object, ...]", value))


_CONTAINERS: Mapping[object, Callable[[object, Sequence[Any]], bool]] = {
    type: _is_class, Callable: _is_function, Mapping: _is_dictionary
}  # fmt: skip
"""Maps a generic type to the function that checks its values. The other generic types are lists."""


def _described(expected: object) -> str:
    """Return the expected type in words."""
    origin, parts = get_origin(expected), get_args(expected)
    if origin is None:
        return _NAMES.get(expected) or f"{getattr(expected, '__name__', expected)}(…)"
    if origin in (Union, UnionType):
        return " or ".join(_described(part) for part in parts if part is not NoneType)
    if origin is Literal:
        return f"{'one of ' if len(parts) > 1 else ''}{', '.join(map(repr, parts))}"
    if origin in _CONTAINERS:
        return _NAMES[origin]
    return f"a list, and each of its values {_described(parts[0])}"
