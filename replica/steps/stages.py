"""Stages of the staircase: the directions of a target that giant steps learn.
docs/theory.md 11"""

import itertools
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.results import Array

from ..display import Displayed
from ..plotting import plot_staircase
from ..problem import Activation, GaussianMixture, Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Stage:
    """Directions learned in one step, one of the ``stages`` of :func:`replica.staircase`.

    Attributes
    ----------
    leap : int
        Degree k in the unknown directions at which the target first depends on them: the step
        needs n = Theta(d^k) samples.
    directions : (m, r)
        New orthonormal directions, the strongest first; of equal strengths a basis of their span,
        of which every other is as good: the axes where those of a stage span them.
    strengths : (m,)
        Eigenvalues of M_k / k! for these directions, contributions to E g^2.
    explained : float
        Share of the variance of g that functions of all directions learned so far explain.
    """

    leap: int
    directions: Array
    strengths: Array
    explained: float


@dataclass(frozen=True, eq=False, repr=False)
class Staircase(Displayed):
    """The staircase of a target: the directions learned, stage by stage.

    Returned by :func:`replica.staircase`.

    Attributes
    ----------
    target : MultiIndex, Activation or ClassLabels
    inputs : GaussianMixture or None
        Law of the inputs; None stands for N(0, I).
    student : Activation or None
        Activation of the neurons; None stands for one with all Hermite degrees.
    bias : tuple of float
        The values of their biases.
    degree : int
        Highest degree of the tensors.
    mean, variance : float
        Mean and variance of g(z).
    tensors : tuple of arrays (), (r,), (r, r), ...
        C_0 to C_degree; with ``inputs``, E g and E z g.
    stages : tuple of Stage
        Stages in the order they are learned; empty if the leap of the target is above ``degree``.
    error : float
        Estimated quadrature error of the averages, relative to the variance.
    resolution : float
        Share of the variance below which a connection counts as zero: the larger of the threshold
        and 10 ``error``.
    """

    target: Target
    inputs: GaussianMixture | None
    student: Activation | None
    bias: tuple[float, ...]
    degree: int
    mean: float
    variance: float
    tensors: tuple[Array, ...]
    stages: tuple[Stage, ...]
    error: float
    resolution: float

    @property
    def settings(self) -> dict[str, Any]:
        """Student, biases, target, inputs and highest degree, in plain values."""
        student: dict[str, Any] = {} if self.student is None else {"student": self.student.name}
        if any(self.bias):
            student["bias"] = self.bias[0] if len(self.bias) == 1 else list(self.bias)
        inputs = {} if self.inputs is None else {"inputs": self.inputs.described}
        return student | {"target": self.target.name} | inputs | {"degree": self.degree}

    @property
    def dimension(self) -> int:
        """The number r of directions of the target or, if given, of the law of the inputs."""
        return len(self.tensors[1])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot of the stages, by :func:`replica.plotting.plot_staircase`."""
        return plot_staircase(self, ax)

    def _facts(self) -> dict[str, Any]:
        stages = [f"n ~ d^{stage.leap}: {stage.explained:.3g}" for stage in self.stages]
        learned = f"{len(self.directions)} of {self.dimension} directions"
        return {"leap": self.leap, "explained": "; then ".join(stages) or "nothing", "met": learned}

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"step": step, "leap": stage.leap, "strength": strength, "explained": stage.explained}
            | {f"z{i}": coordinate for i, coordinate in enumerate(direction.tolist(), start=1)}
            for step, stage in enumerate(self.stages, start=1)
            for direction, strength in zip(stage.directions, stage.strengths.tolist(), strict=True)
        ]

    @property
    def powers(self) -> Array:
        """Share of the variance at each Hermite degree, 0 to ``degree``: |C_k|^2 / k!.

        The share of degree 0 is 0.  NaN if ``inputs`` are given.
        """
        if self.inputs is not None:
            return np.full(self.degree + 1, np.nan)
        norms = [float((C**2).sum()) / factorial(k) for k, C in enumerate(self.tensors)]
        return np.array([0.0, *norms[1:]]) / self.variance

    @property
    def leap(self) -> int | None:
        """Leap index, the first k >= 1 with C_k != 0; None above ``degree``.

        For one direction it is the information exponent.
        """
        return self.stages[0].leap if self.stages else None

    @property
    def directions(self) -> Array:
        """Directions of all stages, orthonormal rows (m, r)."""
        return _stacked_directions(self.stages, self.dimension)

    @property
    def linear_stages(self) -> int:
        """Number of stages reached with n = Theta(d) samples in every step."""
        return len(list(itertools.takewhile(lambda stage: stage.leap == 1, self.stages)))

    @property
    def learned(self) -> Array:
        """Directions (m, r) learned with n = Theta(d) samples in every step."""
        return _stacked_directions(self.stages[: self.linear_stages], self.dimension)


def _stacked_directions(stages: tuple[Stage, ...], r: int) -> Array:
    """Directions of the ``stages`` as rows (m, r)."""
    return np.concatenate([np.empty((0, r)), *(stage.directions for stage in stages)])
