"""The one exception for bad input: it names the argument, its value and what is allowed."""

from typing import Any


class InvalidArgument(ValueError):
    """An argument outside its range.

    Attributes
    ----------
    name, value, allowed
        The parts of the message "<name> must be <allowed>, got <value>".
    """

    def __init__(self, name: str, value: Any, allowed: str) -> None:
        super().__init__(f"{name} must be {allowed}, got {value!r}")
        self.name, self.value, self.allowed = name, value, allowed

    def __reduce__(self) -> tuple[Any, ...]:  # crosses process boundaries whole
        return type(self), (self.name, self.value, self.allowed)
