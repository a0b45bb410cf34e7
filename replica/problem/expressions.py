"""Targets of several directions written as text: "z1 + z1*z2 + he2(z3)/2".

The text is read as Python's arithmetic and nothing else: numbers, the arguments z1 ... z4,
+ - * / **, and calls of one argument of the named activations, exp, cos, abs, he0, he1, ...
"""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial import hermite_e

from solvers.results import Array

from ..errors import InvalidArgument
from .checks import real
from .named import ACTIVATIONS

# Levels of brackets and operations inside each other, of which a chain of n terms has n: far fewer
# than Python's calls may be deep, wherever the expression is evaluated.
MOST_LEVELS = 100
MOST_CHARACTERS = 10_000
ARGUMENT = re.compile(r"z([1-4])")
HERMITE = re.compile(r"he(\d{1,2})")
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "cos": np.cos,
    "abs": np.abs,
    **ACTIVATIONS,
}
GRAMMAR = (  # what may be written, for messages
    "arithmetic in z1 ... z4, with calls of he0, he1, ..., "
    f"{', '.join(FUNCTIONS)}, as in z1 + z1*z2 + he2(z3)/2, "
    f"at most {MOST_LEVELS} terms or levels of brackets"
)


@dataclass(frozen=True)
class Expression:
    """A function of z1, ..., zr given by its text.

    Raises
    ------
    InvalidArgument
        If the text is anything but such arithmetic.

    Examples
    --------
    >>> f = Expression("z1 + he2(z2)/2")
    >>> f.dimension, float(f(np.array(1.0), np.array(3.0)))
    (2, 5.0)
    """

    text: str

    def __post_init__(self) -> None:
        try:
            with np.errstate(all="ignore"):
                if len(self.text) > MOST_CHARACTERS or _levels(self._tree) > MOST_LEVELS:
                    raise ValueError
                self(*np.ones(4))  # meets every part of the text
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
            raise InvalidArgument("target", self.text, GRAMMAR) from None

    @cached_property
    def _tree(self) -> ast.expr:
        """The parsed text."""
        return ast.parse(self.text.strip(), mode="eval").body

    @property
    def dimension(self) -> int:
        """r, the largest index of an argument."""
        return max((int(index) for index in ARGUMENT.findall(self.text)), default=1)

    def __call__(self, *z: Array) -> Array:
        """The value at arrays z1, ..., zr of one shape."""
        return real("target", _value(self._tree, z) + np.zeros_like(z[0]))


def is_expression(text: str) -> bool:
    """Whether ``text`` mentions one of z1, z2, ... and so is meant as an expression."""
    return ":" not in text and re.search(r"\bz\d", text) is not None


def _levels(tree: ast.AST) -> int:
    """How many nodes lie inside each other at most; without recursion."""
    levels, inside = 0, [tree]
    while inside:
        levels += 1
        inside = [child for node in inside for child in ast.iter_child_nodes(node)]
    return levels


def _value(node: ast.AST, z: tuple[Array, ...]) -> Any:
    """The value of an expression's ``node`` at the arguments ``z``.

    Raises
    ------
    ValueError
        If it is none of those that may be written.
    """
    match node:
        case ast.Constant(value=int() | float() as number):
            return np.float64(number)  # powers of integers would not end
        case ast.Name(id=name) if ARGUMENT.fullmatch(name):
            return z[int(name[1:]) - 1]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, z))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, z), _value(right, z))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](_value(argument, z))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if (
            hermite := HERMITE.fullmatch(name)
        ):
            return hermite_e.HermiteE.basis(int(hermite[1]))(_value(argument, z))
    raise ValueError
