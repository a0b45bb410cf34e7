"""Functions written as text: "z1 + z1*z2 + he2(z3)/2" of several directions, "relu(x) - x/2".

The text is parsed as Python arithmetic: numbers, the arguments z1 ... z4 (x is z1), + - * / **, and
calls of the named activations, exp, he0, he1, ... with one argument.  Everything else is refused.
An expression has kinks where the argument of such a call crosses a kink of the function.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.polynomial import hermite_e

from solvers.results import Array

from ..errors import InvalidArgument, hint, shorten
from .activation import ACTIVATIONS
from .checks import real
from .kinks import crossings

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


@dataclass(frozen=True)
class Expression:
    """A function of z1, ..., zr, given as text.

    Parameters
    ----------
    text : str
        Arithmetic in z1, z2, ... with calls of named functions, such as "z1 + relu(z1*z2)".
    argument : str
        Name of the argument that the text is given for, for messages.

    Raises
    ------
    InvalidArgument
        If the text is not such arithmetic.

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
        most_tree_nodes = 1000  # of a syntax tree, whose depth is then below the recursion limit
        try:
            with np.errstate(all="ignore"):
                # Python accepts letters and digits of other alphabets, too
                is_valid_text = len(self.text) <= 10_000 and self.text.isascii()
                if not is_valid_text or sum(1 for _ in ast.walk(self._tree)) > most_tree_nodes:
                    raise ValueError
                self(*np.ones(4))  # evaluates every node of the tree
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
            raise InvalidArgument(self.argument, self.text, function_hint(self.text)) from None

    @cached_property
    def _tree(self) -> ast.expr:
        """The syntax tree of the text."""
        return ast.parse(self.text.strip(), mode="eval").body

    @property
    def dimension(self) -> int:
        """The number r of arguments, the largest index of one."""
        return max(self.mentioned, default=0) + 1

    @property
    def mentioned(self) -> list[int]:
        """Indices, from 0, of the arguments in the text."""
        return sorted({int(index or 1) - 1 for index in ARGUMENT.findall(self.text)})

    def __call__(self, *z: Array) -> Array:
        """The value at arrays z1, ..., zr of one shape, real or complex."""
        tree_values = _value(self._tree, z) + np.zeros_like(z[0])
        return tree_values if np.iscomplexobj(z[0]) else real(self.argument, tree_values)

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points at which a function of z1 alone may have a kink or jump."""
        kinks_of_calls = self._kinks_of_calls()
        crossed = [crossings(partial(_array_value, node), kink) for node, kink in kinks_of_calls]
        return tuple(sorted({round(place, 13) + 0.0 for places in crossed for place in places}))

    @property
    def planes(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Planes (v, t), v.z = t, of possible kinks or jumps; curved surfaces are not included."""
        found = (_level_planes(node, kink, self.dimension) for node, kink in self._kinks_of_calls())
        return tuple(dict.fromkeys(plane for planes in found for plane in planes))

    @property
    def zeros(self) -> tuple[tuple[tuple[float, ...], float], ...]:
        """Planes (v, t) of possible sign changes; curved surfaces are not included."""
        return tuple(_level_planes(self._tree, 0.0, self.dimension))

    @property
    def normals(self) -> Array:
        """Unit vectors (m, r) along the gradients of the largest affine subexpressions."""
        return np.array(list(_normals(self._tree, self.dimension))).reshape(-1, self.dimension)

    def along(self, combinations: Array) -> str:
        """Text of the expression as a function of y = ``combinations`` z.

        The rows of ``combinations`` (k, r) are orthonormal; the expression depends on z through y.
        """

        def substituted(match: re.Match[str]) -> str:
            argument_column = combinations[:, int(match[1] or 1) - 1].tolist()
            argument_terms = [f"{x!r}*z{i}" for i, x in enumerate(argument_column, start=1) if x]
            return f"({' + '.join(argument_terms) or '0'})"

        return ARGUMENT.sub(substituted, self.text)

    def _kinks_of_calls(self) -> Iterator[tuple[ast.expr, float]]:
        """Arguments of calls, each with a kink of the function called."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                function_kinks = getattr(ACTIVATIONS.get(node.func.id), "kinks", ())
                yield from ((node.args[0], kink) for kink in function_kinks)


def is_expression(text: str) -> bool:
    """True if ``text`` contains x or one of z1, z2, ..., as an expression does."""
    return ":" not in text and re.search(r"\b(z\d|x\b)", text) is not None


def _function(name: str) -> Callable[[Array], Array]:
    """The function of one argument with this ``name``; ValueError if there is none."""
    if name in ACTIVATIONS or name == "exp":
        return np.exp if name == "exp" else ACTIVATIONS[name]
    if hermite := re.fullmatch(r"he(\d{1,2})", name):
        return cast(Callable[[Array], Array], hermite_e.HermiteE.basis(int(hermite[1])))
    raise ValueError


def function_hint(text: str) -> str:
    """Allowed functions, for a message on a ``text`` that is none, and its first unknown word, or
    the text with powers and products as Python has them.

    Examples
    --------
    >>> function_hint("tahn(x)").partition("; ")[2]
    "'tahn' is unknown (did you mean tanh?)"
    >>> function_hint("z1^3 - 2x").partition("; ")[2]
    'did you mean z1**3 - 2*x?'
    >>> function_hint("sin(z1").partition("; ")[2]
    "'(' was never closed"
    >>> function_hint("he1 + cos(2*x)").partition("; ")[2]
    'did you mean he1(x) + cos(2*x)?'
    """
    names = rf"exp|he\d{{1,2}}|{'|'.join(ACTIVATIONS)}"
    as_python = re.sub(r"(?<![\w.])(\d+(?:\.\d*)?|\.\d+) *(?=[a-z(])(?!e[-+\d])", r"\1*", text)
    words = re.findall(r"(?<![\w.])[A-Za-z_]\w*", as_python)
    known_names = re.compile(rf"x|z[1-4]|{names}")
    unknown_word = next((word for word in words if not known_names.fullmatch(word)), "")
    argument = ARGUMENT.search(text)
    called = rf"\g<0>({argument[0] if argument else 'x'})"
    as_python = re.sub(rf"\b(?:{names})\b(?! *\()", called, as_python.replace("^", "**"))
    meant = ""
    try:
        with np.errstate(all="ignore"):
            value = _value(ast.parse(as_python, mode="eval").body, tuple(np.ones(4)))
        is_meant = as_python != text and bool(np.isfinite(value))
        meant = f"; did you mean {shorten(as_python)}?" * is_meant
    except SyntaxError as error:  # such as: '(' was never closed
        meant = f"; {error.msg}" * ("(" in error.msg or ")" in error.msg)
    except (ValueError, ArithmeticError, RecursionError, MemoryError):
        pass
    if unknown_word:
        too_many = re.fullmatch(r"z\d+", unknown_word) and " (z4 is the last)"
        closest = too_many or hint(unknown_word, ACTIVATIONS)
        meant = f"; {shorten(unknown_word)!r} is unknown{closest}"
    return (
        f"one of {', '.join(ACTIVATIONS)}, a Hermite sum such as he1+he2/2, arithmetic in x, or in "
        "z1 ... z4 of a target, such as z1**2 + relu(z1*z2) + he2(z3)/2, of at most some 200 "
        "terms, or a function of your own, on the command line mymodule:act with def act(x) in "
        f"mymodule.py{meant}"
    )


def _array_value(node: ast.AST, *z: Array) -> Array:
    """The value of a ``node`` as an array of the shape of the arguments."""
    return np.asarray(_value(node, z) + np.zeros_like(z[0]), dtype=float)


def _affine_coefficients(node: ast.expr, r: int) -> tuple[float, Array] | None:
    """Coefficients a and v (r,) of a ``node`` that is affine, a + v.z; None for other nodes."""
    test_points = np.concatenate([np.zeros((1, r)), np.eye(r), _test_points(r)])
    with np.errstate(all="ignore"):
        y = _array_value(node, *test_points.T)
        node_gradient = y[1 : r + 1] - y[0]
        affine_error, size = np.abs(y - y[0] - test_points @ node_gradient).max(), np.abs(y).max()
    return (float(y[0]), node_gradient) if affine_error <= 1e-12 * (1 + size) < np.inf else None


def _test_points(r: int) -> Array:
    """Random points (48, r) that identify an expression: up to 30, as for ``activation``."""
    return np.random.default_rng(0).normal(size=(48, r)) * np.geomspace(1, 30, 48)[:, None]


def _affine_factors(node: ast.expr, value: float, r: int) -> Iterator[tuple[float, Array]]:
    """Coefficients a and v (r,) of affine factors a + v.z with the product ``node`` - ``value``.

    There are such factors if this is a quadratic form of (1, z) with at most one positive and one
    negative eigenvalue.
    """
    test_z, (i, j) = _test_points(r), np.triu_indices(r + 1)
    x, quadratic_form = np.column_stack([np.ones(len(test_z)), test_z]), np.zeros((r + 1, r + 1))
    with np.errstate(all="ignore"):
        y = _array_value(node, *test_z.T) - value
    if not np.isfinite(y).all():
        return
    quadratic_form[i, j] = np.linalg.lstsq(x[:, i] * x[:, j], y)[0]
    sizes, eigenvectors = np.linalg.eigh(quadratic_form + quadratic_form.T)
    sizes = np.where(np.abs(sizes) > 1e-12 * np.abs(sizes).max(), sizes, 0.0)
    form_gap = np.abs(np.vecdot(x @ quadratic_form, x) - y).max()
    if form_gap <= 1e-12 * np.abs(y).max() and sizes[0] <= 0 <= sizes[-1] and not sizes[1:-1].any():
        lowest_axis, highest_axis = (np.sqrt(np.abs(sizes)) * eigenvectors).T[[0, -1]]
        for factor in (highest_axis + lowest_axis, highest_axis - lowest_axis):
            a, *v = np.where(np.abs(factor) > 1e-12 * np.abs(factor).max(), factor, 0.0)
            yield float(a), np.array(v)


def _normals(node: ast.expr, r: int) -> Iterator[Array]:
    """Unit vectors along the gradients of the largest affine subexpressions of ``node``."""
    if affine_node := _affine_coefficients(node, r):
        if affine_node[1].any():
            yield affine_node[1] / np.linalg.norm(affine_node[1])
        return
    for child_node in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
        if isinstance(child_node, ast.expr):
            yield from _normals(child_node, r)


def _level_planes(
    node: ast.expr, value: float, r: int
) -> Iterator[tuple[tuple[float, ...], float]]:
    """Planes on which ``node`` has a ``value``, if it is affine, or a product of affine factors.

    A product of any two factors vanishes where one of them does.
    """
    if affine_node := _affine_coefficients(node, r):
        if affine_node[1].any():
            yield tuple(affine_node[1].tolist()), value - affine_node[0]
        return
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right) if value == 0:
            yield from _level_planes(left, 0.0, r)
            yield from _level_planes(right, 0.0, r)
        case ast.BinOp(left=factor, op=ast.Pow()) if value == 0:
            yield from _level_planes(factor, 0.0, r)
        case ast.UnaryOp(operand=operand):
            yield from _level_planes(operand, -value, r)
        case ast.BinOp():
            yield from (
                (tuple(v.tolist()), 0.0 - a) for a, v in _affine_factors(node, value, r) if v.any()
            )


def _value(node: ast.AST, z: tuple[Array, ...]) -> Any:
    """Value of a ``node`` at the arguments ``z``; ValueError if it is not valid arithmetic."""
    match node:
        case ast.Constant(value=int() | float() as node_number):
            return np.float64(node_number)  # powers of Python integers could take for ever
        case ast.Name(id=node_name) if ARGUMENT.fullmatch(node_name):
            return z[0 if node_name == "x" else int(node_name[1:]) - 1]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, z))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, z), _value(right, z))
        case ast.Call(func=ast.Name(id=node_name), args=[argument], keywords=[]):
            called_function, node_value = _function(node_name), _value(argument, z)
            if np.iscomplexobj(node_value):  # Activations are real, their functions may be complex
                called_function = getattr(called_function, "function", called_function)
            return called_function(node_value)
    raise ValueError
