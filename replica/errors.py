"""The one exception for bad input: it names the argument, its value and what is allowed."""

from typing import Any


def shorten(text: str, most: int = 200) -> str:
    """``text``, or its beginning and its end where it has more than ``most`` characters."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} ... {text[-(most // 2) :]} ({len(text)} characters)"


class InvalidArgument(ValueError):
    """An argument outside its range.

    Attributes
    ----------
    name, value, allowed
        The parts of the message "<name> must be <allowed>, got <value>".
    """

    def __init__(self, name: str, value: Any, allowed: str) -> None:
        super().__init__(f"{name} must be {allowed}, got {shorten(repr(value))}")
        self.name, self.value, self.allowed = name, value, allowed

    def __reduce__(self) -> tuple[Any, ...]:  # crosses process boundaries whole
        return type(self), (self.name, self.value, self.allowed)
