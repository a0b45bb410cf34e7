"""The figures of the papers, and of the documentation, in their quick versions: that their data
say what the papers say, and that the command keeps what it has simulated."""

import json
import sys
from itertools import chain

import numpy as np
import pytest

import replica
from replica import GradientStep, solve
from tests.cli.commands import refusal, validate
from validation.figures import Run, figure
from validation.figures.curves import FIT, LAW_TARGETS, LAWS, VARIABLE
from validation.figures.samples import BOTH_ERRORS

LINEAR = 0.0644529  # E sin^2 - h_1*^2 = (1 - exp(-2)) / 2 - exp(-1)
BIAS = 20.0  # over d: what simulations of dimension d may be off by, as in a comparison


def values(name):
    """The quick data of a figure, as JSON has them."""
    return json.loads(json.dumps(figure(name).values(Run(True))))


def drawn(name, data):
    """The picture of the data, of which no title, label or legend leaves the canvas."""
    picture = figure(name).draw(data)
    picture.draw_without_rendering()
    (left, bottom), (right, top) = picture.get_tightbbox().get_points()  # in inches
    width, height = picture.get_size_inches()
    assert min(left, bottom, width - right, height - top) >= 0
    return picture


def close(curve, dimension):
    """Simulated points lie on the theory of what is simulated, up to four standard errors, of
    three draws, and the bias that a comparison allows."""
    errors = curve.get("test_error", curve)
    mean, stderr = np.array(errors["simulated"]).T
    theory = np.interp(curve["simulated_at"], curve["x"], errors["theory"])
    assert np.all(np.abs(mean - theory) < 4 * stderr + BIAS / dimension * theory)


@pytest.mark.slow
def test_the_function_learned():
    """1: before the step a straight line; after it the network saturates, as its student does."""
    data = values("cui/1")
    before, after = data["learners"]
    kappa = np.array(data["kappa"])
    slope = np.array(before["theory"])[kappa != 0] / kappa[kappa != 0]
    assert np.ptp(slope) < 1e-9
    # C(2.5) of the sRF over C(1), of the equations typed in docs/tutorial.md at alpha = 1
    assert after["theory"][-1] / after["theory"][7] == pytest.approx(1.55, abs=0.01)
    for learned in data["learners"]:
        # the mean of three networks at d = 150, of which one scatters by some 0.05
        assert learned["mean"] == pytest.approx(learned["theory"], abs=0.1)
        assert learned["spread"] == pytest.approx(learned["theory_spread"], abs=0.06)
    drawn("cui/1", data)


@pytest.mark.slow
def test_errors_against_alpha():
    """2: more samples in the step lower the whole curve; with 20 d it is below the best linear
    predictor, with d it is not."""
    data = values("cui/2")
    for panel in data["panels"]:
        errors = np.array([curve["test_error"]["theory"] for curve in panel])
        assert (np.diff(errors, axis=0) < 0).all()
        for curve in panel:
            close(curve, data["dimension"])
    first, *_, last = data["panels"][0]
    assert first["linear"] == pytest.approx(LINEAR, abs=1e-7)
    assert max(last["test_error"]["theory"]) < LINEAR < min(first["test_error"]["theory"])
    assert np.shape(drawn("cui/2", data).axes) == (4,)


@pytest.mark.slow
def test_reused_samples():
    """On the samples of the step a tanh student fits better than on fresh ones, and predicts worse;
    a relu student of noisy labels predicts better."""
    data = values("reuse")
    for curve in chain(*data["panels"]):
        for error in ("test_error", "train_error"):
            close(curve | {"test_error": curve[error]}, data["dimension"])
    test, train = (np.array([[c[e]["theory"] for c in p] for p in data["panels"]])
                   for e in ("test_error", "train_error"))  # fmt: skip
    assert (train[:, 0, 1:] < train[:, 1, 1:]).all()  # from alpha = 2 on
    assert (test[0, 0] > test[0, 1]).all()
    assert (test[1, 0] < test[1, 1]).all()
    assert len(drawn("reuse", data).axes) == 8


@pytest.mark.slow
def test_narrow_panels_stay_on_the_canvas():
    """Those of reused samples have the longest titles, and a legend for each pair of errors."""
    size = {"dimension": 80, "seeds": 3}
    points = {"theory": [1.0, 1.0], "simulated": [[1.0, 0.1]] * 2}
    curve = {"x": [0.5, 8.0], "simulated_at": [0.5, 8.0]} | dict.fromkeys(BOTH_ERRORS, points)
    data = {"figure": "reuse", **size, "panels": [[curve | size] * 2] * 2}
    legends = [ax.get_legend() is not None for ax in drawn("reuse", data).axes]
    assert [*map(any, zip(legends[:4], legends[4:], strict=True))] == [True, False] * 2


