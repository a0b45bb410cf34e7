"""Parameters and values as figures write them: symbols, labels of errors, settings in a title."""

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from ..display import LAWS, plain_law
from ..errors import InvalidArgument

LABELS = {
    "alpha": r"readout samples per dimension $\alpha = n/d$",
    "samples": r"readout samples $n$",
    "lam": r"ridge penalty $\lambda$",
    "alpha0": r"gradient samples per dimension $\alpha_0 = n_0/d$",
    "eta": r"learning rate $\tilde\eta$",
    "rate": r"learning rate over dimension $\eta/d$",
    "beta": r"width over dimension $\beta = p/d$",
    "noise": r"label noise variance $\Delta$",
    "step_noise": r"label noise variance of the step $\Delta_0$",
    "decay": r"weight decay of the step $\omega$",
    "separation": "factor of the means of the inputs $s$",
    "r": r"spike length $r$",
    "c": r"bulk variance $c$",
    "gamma": r"spike-target cosine $\gamma$",
    "dimension": "input dimension $d$",
    "width": "width $p$",
    "kappa": r"projection on the spike $\kappa = u\cdot x$",
}
ERROR_LABELS = {
    "test_error": r"test error $\epsilon_g$",
    "train_error": r"training error $\epsilon_t$",
    "classification_error": "classification error on new labels",
    "loss_error": "mean loss on new samples",
    "train_loss": "mean loss on the training samples",
}
THEORIES = {"network": "theory of the network", "srf": "theory of the sRF"}
BEST_OF = {name: f"best {LABELS[name]}" for name in ("lam", "eta")}
DRAWN = ERROR_LABELS | BEST_OF  # ordinates of figures


def at_best(curve: Any, error: str) -> str:
    """End of the label of an ``error`` where the best lam, or eta, is searched, which says of what
    unless it is of this error; else empty."""
    of_alphas = ["alpha"] * ("alpha" in curve.data_vars)  # scikit-learn's, of a ProbeCurve
    searched = [name for name in BEST_OF if "at_edge" in curve and name in curve.data_vars]
    other_loss = "loss" in curve.attrs  # of a ProbeCurve of another loss than the square
    minimised, words = ("loss_error", "loss") if other_loss else ("test_error", "squared error")
    label = best_label(searched + of_alphas)
    return f"{label} of the {words}" if label and error != minimised else label


def best_label(searched: Sequence[str]) -> str:
    """End of an error's label where these parameters are the best; empty if there are none."""
    return f" at the best {' and '.join(map(symbol, searched))}" if searched else ""


def error_drawn(known: Container[Any], error: str | None = None) -> str:
    """Error to draw: ``error``, if it is ``known``, or by default the most important one."""
    default_error = "classification_error" if "classification_error" in known else "test_error"
    error_name = default_error if error is None else error
    if error_name not in DRAWN or error_name not in known:
        allowed_errors = ", ".join(error_label for error_label in DRAWN if error_label in known)
        raise InvalidArgument("error", error, f"one of {allowed_errors}")
    return error_name


def axis_label(curve: Any, dim: str) -> str:
    """Label of a dimension of a data set: its own, its parameter's or its name."""
    return str(curve[dim].attrs.get("long_name", LABELS.get(dim, dim)))


def symbol(name: str) -> str:
    """The symbol of a parameter, out of its label; the name of one that has no label."""
    label = LABELS.get(name, name)
    return label[label.index("$") :].split(" = ")[0].rstrip("$") + "$" if "$" in label else name


def setting(name: str, value: Any) -> str:
    r"""A setting as a legend states it.

    Examples
    --------
    >>> setting("alpha0", np.inf), setting("readout", "gaussian"), setting("lam", 1e-5)
    ('$\\alpha_0 = \\infty$', 'readout gaussian', '$\\lambda = 10^{-5}$')
    >>> setting("classes", "cat -1, dog +1")
    'classes cat → $-1$, dog → $+1$'
    >>> setting("alpha0", "alpha")  # of a step on the samples of the readout
    '$\\alpha_0 = \\alpha$'
    """
    if isinstance(value, str):
        if name == "theory" and value in THEORIES:
            return THEORIES[value]
        if value in LABELS:
            return f"${symbol(name).strip('$')} = {symbol(value).strip('$')}$"
        setting_text = f"{name.replace('_', ' ')} {plain(value)}"
        return re.sub(r"^(classes .+) -1, (.+) \+1$", r"\1 → $-1$, \2 → $+1$", setting_text)
    sign, number = symbol(name).strip("$"), ", ".join(map(number_text, np.atleast_1d(value)))
    return f"${sign} = {number}$" if "$" in symbol(name) else f"{name} = ${number}$"


