"""Learning problems: activations, targets, laws of labels and readouts, groups of neurons.

Problems are checked here, on construction; packages above rely on it.
"""

from .activation import ACTIVATIONS, MOMENT_TOLERANCE, Activation
from .checks import (
    MAX_NUMBER,
    NO_SAMPLES,
    WORDS,
    any_array,
    asked,
    assign,
    axis,
    called,
    check_bytes,
    check_call,
    check_device,
    check_order,
    check_points,
    choice,
    coarsest,
    finite_array,
    flag,
    number,
    plain_array,
    positive,
    samples_of,
    unit_vector,
)
from .components import Components, Places
from .describe import describe, describe_with_step, netcdf_attributes, problem_repr
from .expressions import Expression
from .geometry import Geometry, complement_root
from .kinks import SIDES
from .label_arrays import as_numbers, one_a_row, without_gaps
from .labels import LabelLaw, LabelNoise, label_noise
from .laws import READOUT_LAWS, Law, law, laws_by_name
from .mixtures import ClassLabels, GaussianMixture, class_labels, semidefinite, separated
from .moments import Averages, ConditionalMoments, Moments
from .named_activations import Code, activation, hermite, import_object, is_import_path
from .problem import SINGLE_STEP, Problem, check_problem, check_readout, check_step, refuse_options
from .srf import Model, Origin, SpikedRandomFeatures
from .targets import (
    SPLIT_SIZES,
    MultiIndex,
    Target,
    kinks_on_axes,
    multi_index,
    parse_target,
    target,
)
