"""What the theory asks of a model: arrays and functions, whoever provides them.

:class:`replica.SpikedRandomFeatures` is such a model.  Everything from the tables on is written
against this description, so that it does not depend on how a model is made, checked or named.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from solvers.results import Array

from .geometry import Geometry
from .moments import ConditionalMoments, Moments


class Function(Protocol):
    """A function of one real variable, or of several: an activation or a target."""

    @property
    def name(self) -> str: ...

    @property
    def function(self) -> Any:
        """The user's own, which may take complex numbers, too."""

    @property
    def dimension(self) -> int:
        """How many variables it has."""

    @property
    def kinks(self) -> tuple[float, ...]: ...

    def __call__(self, x: Any, /) -> Array: ...


class Student(Function, Protocol):
    """sigma."""

    def moments(self, s: Any, c: Any) -> Moments:
        """Eq. (3.2)"""

    def second_hermite(self, s: Any, c: Any) -> Array:
        """E (z^2 - 1) sigma(s + sqrt(c) z)"""


class Labels(Protocol):
    """The law of the labels given the input, as :class:`replica.problem.LabelLaw` documents it."""

    @property
    def mean(self) -> Any: ...

    @property
    def variance(self) -> float: ...

    @property
    def channel(self) -> bool: ...

    @property
    def binary(self) -> bool: ...

    @property
    def gaussians(self) -> list[tuple[float, float]]: ...

    @property
    def student_t(self) -> tuple[float, float] | None: ...

    def conditional_moments(self, gamma: Array, kappa: Array) -> ConditionalMoments: ...


class Rows(Protocol):
    """The rows of a network that has made its own step, as its model needs them."""

    @property
    def step(self) -> Any:
        """The step."""

    @property
    def row_norms(self) -> bool:
        """Whether the fluctuation of the rows' norms is kept."""

    @property
    def gamma(self) -> float:
        """Cosine of the gradient with the target."""

    @property
    def covariance(self) -> Any:
        """Covariance of the rows of neurons of first-step readout 1.  Eq. (15.1)"""

    @property
    def published(self) -> Any:
        """The published model of the same step, of width beta = 1."""

    def covariance_of(self, groups: Geometry, kinds: NDArray[np.int64]) -> Any:
        """Covariance of the rows of the groups with indices ``kinds`` (A,) among ``groups``."""

    def model(self, changed: dict[str, float], **own: float) -> Any:
        """The network after a step with ``changed`` fields; ``own`` has its width ``beta`` and its
        ``dimension``."""


class Model(Protocol):
    """Groups of neurons with spikes, the labels they are fitted to, and how."""

    @property
    def student(self) -> Student: ...

    @property
    def geometry(self) -> Geometry: ...

    @property
    def labels(self) -> Labels: ...

    @property
    def rows(self) -> Rows | None: ...

    @property
    def beta(self) -> float: ...

    @property
    def dimension(self) -> float: ...

    @property
    def intercept(self) -> bool: ...

    @property
    def train_bias(self) -> bool: ...

    def with_bias(self, bias: float, *, train_bias: bool = False) -> "Model":
        """With ``bias`` added to all neurons, for good unless one is still trained."""

    def refuse_channel(self) -> None:
        """Refuse labels that are +-1 at random where only ridge regression's equations serve."""

    def __hash__(self) -> int: ...