@pytest.mark.slow
def test_the_use_of_samples():
    """All samples for both layers are better than any other use, and the more the better."""
    data = values("budget")
    (panel,) = data["panels"]
    errors = np.array([curve["test_error"]["theory"] for curve in panel])
    assert (errors[0] < errors[1:]).all()
    assert (np.diff(errors, axis=1) < 0).all()
    for curve in panel:
        close(curve, data["dimension"])
    drawn("budget", data)


@pytest.mark.slow
def test_bounds():
    """3: the limit's best error lies between the bounds at every rate, and they meet the linear
    predictor at none; what is simulated lies on the network's own theory."""
    data = values("cui/3")
    lower, upper = (np.array([one[k] for one in data["bounds"]]) for k in ("lower", "upper"))
    assert data["linear"] == pytest.approx(LINEAR, abs=1e-7)
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=1.0)
    best = replica.best_bounds(step)
    assert upper.min() >= best.upper
    few, many = data["curves"]
    for curve in (few, many):
        assert np.all((lower < curve["limit"]) & (curve["limit"] < upper))
        close(curve | {"x": data["x"], "simulated_at": data["simulated_at"]}, data["dimension"])
    assert np.all(np.array(many["theory"]) < few["theory"])
    drawn("cui/3", data)


@pytest.mark.slow
def test_the_spike():
    """4: without a spike no error is below the best linear predictor's; there is a best length."""
    data = values("cui/4")
    (without, with_it), lengths = data["panels"]
    assert min(without["test_error"]["theory"]) > LINEAR > max(with_it["test_error"]["theory"])
    for curve in [without, with_it, *lengths]:
        close(curve, data["dimension"])
    for curve in lengths:
        limit = curve["test_error"]["limit"]
        best = curve["x"][int(np.argmin(limit))]
        assert 1.25 <= best <= 2.0  # of 11 lengths and those simulated; 1.8 on a fine grid
        assert limit[0] > 3 * np.interp(1.0, curve["x"], limit)
    drawn("cui/4", data)


@pytest.mark.slow
def test_the_width():
    """5: at the same eta~ wider is better; at the same eta = eta~ p it is worse from beta = 1 on,
    as eta~ falls.  Both have the curve of beta = 1."""
    data = values("cui/5")
    same_rate, same_step = data["panels"]
    assert same_rate[1]["test_error"] == same_step[1]["test_error"]
    last = [[curve["test_error"]["theory"][-1] for curve in panel] for panel in data["panels"]]
    assert last[0][1] < last[0][2] < last[0][3]
    assert last[1][0] > last[1][1] > last[1][2] > last[1][3]
    for curve in [*same_rate, *same_step]:
        close(curve, data["dimension"])
    drawn("cui/5", data)


@pytest.mark.slow
def test_readout_laws():
    """6: of an odd student +-1 is 1; at d = 400 four values lower the error of networks by 8 %
    on the sine and 21 % on the hard target, where it is known; in the limit a Gaussian law does by
    more."""
    data = values("cui/6")
    found = {
        (target, law): curve["test_error"]
        for target, panel in zip(LAW_TARGETS, data["panels"], strict=True)
        for law, curve in zip(LAWS, panel, strict=True)
    }
    for target, share in (("sin", 0.08), ("he1+he3/2", 0.21)):
        one, signs, four = (
            np.array(found[target, law]["theory"], float) for law in ("1", "+-1", "four")
        )
        assert signs == pytest.approx(one, rel=1e-6, nan_ok=True)
        ratio = np.interp(2.2, data["panels"][0][0]["x"], four / one)
        assert 1 - ratio == pytest.approx(share, abs=0.02)
        assert np.all(np.array(found[target, "gaussian"]["limit"]) < four)
    drawn("cui/6", data)


@pytest.mark.parametrize(
    ("target", "share"),
    [("sin", 0.10), pytest.param("he1+he3/2", 0.28, marks=pytest.mark.slow)],
)
def test_readout_laws_in_the_limit(target, share):
    """Four values lower the sRF's error by a tenth on the sine and by a quarter on the hard target;
    a Gaussian law by more."""
    errors = {}
    for law, (readout, _) in LAWS.items():
        model = GradientStep(target=target, readout=readout, **VARIABLE).srf(beta=1.0)
        errors[law] = solve(model, alpha=2.2, **FIT).test_error
    assert errors["+-1"] == pytest.approx(errors["1"], rel=1e-6)
    assert 1 - errors["four"] / errors["1"] == pytest.approx(share, abs=0.02)
    assert errors["gaussian"] < errors["four"]


