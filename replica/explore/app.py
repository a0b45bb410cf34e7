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

    import marimo as mo

    from replica.explore import (
        DEFAULTS,
        REFUSALS,
        VIEWS,
        SimulatedCurve,
        curve_view,
        picture,
        point,
        simulate,
        simulation_command,
    )

    curve_view(DEFAULTS | {"alpha": "1"})  # what is loaded or compiled once is not timed later

    MENUS = {
        "student": ["tanh", "erf", "relu", "sigmoid", "gelu", "softplus", "silu", "sin", "linear"],
        "target": ["sin", "tanh", "relu", "sign", "linear", "he2", "he1+he3/6", "z1 + z1*z2"],
        "model": ["srf", "network"],
        "readout": ["equal", "-1,1", "gaussian", "box"],
        "loss": [
            "square", "huber:0.5", "absolute", "quantile:0.9", "logistic", "hinge", "squared_hinge",
        ],
    }  # fmt: skip
    WRAPPED = "<style>pre { white-space: pre-wrap !important; }</style>"  # long lines of code
    SLIDERS = {  # start, stop, step
        "alpha0": (0.1, 50.0, 0.1),
        "eta": (0.0, 10.0, 0.1),
        "beta": (0.1, 5.0, 0.1),
        "noise": (0.0, 1.0, 0.01),
        "lam": (0.01, 2.0, 0.01),
        "at": (0.1, 4.0, 0.1),
    }
    LABELS = {
        "student": "student σ", "target": "target σ⋆", "model": "theory of",
        "readout": "first readout ã", "loss": "loss", "alpha0": "samples α₀", "eta": "rate η̃",
        "beta": "width β", "noise": "noise Δ", "lam": "penalty λ", "alpha": "α of the curve",
        "at": "one α",
    }  # fmt: skip

    def control(name, text):
        """What sets one entry of the state: a menu, a slider with its box, or a box for text, where
        the value is none that a slider has."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if name in MENUS:
            choices = dict.fromkeys([*MENUS[name], text])
            return mo.ui.dropdown(list(choices), value=text, label=LABELS[name])
        if name in SLIDERS and math.isfinite(value):
            start, stop, step = SLIDERS[name]
            ends = {"start": min(start, value), "stop": max(stop, value), "step": step}
            return mo.ui.slider(**ends, value=value, include_input=True, label=LABELS[name])
        return mo.ui.text(text, label=LABELS[name])

    def embedded(figure):
        """The address of a figure that is in the page itself."""
        return f"data:image/svg+xml;base64,{base64.b64encode(picture(figure, 'svg')).decode()}"

    def download(figure, kind):
        """A button that saves the figure, drawn once it is pressed."""
        return mo.download(partial(picture, figure, kind), f"replica.{kind}", label=kind.upper())


@app.cell
def _():
    asked = {name: str(text) for name, text in mo.query_params().to_dict().items()}
    controls = mo.ui.dictionary(
        {name: control(name, asked.get(name, DEFAULTS[name])) for name in LABELS}
    )
    shown = asked.get("view", DEFAULTS["view"])
    tabs = mo.ui.tabs(dict.fromkeys(VIEWS, ""), value=shown if shown in VIEWS else DEFAULTS["view"])
    programs = mo.ui.tabs({"Python": "", "command line": ""})
    button = mo.ui.run_button(label="simulate networks")
    dots: dict[str, SimulatedCurve] = {}  # what was simulated, by its command
    return button, controls, dots, programs, tabs


@app.cell
def _(controls, tabs):
    state = {
        name: value if isinstance(value, str) else f"{value:.12g}"
        for name, value in (controls.value | {"view": tabs.value}).items()
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
                _asked = mo.app_meta().request
                _session = _asked.query_params.get("session_id") if _asked else None
                dots[simulation_command(state)] = simulate(state, _session)
        except REFUSALS as _error:
            refused = str(_error)
    return (refused,)


@app.cell
def _(button, dots, refused, state):
    _curve = state["view"] == DEFAULTS["view"]
    _narrow = {"width": "100%", "max-width": "46rem"}
    view, _sentences = None, [refused]
    try:
        _point = point(state)
        if _curve:
            view = curve_view(state, dots.get(simulation_command(state)))
        else:
            view = VIEWS[state["view"]](state)
        _number = f"{_point.test_error:.7f}" if _point.converged else _point.status.value
        _parts = [mo.md(f"**test error at α = {state['at']}: {_number}**")]
        _sentences.append(view.note)
        if view.figure:
            _saves = [download(view.figure, kind) for kind in ("png", "svg")]
            _parts += [
                mo.image(embedded(view.figure), alt=f"the {state['view']}", style=_narrow),
                mo.hstack([*[button] * _curve, *_saves], justify="start"),
            ]
    except REFUSALS as _error:
        _parts, _sentences = [], [refused, str(_error)]
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
