"""What is trained on what: activations, targets, laws of labels and readouts, groups of neurons.

A problem is made and checked here, once; everything above takes it as it is.
"""

from .activation import ACTIVATIONS, LAYERS, MOMENT_NODES, MOMENT_TOLERANCE, Activation
from .checks import FINITE, axis, logarithms, number, positive
from .describe import attributes, describe
from .expressions import Expression
from .geometry import Geometry, distinct, remainder
from .labels import LabelLaw, LabelNoise, label_noise, zeros
from .laws import NAMES, Law, law
from .model import Model, Student
from .moments import ConditionalMoments, Moments
from .named import activation, hermite, imported
from .problem import Problem, assign, check_problem, check_step
from .srf import SpikedRandomFeatures, check_model
from .targets import MultiIndex, Target, target

__all__ = [
    "ACTIVATIONS",
    "FINITE",
    "LAYERS",
    "MOMENT_NODES",
    "MOMENT_TOLERANCE",
    "NAMES",
    "Activation",
    "ConditionalMoments",
    "Expression",
    "Geometry",
    "LabelLaw",
    "LabelNoise",
    "Law",
    "Model",
    "Moments",
    "MultiIndex",
    "Problem",
    "SpikedRandomFeatures",
    "Student",
    "Target",
    "activation",
    "assign",
    "attributes",
    "axis",
    "check_model",
    "check_problem",
    "check_step",
    "describe",
    "distinct",
    "hermite",
    "imported",
    "label_noise",
    "law",
    "logarithms",
    "number",
    "positive",
    "remainder",
    "target",
    "zeros",
]
