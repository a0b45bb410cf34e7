"""Functions written as text: "z1 + z1*z2 + he2(z3)/2" of several directions, "relu(x) - x/2".

The text is read as Python's arithmetic and nothing else: numbers, the arguments z1 ... z4, of which
the first is x as well, + - * / **, and calls of one argument of the named activations, exp, he0,
he1, ...  It bends and jumps where the argument of such a call passes a kink of the function.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.polynomial import hermite_e

from solvers.results import Array

from ..errors import InvalidArgument
from .activation import ACTIVATIONS
from .checks import real
from .kinks import crossings

# Levels of brackets and operations inside each other, of which a chain of n terms has n: far fewer
# than Python's calls may be deep, wherever the expression is evaluated.
MOST_LEVELS = 100
ARGUMENT = re.compile(r"\b(?:z([1-4])|x)\b")
OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
# What others call the activations.
ELSEWHERE = {
    "max": "relu", "maximum": "relu", "sgn": "sign", "heaviside": "sign", "step": "sign",
    "logistic": "sigmoid", "expit": "sigmoid", "identity": "linear", "sine": "sin", "swish": "silu",
    "cosine": "cos",
}  # fmt: skip
OWN = "a function of your own, on the command line mymodule:act with def act(x) in mymodule.py"


@dataclass(frozen=True)
class Expression:
    """A function of z1, ..., zr given by its text.

    Parameters
    ----------
    text : str
        Arithmetic of z1, z2, ... with the functions that are named, such as "z1 + relu(z1*z2)".
    argument : str
        What it is the text of, for messages.

    Raises
    ------
    InvalidArgument
        If the text is anything but such arithmetic.

    Examples
    --------
    >>> import numpy as np
    >>> from replica.problem import Expression
    >>> f = Expression("z1 + he2(z2)/2")
    >>> f.dimension, float(f(np.array(1.0), np.array(3.0)))
    (2, 5.0)
    """

    text: str
    argument: str = "target"

    def __post_init__(self) -> None:
        try:
            with np.errstate(all="ignore"):
                # other alphabets have letters and digits that Python takes for these
                short = len(self.text) <= 10_000 and self.text.isascii()
                if not short or _levels(self._tree) > MOST_LEVELS:
                    raise ValueError
                self(*np.ones(4))  # meets every part of the text
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
            signs = {"^": "** for a power", "|": "abs(z1) for |z1|"}  # of mathematics
            here = [f"written with {ours}" for sign, ours in signs.items() if sign in self.text]
            allowed = here[0] if here else near(self.text) or _grammar()
            raise InvalidArgument(self.argument, self.text, allowed) from None

    @cached_property
    def _tree(self) -> ast.expr:
        """The parsed text."""
        return ast.parse(self.text.strip(), mode="eval").body

    @property
    def dimension(self) -> int:
        """r, the largest index of an argument."""
        return max(self.mentioned, default=0) + 1

    @property
    def mentioned(self) -> list[int]:
        """The coordinates that it is written in, from 0."""
        return sorted({int(index or 1) - 1 for index in ARGUMENT.findall(self.text)})

    def __call__(self, *z: Array) -> Array:
        """The value at arrays z1, ..., zr of one shape, complex where they are."""
        values = _value(self._tree, z) + np.zeros_like(z[0])
        return values if np.iscomplexobj(z[0]) else real(self.argument, values)

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where a function of z1 alone may bend or jump."""
        found = [crossings(partial(_at, node), kink) for node, kink in self._passed()]
        return tuple(sorted({round(place, 13) + 0.0 for places in found for place in places}))

    @property
    def planes(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Planes (v, t), v.z = t, at which it may bend or jump; other surfaces are left out."""
        found = (_planes(node, kink, self.dimension) for node, kink in self._passed())
        return tuple(dict.fromkeys(plane for planes in found for plane in planes))

    @property
    def zeros(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Planes (v, t) at which it may change its sign; other surfaces are left out."""
        return tuple(_planes(self._tree, 0.0, self.dimension))

    @property
    def normals(self) -> Array:
        """Unit vectors (m, r) along which the affine parts vary that it is made of."""
        return np.array(list(_normals(self._tree, self.dimension))).reshape(-1, self.dimension)

    def along(self, combinations: Array) -> str:
        """The text of the function of y = ``combinations`` z, (k, r) with orthonormal rows, if it
        depends on z through y alone."""

        def within(found: re.Match[str]) -> str:
            column = combinations[:, int(found[1] or 1) - 1].tolist()
            terms = [f"{x!r}*z{i}" for i, x in enumerate(column, start=1) if x]
            return f"({' + '.join(terms) or '0'})"

        return ARGUMENT.sub(within, self.text)

    def _passed(self) -> Iterator[tuple[ast.expr, float]]:
        """Arguments of calls, each with a value at which the function called has a kink."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                kinks = getattr(ACTIVATIONS.get(node.func.id), "kinks", ())
                yield from ((node.args[0], kink) for kink in kinks)


def is_expression(text: str) -> bool:
    """Whether ``text`` mentions x or one of z1, z2, ... and so is meant as an expression."""
    return ":" not in text and re.search(r"\b(z\d|x\b)", text) is not None


def _function(name: str) -> Callable[[Array], Array]:
    """The function of one argument that is called by that name; a ValueError if there is none."""
    if name in ACTIVATIONS or name == "exp":
        return np.exp if name == "exp" else ACTIVATIONS[name]
    if hermite := re.fullmatch(r"he(\d{1,2})", name):
        return cast(Callable[[Array], Array], hermite_e.HermiteE.basis(int(hermite[1])))
    raise ValueError


def _grammar() -> str:
    """What may be written, for messages."""
    return (
        "arithmetic in z1 ... z4 (x is z1), with calls of exp, he0, he1, ..., "
        f"{', '.join(ACTIVATIONS)}, as in z1 + z1*z2 + he2(z3)/2, at most {MOST_LEVELS} terms or "
        "levels of brackets; or a function, on the command line module:function"
    )


def _at(node: ast.AST, *z: Array) -> Array:
    """The value of a ``node`` as an array of the shape of the arguments."""
    return np.asarray(_value(node, z) + np.zeros_like(z[0]), dtype=float)


def _affine(node: ast.expr, r: int) -> tuple[float, Array] | None:
    """a and v (r,) of a ``node`` that is a + v.z; None of any other."""
    at = np.concatenate([np.zeros((1, r)), np.eye(r), _places(r)])
    with np.errstate(all="ignore"):
        y = _at(node, *at.T)
        v = y[1 : r + 1] - y[0]
        off, size = np.abs(y - y[0] - at @ v).max(), np.abs(y).max()
    return (float(y[0]), v) if off <= 1e-12 * (1 + size) < np.inf else None


def _places(r: int) -> Array:
    """Points (48, r) at which a node is told from others: up to 30, as for ``activation``."""
    return np.random.default_rng(0).normal(size=(48, r)) * np.geomspace(1, 30, 48)[:, None]


def _factors(node: ast.expr, value: float, r: int) -> Iterator[tuple[float, Array]]:
    """a and v (r,) of the factors a + v.z of a ``node`` less its ``value``, if that is a product of
    two of them: a quadratic form of (1, z) with one positive and one negative eigenvalue."""
    z, (i, j) = _places(r), np.triu_indices(r + 1)
    x, form = np.column_stack([np.ones(len(z)), z]), np.zeros((r + 1, r + 1))
    with np.errstate(all="ignore"):
        y = _at(node, *z.T) - value
    if not np.isfinite(y).all():
        return
    form[i, j] = np.linalg.lstsq(x[:, i] * x[:, j], y)[0]
    sizes, vectors = np.linalg.eigh(form + form.T)
    sizes = np.where(np.abs(sizes) > 1e-12 * np.abs(sizes).max(), sizes, 0.0)
    off = np.abs(np.vecdot(x @ form, x) - y).max()
    if off <= 1e-12 * np.abs(y).max() and sizes[0] <= 0 <= sizes[-1] and not sizes[1:-1].any():
        low, high = (np.sqrt(np.abs(sizes)) * vectors).T[[0, -1]]
        for factor in (high + low, high - low):
            a, *v = np.where(np.abs(factor) > 1e-12 * np.abs(factor).max(), factor, 0.0)
            yield float(a), np.array(v)


def _normals(node: ast.expr, r: int) -> Iterator[Array]:
    """Unit vectors along the largest affine parts of ``node``."""
    if affine := _affine(node, r):
        if affine[1].any():
            yield affine[1] / np.linalg.norm(affine[1])
        return
    for part in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
        if isinstance(part, ast.expr):
            yield from _normals(part, r)


def _planes(node: ast.expr, value: float, r: int) -> Iterator[tuple[tuple[float, ...], float]]:
    """Where ``node`` has a ``value``, if it is affine, or a product of two such factors beside it;
    any product changes its sign where a factor does."""
    if affine := _affine(node, r):
        if affine[1].any():
            yield tuple(affine[1].tolist()), value - affine[0]
        return
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right) if value == 0:
            yield from _planes(left, 0.0, r)
            yield from _planes(right, 0.0, r)
        case ast.BinOp(left=factor, op=ast.Pow()) if value == 0:
            yield from _planes(factor, 0.0, r)
        case ast.UnaryOp(operand=operand):
            yield from _planes(operand, -value, r)
        case ast.BinOp():
            yield from (
                (tuple(v.tolist()), 0.0 - a) for a, v in _factors(node, value, r) if v.any()
            )


def _levels(tree: ast.AST) -> int:
    """How many nodes lie inside each other at most; without recursion."""
    levels, inside = 0, [tree]
    while inside:
        levels += 1
        inside = [child for node in inside for child in ast.iter_child_nodes(node)]
    return levels


def _value(node: ast.AST, z: tuple[Array, ...]) -> Any:
    """The value of an expression's ``node`` at the arguments ``z``; a ValueError if it is none of
    those that may be written."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return np.float64(number)  # powers of integers would not end
        case ast.Name(id=name) if ARGUMENT.fullmatch(name):
            return z[0 if name == "x" else int(name[1:]) - 1]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, z))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, z), _value(right, z))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            function, value = _function(name), _value(argument, z)
            if np.iscomplexobj(value):  # an activation takes real numbers, what it is of may not
                function = getattr(function, "function", function)
            return function(value)
    raise ValueError


def near(text: str) -> str:
    """What may be written in the place of ``text`` where a word of it comes close to a name; empty
    where none does.

    Examples
    --------
    >>> near("tahn").partition(", or")[0], near("mish")
    ('made of functions known here (did you mean tanh?)', '')
    """
    for word in re.findall("[a-z_]{3,}", text.lower()):
        usual = ELSEWHERE.get(word, word if len(word) > 3 else "")
        close = get_close_matches(usual, ACTIVATIONS, n=1, cutoff=0.8)
        close = close or [name for name in ACTIVATIONS if sorted(name) == sorted(word)]
        close = close or ["relu"] * ("relu" in word)
        if close and word not in ACTIVATIONS:
            return f"made of functions known here (did you mean {close[0]}?), or {OWN}"
    return ""
