"""Settings on structured inputs whose errors are known from two other programs.

The numbers were computed before this library had the theory, by trapezoidal rules and by tensor
grids of points in all directions, which agree to the digits printed; and they were simulated at
d = 500 to 1200.
"""

import numpy as np

import replica

PLUS = np.array([1, 1]) / np.sqrt(2)


def along(function, *weights):
    """A target that is a function of one combination of the coordinates."""
    name = f"{function.__name__} of {weights}"
    return replica.MultiIndex(
        lambda *z: function(sum(w * x for w, x in zip(weights, z, strict=True))),
        len(weights),
        name,
    )


def mixture(means, covariances=None, fractions=None):
    """A mixture, of covariances given by their diagonals."""
    if covariances is not None:
        covariances = [np.diag(np.array(c, float)) for c in covariances]
    return replica.GaussianMixture(means=means, covariances=covariances, fractions=fractions)


CLASSES = "classes:1,-1"
# What is trained; alpha, lam, beta.
SETTINGS = {
    1: (dict(student="tanh", target=CLASSES, alpha0=1, eta=2, inputs=mixture([[1], [-1]])),
        (2, 0.05, 1)),
    2: (dict(student="relu", target=along(np.sin, *PLUS), alpha0=3, eta=1.5,
             inputs=mixture([[1.5, 0], [-1.5, 0]])), (1.5, 0.1, 1)),
    3: (dict(student="softplus", target=along(np.tanh, *PLUS), alpha0=2, eta=3,
             inputs=mixture(np.zeros((2, 2)), [[6, 1], [1, 6]])), (2, 0.02, 1)),
    4: (dict(student="relu", target=along(np.sin, 0.6, 0.0, 0.8), alpha0=0.5, eta=1.5,
             inputs=mixture(np.zeros((2, 3)), [[3, 1, 1], [1, 11, 1]], [0.3, 0.7])), (2, 0.1, 2)),
    5: (dict(student="tanh", target="relu", alpha0=20, eta=0.7, inputs=mixture([[0]], [[5]])),
        (1, 0.05, 0.5)),
    6: (dict(student="relu", target=CLASSES, alpha0=0.3, eta=3,
             inputs=mixture([[1.2, 0], [-0.4, 0.5]], [[3, 1], [1, 1.5]], [0.3, 0.7])),
        (2, 0.1, 1)),
    7: (dict(student="softplus", target=along(np.sin, *PLUS), alpha0=5, eta=2, noise=0.2,
             inputs=mixture([[2, 0], [-0.3, 0]], [[1, 1], [1, 4]], [0.25, 0.75])), (1, 0.03, 1)),
    8: (dict(student="relu", target=along(np.tanh, *PLUS), alpha0=0.3, eta=3,
             inputs=mixture([[0, 0]], [[7, 1]])), (1, 0.05, 2)),
    9: (dict(student="tanh", target=CLASSES, alpha0=0.3, eta=4,
             inputs=mixture([[0.7, 0], [0, -0.7]], [[4, 1], [1, 4]], [0.4, 0.6])), (3, 0.02, 1)),
    10: (dict(student="relu", target="relu", alpha0=3, eta=2, noise=0.1,
              inputs=mixture([[0], [0]], [[9], [1]])), (2, 0.1, 0.5)),
}  # fmt: skip
# Test and training error of the sRF and of the network.
ERRORS = {
    1: ((0.82493940, 0.25741528), (0.82187548, 0.25770611)),
    2: ((0.45968212, 0.24911515), (0.45545708, 0.25211188)),
    3: ((0.45038756, 0.28973528), (0.43992594, 0.28756157)),
    4: ((0.35004442, 0.10849414), (0.34821378, 0.10906738)),
    5: ((1.60479816, 1.21928098), (1.58960153, 1.20977021)),
    6: ((1.59784211, 0.41286018), (1.37705486, 0.39620997)),
    7: ((0.70840299, 0.19874975), (0.72969298, 0.23153796)),
    8: ((0.81867182, 0.20926058), (0.61509807, 0.20874747)),
    9: ((1.46492227, 0.63826235), (1.42122195, 0.63858229)),
    10: ((0.08492121, 0.09358002), (0.08537311, 0.09564991)),
}
# The spike on the coordinates and on the noise of the gradient, and the bulk variance.
SPIKES = {
    1: ((1.211411, 1.211411), 1.3900950),
    2: ((0.7525353, 0.157066, 0.3608724), 0.7097572),
    4: ((0.3624378, 0, 0.3309121, 0.8263475), 1.2623785),
    6: ((0.9121269, -0.7344447, 3.3297621), 11.0892346),
    9: ((0.6783902, 1.0175853, 4.4234476), 6.2012660),
    10: ((2.5, 0.8411372), 2.4454527),
}
GAUSSIAN_ROWS = {
    1: (0.82120982, 0.25741842),
    5: (1.58037244, 1.20417026),
    8: (0.61510621, 0.20874642),
    10: (0.08531965, 0.09562471),
}
# Setting, steps of eta = 1 on alpha0 each, the network's errors, the sRF's test error.
SEVERAL_STEPS = [
    (1, [2, 2], (0.7300328, 0.2352236), 0.73076),
    (1, [2, 2, 2], (0.7175754, 0.2249847), 0.71932),
    (8, [1, 1], (0.4665031, 0.2697577), 0.46968),
    (2, [2, 2], (0.4730052, 0.2039499), 0.42936),
    (3, [2, 2], (0.5452697, 0.2242650), 0.27737),
]
# Setting, alpha0, eta, lam; share of wrong labels and training loss of the sRF and the network.
LOGISTIC = [
    (1, 2, 1, 0.05, (0.2115172, 0.2380045), (0.2115222, 0.2380269)),
    (6, 2, 1, 0.1, (0.3516507, 0.4722368), (0.3390687, 0.4679327)),
    (9, 3, 1.5, 0.05, (0.4283966, 0.5014398), (0.4281309, 0.5013049)),
]
# Setting, readouts, their shares, errors of the sRF.
READOUTS = [
    (2, [1.5, -0.5], [0.5, 0.5], (0.32063, 0.08888)),
    (1, [-1, 0.5, 2], [0.3, 0.3, 0.4], (0.82988, 0.25787)),
    (3, [1, 2], [0.6, 0.4], (0.49155, 0.27509)),
]


def setting(number, **changes):
    """The step of a setting, with other values of some fields; alpha and lam, and beta."""
    of, (alpha, lam, beta) = SETTINGS[number]
    fields = of | changes
    if "steps" in changes:
        fields = {name: value for name, value in fields.items() if name not in ("alpha0", "eta")}
    return replica.GradientStep(**fields), dict(alpha=alpha, lam=lam), beta
