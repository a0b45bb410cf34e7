# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The layout of the explorer, a marimo notebook: controls at the side, a figure and its texts."""

import marimo

app = marimo.App(width="full", app_title="replica: explorer")

with app.setup:
    import base64
    import math
    from functools import partial
    from typing import Any

    import marimo as mo

    from replica.explore import (
        DEFAULTS,
        REFUSALS,
        VIEWS,
        curve_view,
        in_turn,
        picture,
        point,
        simulate,
        simulation_command,
    )

    in_turn(curve_view, DEFAULTS | {"alpha": "1"})  # load and compile before timing

    MENUS = {
        "student": ["tanh", "erf", "relu", "sigmoid", "gelu", "softplus", "silu", "sin", "linear"],
        "target": ["sin", "tanh", "relu", "sign", "linear", "he2", "he1+he3/6", "z1 + z1*z2"],
        "theory": ["srf", "network"],
        "readout": ["equal", "-1,1", "gaussian", "box"],
        "loss": [
            "square", "huber:0.5", "absolute", "quantile:0.9", "logistic", "hinge", "squared_hinge",
        ],
    }  # fmt: skip
    # long lines of code
    WRAPPED = "<style>pre { white-space: pre-wrap !important; overflow-wrap: anywhere; }</style>"
    SLIDERS = {  # start, stop, step
        "eta": (0.0, 10.0, 0.1),
        "beta": (0.1, 5.0, 0.1),
        "noise": (0.0, 1.0, 0.01),
        "at": (0.1, 4.0, 0.1),
    }
    LOGARITHMIC = {"alpha0": (-1, 2), "lam": (-6, 2)}  # powers of ten at the ends
    OWN = {"own_student": "student", "own_target": "target"}  # text in the place of a menu's
    INFINITE = "infinite"  # whether alpha0 is
    LABELS = {
        "student": "student σ", "own_student": "or your own σ(x)", "target": "target σ⋆",
        "own_target": "or your own σ⋆", "theory": "theory of",
        "readout": "first readout ã", "bias": "biases", "loss": "loss", "alpha0": "samples α₀",
        INFINITE: "α₀ = ∞", "eta": "rate η̃", "steps": "steps α₀:η̃, …", "beta": "width β",
        "noise": "noise Δ", "lam": "penalty λ", "alpha": "α of the curve", "at": "one α",
    }  # fmt: skip

    def control(name, text):
        """Control of one entry of the state: a menu, a slider with its box, or a box for text.

        Values that a slider does not have are text.
        """
        try:
            value_shown = float(text)
        except ValueError:
            value_shown = math.nan
        if name == INFINITE:
            return mo.ui.checkbox(value_shown == math.inf, label=LABELS[name])
        if name in MENUS:
            menu_choices = dict.fromkeys([*MENUS[name], text])
            return mo.ui.dropdown(list(menu_choices), value=text, label=LABELS[name])
        if name in LOGARITHMIC and value_shown > 0:
            low, high = LOGARITHMIC[name]
            value_shown = value_shown if math.isfinite(value_shown) else float(DEFAULTS[name])
            slider_grid = {float(f"{10 ** (k / 10):.2g}") for k in range(10 * low, 10 * high + 1)}
            steps = sorted(slider_grid | {value_shown})
            return mo.ui.slider(steps=steps, value=value_shown, show_value=True, label=LABELS[name])
        if name in SLIDERS and math.isfinite(value_shown):
            lowest, stop, step = SLIDERS[name]
            ends = {"start": min(lowest, value_shown), "stop": max(stop, value_shown), "step": step}
            return mo.ui.slider(**ends, value=value_shown, include_input=True, label=LABELS[name])
        return mo.ui.text(text, label=LABELS[name])

    def headline(solution):
        """Errors of a solution, in words."""
        if not solution.converged:
            return f"test error at α = {solution.alpha:g}: {solution.status.value}"
        squared_text = f"test error at α = {solution.alpha:g}: {solution.test_error:.7f}"
        if not solution.model.labels.binary:
            return squared_text
        class_text = f"{solution.classification_error:.7f}"
        return f"classification error at α = {solution.alpha:g}: {class_text} ({squared_text})"

    def embedded(figure):
        """Data URL of a figure."""
        return f"data:image/svg+xml;base64,{base64.b64encode(picture(figure, 'svg')).decode()}"

    def download(figure, kind):
        """A button that saves the figure, drawn once it is pressed."""
        return mo.download(partial(picture, figure, kind), f"replica.{kind}", label=kind.upper())


