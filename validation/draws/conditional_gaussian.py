"""The conditional Gaussian model: features of the equivalence itself, at finite size.

Given the projections kappa of an input on the spikes, the feature of neuron i in group b is

    phi_i = mu_0^b(kappa) + mu_1^b(kappa) sqrt(c_b) w_i . x + mu_2^b(kappa) xi_i         (3.1)

with w_i uniform on the sphere and xi_i ~ N(0, 1) fresh for every neuron and sample.  The
activation acts on kappa alone, through the moments (3.2), taken at the kappa of every sample:
no table and no interpolation.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from replica.problem import SpikedRandomFeatures

from . import arrays
from .features import Instance, draw, shares


@dataclass(frozen=True, eq=False)
class GaussianInstance(Instance):
    """A drawn bulk whose features are (3.1).  ``W`` has the rows sqrt(c_b) w_i, no spikes.

    Attributes
    ----------
    model : SpikedRandomFeatures
    group : (p,) of int
        The group b of each neuron in ``model.geometry``.
    """

    model: SpikedRandomFeatures = field(kw_only=True)
    group: NDArray[np.int64] = field(kw_only=True)

    def features(self, X: Any, bias: float = 0.0, rng: Generator | None = None) -> Any:
        """Phi of (3.1), (n, p); ``rng`` draws xi."""
        g = self.model.geometry
        kappa = arrays.to_host(X[:, : g.r.shape[1]])
        shift = kappa @ g.r.T + g.bias + bias
        # Eq. (3.2), (n, A)
        mean, first, variance = self.student.moments(shift, g.c)
        slope, spread = first / np.sqrt(g.c), np.sqrt(variance + self.feature_noise)
        xi = np.random.default_rng(rng).standard_normal((len(shift), len(self.group)))
        xi *= spread[:, self.group]
        xi += mean[:, self.group]
        fields = X @ self.W.T
        fields *= arrays.like(slope[:, self.group], X)
        fields += arrays.like(xi, X)
        return fields


def draw_gaussian(model: SpikedRandomFeatures, *, dimension: int, rng: Any) -> GaussianInstance:
    """The conditional Gaussian model of ``model``, on the bulk that ``draw`` gives its sRF.

    Parameters and errors are those of :func:`draw`.

    Examples
    --------
    >>> import numpy as np
    >>> from replica import SpikedRandomFeatures
    >>> from validation.draws import draw_gaussian
    >>> model = SpikedRandomFeatures(student="tanh", target="sin", r=1.0, c=1.0, gamma=0.9)
    >>> layer = draw_gaussian(model, dimension=30, rng=0)
    >>> X = np.random.default_rng(1).standard_normal((5, 30))
    >>> layer.features(X, rng=np.random.default_rng(2)).shape
    (5, 30)
    """
    layer = draw(model, dimension=dimension, rng=rng)
    g = model.geometry
    group = shares(np.arange(len(g.c)), g.fractions, len(layer.W))
    layer.W[:, : g.r.shape[1]] -= g.r[group]
    return GaussianInstance(**vars(layer), model=model, group=group)
