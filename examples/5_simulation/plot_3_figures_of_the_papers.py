r"""
A figure of a paper, and its values
===================================

Every figure of the three papers is one command, ``replica-validate figure cui/2 --plot a.png``, and
two functions: one computes its values, the other draws them. Here the values of the quick version
are drawn in another way, against the samples of the step.
"""

import matplotlib.pyplot as plt

from validation.figures import Run, figure

# figure("cui/2").draw(values) is the figure itself
values = figure("cui/2").values(Run(quick=True))
alpha0 = [1, 2, 5, 20]
for at, alpha in enumerate(values["panels"][0][0]["simulated_at"]):
    points = [curve["test_error"]["simulated"][at] for curve in values["panels"][0]]
    mean, stderr = zip(*points, strict=True)
    label = rf"networks, $d = {values['dimension']}$, $\alpha = {alpha:g}$"
    plt.errorbar(alpha0, mean, stderr, fmt="o", color=f"C{at}", label=label)
linear = values["panels"][0][0]["linear"]
plt.axhline(linear, color="0.5", linestyle=":", label="best linear predictor")
plt.xscale("log")
plt.title("tanh student, sin target, one giant step")
plt.xlabel(r"gradient samples per dimension $\alpha_0$")
plt.ylabel("test error")
plt.legend()
