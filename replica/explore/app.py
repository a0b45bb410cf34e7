"""The layout of the explorer, a marimo notebook: controls at the side, a figure and its texts."""

import marimo

app = marimo.App(width="full", app_title="replica: explorer")

with app.setup:
    import base64
    import io
    import math
    from functools import partial

    import marimo as mo

    from replica.explore import DEFAULTS, REFUSALS, VIEWS, curve_view, point, simulate

    MENUS = {
        "student": ["tanh", "erf", "relu", "sigmoid", "gelu", "softplus", "sin", "linear"],
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

    def picture(figure, kind):
        """A figure as a file of that kind."""
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=150)
        return content.getvalue()

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
    button = mo.ui.run_button(label="simulate networks")
    return button, controls, tabs


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
def _(button, state):
    simulated, refused = None, ""
    if button.value:
        try:
            with mo.status.spinner("networks are trained"):
                simulated = simulate(state)
        except REFUSALS as _error:
            refused = str(_error)
    return refused, simulated


@app.cell
def _(refused, simulated, state):
    _draw = partial(curve_view, simulated=simulated) if simulated else VIEWS[state["view"]]
    _sentences = [refused]
    _narrow = {"width": "100%", "max-width": "46rem"}
    try:
        _point, _view = point(state), _draw(state)
        _sentences.append(_view.note)
        _number = f"{_point.test_error:.7f}" if _point.converged else _point.status.value
        _parts = [
            mo.md(f"**test error at α = {state['at']}: {_number}**"),
            mo.image(embedded(_view.figure), alt=f"the {state['view']}", style=_narrow),
            mo.hstack([download(_view.figure, kind) for kind in ("png", "svg")], justify="start"),
            mo.accordion({
                "Python": mo.md(f"```python\n{_view.python}```"),
                "command line": mo.md(f"{WRAPPED}\n\n```sh\n{_view.command}\n```"),
            }),
        ]  # fmt: skip
    except REFUSALS as _error:
        _parts, _sentences = [], [refused, str(_error)]
    _notes = [mo.callout(text, kind="warn") for text in _sentences if text]
    result = mo.vstack([*_notes, *_parts])
    return (result,)


@app.cell
def _(button, controls):
    mo.sidebar([*controls.elements.values(), button], width="24rem")
    return


@app.cell
def _(result, tabs):
    mo.vstack([mo.md("# Two-layer networks after one giant step"), tabs, result])
    return


if __name__ == "__main__":
    app.run()