@app.cell
def _():
    _given = mo.query_params().to_dict()
    # "model" is the name of the theory in older addresses
    asked = {"theory" if name == "model" else name: str(text) for name, text in _given.items()}
    texts = DEFAULTS | dict.fromkeys(OWN, "") | asked
    controls = mo.ui.dictionary(
        {name: control(name, texts["alpha0" if name == INFINITE else name]) for name in LABELS}
    )
    shown = asked.get("view", DEFAULTS["view"])
    tabs = mo.ui.tabs(dict.fromkeys(VIEWS, ""), value=shown if shown in VIEWS else DEFAULTS["view"])
    programs = mo.ui.tabs({"Python": "", "command line": ""})
    button = mo.ui.run_button(label="simulate networks")
    keep = mo.ui.run_button(label="keep this curve")
    dots: dict[str, Any] = {}  # simulations, by their command
    kept: dict[str, dict[str, str]] = {}  # the state whose curve is drawn below others
    last: dict[str, list[Any]] = {}  # view of the last state that could be shown
    return button, controls, dots, keep, kept, last, programs, tabs


@app.cell
def _(controls, tabs):
    _values = controls.value | {"view": tabs.value}
    _own = {OWN[name]: _values.pop(name).strip() for name in OWN}
    _values |= {name: text for name, text in _own.items() if text}
    if _values.pop(INFINITE):
        _values["alpha0"] = "inf"
    state = {
        name: value if isinstance(value, str) else f"{value:.12g}"
        for name, value in _values.items()
    }
    return (state,)


@app.cell
def _(state):
    # read by no other cell, so that a new address makes no new controls
    _address = mo.query_params()
    for _name, _text in state.items():
        if _address.get(_name, DEFAULTS[_name]) != _text:
            _address.set(_name, _text)
    return


@app.cell
def _(button, dots, state):
    refused = ""
    if button.value:
        try:
            with mo.status.spinner("networks are trained"):
                dots[simulation_command(state)] = simulate(state)
        except REFUSALS as _error:
            refused = str(_error)
    return (refused,)


@app.cell
def _(button, dots, keep, kept, last, refused, state):
    _curve = state["view"] == DEFAULTS["view"]
    _narrow = {"width": "100%", "max-width": "46rem"}
    view, _sentences = None, [refused]
    try:
        _point = in_turn(point, state)
        if keep.value:
            kept["state"] = dict(state)
        if _curve:
            _dots = dots.get(simulation_command(state))
            view = in_turn(curve_view, state, _dots, kept.get("state"))
        else:
            view = in_turn(VIEWS[state["view"]], state)
        _sentences.append(view.note)
        _parts = [mo.md(f"**{headline(_point)}**")]
        if view.figure:
            _saves = [download(view.figure, kind) for kind in ("png", "svg")]
            if view.table:
                _saves.append(mo.download(view.table, "replica.csv", label="CSV"))
            _parts += [
                mo.image(embedded(view.figure), alt=f"the {state['view']}", style=_narrow),
                mo.hstack([*[button, keep] * _curve, *_saves], justify="start", wrap=True),
            ]
        last["parts"] = _parts
    except REFUSALS as _error:
        _sentences = [refused, str(_error)]
        _parts = last.get("parts", [])
        if _parts:
            _sentences.append("below is the last setting that has an answer")
    _notes = [mo.callout(text, kind="warn") for text in _sentences if text]
    result = mo.vstack([*_parts[:1], *_notes, *_parts[1:]])
    return result, view


@app.cell
def _(programs, view):
    _kinds = {"Python": ("python", "python"), "command line": ("sh", "command")}
    _language, _name = _kinds[programs.value]
    _text = getattr(view, _name, "").rstrip()
    _shown = mo.md(f"{WRAPPED}\n\n```{_language}\n{_text}\n```")
    shown_programs = mo.vstack([programs, _shown]) if view else None
    return (shown_programs,)


@app.cell
def _(controls):
    mo.sidebar(list(controls.elements.values()), width="24rem")
    return


@app.cell
def _(result, shown_programs, tabs):
    _title = mo.md("# Two-layer networks after one giant step")
    mo.vstack([_title, tabs, result, *([shown_programs] if shown_programs else [])])
    return


if __name__ == "__main__":
    app.run()
