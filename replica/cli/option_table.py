"""The table of options that describe a problem: the text of the file that ``replica init`` writes.

Each option has its meaning and an example of its value.  The help of the commands and problem files
read this table; which values a field may have is for the problem classes to say.
"""

import re
from dataclasses import Field, fields
from typing import Any

from ..problem import ACTIVATIONS, READOUT_LAWS, SpikedRandomFeatures
from ..steps import GradientStep
from .values import GRID_FORMS

TABLE = f"""# A problem, for the commands of replica and replica-validate: --config and this file.
# Numbers: {GRID_FORMS}, or a list.
# What is typed on the command line takes the place of what stands here.

# The network and its step

# Activation: {", ".join(ACTIVATIONS)}, he1+he2/2, or yours, module:function.
student = "tanh"
# Target: an expression in z1 ... z4 such as z1 + relu(z1*z2), a name such as sin, or
# module:function; with --inputs also classes:1,-1.
target = "sin"
# Where a student or target module:function bends or jumps: -1,1.
# kinks = [-1, 1]
# Samples of the step n0/d; inf, the population's; or alpha, as many as the readout's.
alpha0 = 20
# Learning rate eta~ = eta/p of the step; best in replica curve and plan.
eta = 3
# Learning rate eta/d = eta~ beta, in the place of --eta: the same at every beta.
# rate = 3
# Several steps, in the place of --alpha0 and --eta: alpha0:eta,alpha0:eta.
# steps = "2:1,2:1"
# Target of the step's samples, if not --target.
# step_target = "z1"
# Noise variance of the step's samples, if not --noise.
# step_noise = 0.1
# Weight decay: what the step takes off the rows, in [0, 1) (0 unless given).
# decay = 0.1
# Width p/d (1 unless given).
beta = 1
# First-step readout: {", ".join(READOUT_LAWS)}, or values: -1,1.  What papers call
# uniform is equal.
# readout = "gaussian"
# Untrained biases of the neurons: values (-1,1), or b.npy of --weights (0 unless given).
# bias = [-1, 1]
# Rows before the steps: sphere or gaussian.
# initialisation = "gaussian"
# Theory of a step: srf, as published (unless given, of replica), or network, the network
# itself (of replica-validate).
# theory = "network"
# Share of the readout's samples that the step has seen, of the network itself: 1 trains both
# layers on the same samples (0 unless given).
# reuse = 1

# Spiked random features, in the place of a step

# Length of the spike.
# r = 1.1
# Variance of the bulk.
# c = 1
# Cosine of spike and target.
# gamma = 0.97

# A given first layer, or given features

# First layer (p, d): W.npy, or one of the arrays of FILE.npz, FILE.safetensors or FILE.onnx,
# as FILE.npz:NAME.
# weights = "W.npy"
# The target's directions, (d,) or (d, T), orthonormal: such a file.
# directions = "D.npy"
# Features (N, p), in the place of --weights: such a file.
# features = "F.npy"
# Their labels (N,), real numbers or classes: such a file.
# labels = "y.npy"
# Ids (N,) of strata in which features are Gaussian: such a file.  Every row is a stratum
# unless given.
# strata = "s.npy"
# Names of the classes of --labels, a,b,c, in the order of --confusion, or all: of labels that
# are floats, or of more than 20 values; or none: these are numbers.
# classes = ["cat", "dog", "owl"]

# The readout and its data

# TOML file with means, covariances, fractions of Gaussian inputs: lists, or names of files
# beside it.  N(0, I) unless given.
# inputs = "inputs.toml"
# Readout samples n/d: like all numbers here {GRID_FORMS}.
alpha = "0.2:3:15"
# Readout samples n, with --weights or --features: numbers, which are rounded.
# samples = "100:3000:12:log"
# Ridge penalty lambda; best in replica curve, plan and readout.
lam = [0.01, 0.1]
# square (unless given), huber:D, absolute, quantile:Q; on labels +-1 also logistic, hinge,
# squared_hinge.
# loss = "huber:0.2"
# Variance Delta of the label noise (0 unless given).
noise = 0
# Heavier tails: outliers:SHARE:VARIANCE, student:NU; labels +-1: flip:P, logistic, probit.
# label_noise = "flip:0.1"
# Train an output intercept.
# intercept = true
# Train one bias common to all neurons.
# train_bias = true
"""

PANELS: dict[str, dict[str, str]] = {}  # the help of every option, in the panels of the commands
_comments: list[str] = []
for _line in TABLE.splitlines():
    if _option := re.match(r"(?:# )?(\w+) = ", _line):
        PANELS[[*PANELS][-1]][_option[1]] = " ".join(_comments)
    elif _line:
        _comments.append(_line.removeprefix("# "))
        continue
    elif len(_comments) == 1:  # a comment by itself is a title
        PANELS[_comments[0]] = {}
    _comments.clear()
HELP = {name: text for panel in PANELS.values() for name, text in panel.items()}
_all_fields = (*fields(GradientStep), *fields(SpikedRandomFeatures))
FIELDS: dict[str, Field[Any]] = {f.name: f for f in _all_fields if f.name in HELP}
FLAGS = tuple(name for name, f in FIELDS.items() if f.type is bool)
STEP_FIELDS, SRF_FIELDS = ("alpha0", "eta"), ("r", "c", "gamma")
# Numbers, or grids of them, in the order of the axes; the readout may be a grid of names.
GRIDS = (
    *STEP_FIELDS, "rate", *SRF_FIELDS, "beta", "noise", "step_noise", "decay", "alpha", "samples",
    "lam",
)  # fmt: skip
# What is given in files, in the place of a problem.
GIVEN_FILES = ("weights", "directions", "features", "labels", "strata")
OF_PROBLEMS = tuple(name for name in HELP if name not in (*GIVEN_FILES, "classes", "samples"))