def class_names(model: Any) -> list[str]:
    """Names of the classes of a given layer or sample, in their order; else -1 and +1."""
    given_names = getattr(model, "names", None) or getattr(model, "classes", None)
    return [str(name) for name in given_names or ("-1", "+1")]


def shared_settings(curve: Any, varying: Container[str] = ()) -> dict[str, Any]:
    """Settings that all points of a data set share, but for those ``varying``: its attributes, and
    its coordinates of one value."""
    common_settings = {
        name: value for name, value in curve.attrs.items() if name not in curve.coords
    }
    single_values = {name: one.values.item() for name, one in curve.coords.items() if one.size == 1}
    common_settings |= {name: value for name, value in single_values.items() if name not in varying}
    if "theory" in curve.coords:  # the legend has each
        common_settings.setdefault("theory", None)
    return with_theory(common_settings, {*curve.attrs, *curve.coords})


def with_theory(described: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Settings with the theory where it goes without saying: the sRF's of a step, which ``known``
    names tell.  Beside a simulation the legend says which theory it is."""
    settings_of_step = "alpha0" in known or "steps" in known
    theory_unsaid = settings_of_step and "theory" not in known and "seeds" not in known
    return {**described} | ({"theory": "srf"} if theory_unsaid else {})


def number_text(value: float) -> str:
    """A number for mathtext: three digits, a power of ten, or the sign of infinity."""
    if np.isinf(value):
        return r"\infty" if value > 0 else r"-\infty"
    if abs(value) < 1e5 and float(value).is_integer():
        return str(int(value))
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    if not exponent:
        return mantissa
    power_of_ten = f"10^{{{int(exponent)}}}"
    return power_of_ten if mantissa == "1" else rf"{mantissa} \times {power_of_ten}"


def plain(text: str) -> str:
    """Name of a function without mathtext, with ^ for a power."""
    return text.replace("**", "^").replace("$", r"\$")


def settings(described: Mapping[str, Any]) -> list[str]:
    """Settings of a problem, piece by piece for a title, without options that are off or have a
    value of more than 40 characters.

    Examples
    --------
    >>> settings({"student": "tanh", "target": "sin", "eta": 3.0, "noise": 0.0})
    ['tanh student', 'sin target', '$\\\\tilde\\\\eta = 3$']
    """
    # attributes to run a simulation again, not its problem
    unstated_settings = ("simulated", "test_samples", "rng", "spawn_key", "versions")
    title_pieces = []
    named_first = {name: described[name] for name in ("student", "target") if name in described}
    for name, stated in (named_first | dict(described)).items():
        # as NetCDF holds them
        is_json = isinstance(stated, str) and (stated.startswith("[") or stated == "true")
        value = json.loads(stated) if is_json else stated
        value = plain_law(value) if name in LAWS and np.ndim(value) == 2 else value
        is_zero = name in ("noise", "step_noise", "bias") and value == 0
        is_off = value is None or value is False or is_zero
        if is_off or name in unstated_settings or len(str(value)) > 40:
            continue
        nested = np.ndim(value) == 2
        if name in (*named_first, "loss"):
            title_pieces.append(f"{plain(str(value))} {name}")
        elif name == "theory":  # of a comparison a sentence, which its legend has
            title_pieces += [THEORIES[value]] if value in THEORIES else []
        elif name == "seeds":
            title_pieces.append(f"{'/'.join(map(str, np.atleast_1d(value)))} seeds")
        elif value is True:
            title_pieces.append(name.replace("_", " "))
        else:
            pairs = [f"({', '.join(map(number_text, pair))})" for pair in value] if nested else []
            title_pieces.append(
                setting(name, value) if not nested else f"{name} ${', '.join(pairs)}$"
            )
    return title_pieces