@pytest.mark.slow
def test_functions_of_the_bounds():
    """7: at a large penalty networks learn the function of the upper bound, up to its cost at
    finite size, some 5 % at d = 150."""
    data = values("cui/7")
    (learned,) = data["learners"]
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    upper = replica.bounds(step).upper_function(np.array(data["kappa"]))
    assert learned["mean"] == pytest.approx(upper, abs=0.12)
    assert learned["theory"] == pytest.approx(upper, abs=0.01)
    drawn("cui/7", data)


@pytest.mark.slow
def test_the_spectrum():
    """8: the largest eigenvalue is p E mu_0^2, up to corrections of order 1; n < p leaves zeros."""
    data = values("cui/8")
    one_group, three, _ = (np.array(each) for each in data["eigenvalues"])
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3.0)
    (outlier,) = replica.spectrum(step.srf(beta=2.0), 3.0).outliers
    # p = 200: 1 / sqrt(n) = 6 % a draw
    assert one_group[:, -1] / 200 == pytest.approx(outlier, rel=0.2)
    assert (three < 1e-12).mean() == pytest.approx(1 - 0.7 / 1.5, abs=1e-9)
    drawn("cui/8", data)


@pytest.mark.slow
def test_one_step_on_d_to_the_x_samples():
    """[D]: with the linear part removed the step leaves the direction of C_1 as n nears d^2; left
    in, all neurons turn to it."""
    data = values("dandi/sample-exponent")
    removed, left_in = (
        [c for c in data["curves"] if c["preprocess"] is kind] for kind in (True, False)
    )
    assert removed[-1]["beyond"] > 2 * removed[0]["beyond"]
    assert left_in[-1]["along"] > 0.9
    assert left_in[-1]["beyond"] < 0.15
    assert removed[-1]["error"] < left_in[-1]["error"]
    drawn("dandi/sample-exponent", data)


@pytest.mark.slow
def test_the_ladder():
    data = values("ladder")
    texts = [text.get_text() for text in drawn("ladder", data).legends[0].get_texts()]
    assert "fit, linear in $1/d$" in texts


@pytest.mark.slow
def test_staircase():
    """[D]: the rows lie along C_1 after the first step and leave it in the second of the target
    that has a second stair; where the connection is weak they stay."""
    data = values("dandi/staircase")
    across = []
    for panel in data["panels"]:
        x, y = panel["direction"]
        weights = np.array(panel["cosines"]["rows"])
        across.append(np.sqrt(np.mean((weights @ [-y, x]) ** 2, axis=1)))
    # 1 / sqrt(d) = 0.06 is what a random row has
    assert max(first[0] for first in across) < 0.16
    assert across[0][-1] < 0.15
    assert min(across[1][-1], across[2][-1]) > 0.25
    drawn("dandi/staircase", data)


@pytest.mark.slow
def test_networks_on_the_way_to_their_limit():
    """gelu networks of two steps are less than half as wrong as in their limit in theory, at d =
    100, where they are flagged, and less than .6 simulated, at d = 200; their theory rises with
    d."""
    data = values("dimension")
    steps = data["panels"][0]["series"]["network"]
    flagged, *line = steps["line"]
    assert flagged is None
    assert 0.5 * steps["limit"] < line[0] < 0.6 * steps["limit"]
    assert steps["points"][-1][0] < 0.6 * steps["limit"]
    assert line == sorted(line)
    assert 1 / steps["x"][0] == pytest.approx(data["sizes"][0], rel=1e-12)
    drawn("dimension", data)


def test_digits_ask_for_scikit_learn(capsys, monkeypatch):
    for module in ("sklearn", "sklearn.datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    sentence = refusal(capsys, "figure digits --plot never.png", validate)
    assert "the figure must be made with scikit-learn: python3 -m pip install " in sentence
    assert "'.[sklearn]' in the clone" in sentence


@pytest.mark.slow
def test_digits():
    """Fits of digits lie on the theory of all rows, up to four standard errors and the tenth that
    it is low where a class has few rows; the power law falls for good."""
    data = values("digits")
    theory = data["theory"]["all"]
    mean, stderr = np.array(data["fits"]).T
    expected = np.interp(data["n"], theory["n"], theory["error"])
    assert np.all(np.abs(mean - expected) < 4 * stderr + 0.1 * mean)
    assert data["law"][0] < 0.02 < theory["error"][-1]
    assert theory["noted"][0]
    assert not theory["noted"][-1]
    drawn("digits", data)
