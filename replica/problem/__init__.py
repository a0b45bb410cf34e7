"""What is trained on what: activations, targets, laws of labels and readouts, groups of neurons.

A problem is made and checked here, once; everything above takes it as it is.
"""

from .activation import ACTIVATIONS, MOMENT_TOLERANCE, Activation
from .checks import (
    FINITE,
    any_array,
    assign,
    axis,
    called,
    check_device,
    check_order,
    check_points,
    choice,
    coarsest,
    finite_array,
    flag,
    limits,
    logarithms,
    number,
    one_positive,
    plain_array,
    positive,
    stacked,
    takes,
    tolerance,
    unit_vector,
)
from .components import Components, Places
from .describe import as_made, attributes, describe, shown
from .expressions import Expression
from .geometry import Geometry, remainder, triangular_root
from .labels import LabelLaw, LabelNoise, label_noise
from .laws import READOUT_LAWS, Law, law, laws_by_name
from .mixtures import ClassLabels, GaussianMixture, class_labels, semidefinite
from .moments import Averages, ConditionalMoments, Moments
from .named import Code, activation, hermite, imported, names_code
from .problem import Problem, check_noise, check_problem, check_step, check_width
from .srf import Model, Origin, SpikedRandomFeatures, check_model
from .targets import MultiIndex, Target, multi_index, on_inputs, target

__all__ = [
    "ACTIVATIONS",
    "FINITE",
    "MOMENT_TOLERANCE",
    "READOUT_LAWS",
    "Activation",
    "Averages",
    "ClassLabels",
    "Code",
    "Components",
    "ConditionalMoments",
    "Expression",
    "GaussianMixture",
    "Geometry",
    "LabelLaw",
    "LabelNoise",
    "Law",
    "Model",
    "Moments",
    "MultiIndex",
    "Origin",
    "Places",
    "Problem",
    "SpikedRandomFeatures",
    "Target",
    "activation",
    "any_array",
    "as_made",
    "assign",
    "attributes",
    "axis",
    "called",
    "check_device",
    "check_model",
    "check_noise",
    "check_order",
    "check_points",
    "check_problem",
    "check_step",
    "check_width",
    "choice",
    "class_labels",
    "coarsest",
    "describe",
    "finite_array",
    "flag",
    "hermite",
    "imported",
    "label_noise",
    "law",
    "laws_by_name",
    "limits",
    "logarithms",
    "multi_index",
    "names_code",
    "number",
    "on_inputs",
    "one_positive",
    "plain_array",
    "positive",
    "remainder",
    "semidefinite",
    "shown",
    "stacked",
    "takes",
    "target",
    "tolerance",
    "triangular_root",
    "unit_vector",
]
