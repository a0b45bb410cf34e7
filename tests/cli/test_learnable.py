"""The commands bounds, optimum and spectrum: documents, files, figures, bad input."""

import csv
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import replica
from replica.steps import THEORIES
from solvers.results import ConvergenceError
from tests.cli.commands import document, refusal, theory, validate
from tests.marks import slow
from tests.problems import PUBLISHED

STEP = "--student tanh --target sin --alpha0 20"


@pytest.mark.slow
def test_bounds(capsys, tmp_path):
    found = document(capsys, f"bounds {STEP} --eta 1,3 --alpha 1 --plot {tmp_path / 'a.png'}")
    one = replica.bounds(PUBLISHED)
    assert [point["eta"] for point in found["bounds"]] == [1.0, 3.0]
    assert found["bounds"][1]["lower"] == one.lower
    assert found["linear"] == one.linear
    for point in found["bounds"]:
        assert point["lower"] < point["achieved_1"] < point["upper"]
    assert (tmp_path / "a.png").stat().st_size > 5000
    line = f"bounds {STEP} --eta 3 --out {tmp_path / 'a.csv'} --plot {tmp_path / 'b.svg'}"
    assert theory(line) == 0
    assert "predictor of the inputs, not of these features: 0.06445292" in capsys.readouterr().out
    (row,) = csv.DictReader((tmp_path / "a.csv").read_text().splitlines())
    assert float(row["upper"]) == one.upper
    assert row["theory"] == "srf"
    own = document(capsys, f"bounds {STEP} --eta 3 --theory network")
    assert own["bounds"][0]["eta"] == 3.0
    assert own["bounds"][0]["upper"] == pytest.approx(one.upper, rel=1e-6)  # the same spike
    assert theory("bounds --student tanh --target sin --r 1 --c 1 --gamma .9") == 0
    assert capsys.readouterr().out.split()[:2] == ["lower", "upper"]  # no rate, no column
    assert theory(f"bounds {STEP} --eta 3 --alpha 1 --out {tmp_path / 'a.tex'}") == 0
    heads = r"$\min_\lambda\epsilon_g$ at $\alpha = 1$ & $\lambda$ at $\alpha = 1$ \\"
    assert heads in (tmp_path / "a.tex").read_text()


@pytest.mark.parametrize("alpha", ["", " --alpha 1"])
def test_how_far_bounds_are_from_a_network_is_noted(alpha, capsys):
    """The lower one from that of the network itself, and the error at alpha from d = 1000."""
    assert theory(f"bounds {STEP} --eta 0.3,3{alpha}") == 0
    noted = capsys.readouterr().err
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=3)
    change = replica.bounds(step, theory="network").lower / replica.bounds(step).lower - 1
    assert f"at eta = 3 the lower bound of the network itself differs by {change:+.0%}" in noted
    best = replica.optimal_lambda(step.srf(beta=1.0).model_at(eta=0.3), alpha=1.0).point
    assert f"differs by {best.finite_size_shift:+.0%} (replica curve --dimension 1000" in noted
    assert theory(f"bounds {STEP} --eta 3 --theory srf") == 0
    assert "lower bound of the network" not in capsys.readouterr().err


def test_a_best_penalty_that_is_far_from_a_network_is_noted(capsys):
    """After a small step, unasked; not where the limit is near."""
    theory(f"optimum {STEP} --eta 0.3 --alpha 1")
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=0.3)
    best = replica.optimal_lambda(step.srf(beta=1.0), alpha=1.0).point
    assert best.finite_size_shift > 0.5
    said = capsys.readouterr().err
    assert f"differs by {best.finite_size_shift:+.0%}" in said
    assert "the best eta" not in said
    theory(f"curve {STEP} --eta 0.3 --alpha 1 --lam best")
    assert capsys.readouterr().err == said
    theory(f"optimum {STEP} --eta 3 --alpha 1")
    (which,) = capsys.readouterr().err.splitlines()
    assert which.startswith("note: theory of the sRF")


@pytest.mark.slow
def test_a_difference_that_is_not_known_is_said(capsys, monkeypatch):
    """The network's averages over a batch take longer than they may."""
    monkeypatch.setattr("replica.steps.row_steps.BATCH_TIME", 0.0005)
    line = "curve --student relu --target z1+z2*z3 --steps 2:1.01,2:1.01 --alpha 1 --lam 1"
    theory(f"{line} --notes")
    assert "from the network itself is not known" in capsys.readouterr().err
    assert theory(f"{line} --theory network") != 0
    assert "--theory srf" in capsys.readouterr().err


@pytest.mark.slow
def test_optimum(capsys, tmp_path):
    (point,) = document(capsys, f"optimum {STEP} --alpha 1")["points"]
    best = replica.optimal_eta(PUBLISHED, alpha=1, beta=1)
    assert (point["eta"], point["lam"]) == (best.eta, best.lam)
    assert point["test_error"] == best.test_error
    (fixed,) = document(capsys, f"optimum {STEP} --eta 3 --alpha 1")["points"]
    assert "eta" not in fixed  # held: it is of the problem
    assert fixed["test_error"] > point["test_error"]
    assert theory(f"optimum {STEP} --alpha 1 --lam .1 --out {tmp_path / 'a.csv'}") == 0
    (row,) = csv.DictReader((tmp_path / "a.csv").read_text().splitlines())
    assert float(row["lam"]) == 0.1
    capsys.readouterr()


@pytest.mark.slow
def test_optima_of_features(capsys, tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.choice([-1, 1], 200)
    features = rng.standard_normal((200, 10)) + 0.4 * labels[:, None]
    np.save(tmp_path / "F.npy", features)
    np.save(tmp_path / "y.npy", labels)
    line = f"--features {tmp_path / 'F.npy'} --labels {tmp_path / 'y.npy'} --samples 20,50"
    found = document(capsys, f"optimum {line}")
    assert found == document(capsys, f"readout {line} --lam best")
    sample = replica.FeatureSample(features=features, labels=labels)
    for point in found["points"]:
        best = replica.optimal_lambda(sample, samples=point["samples"])
        assert point["lam"] == pytest.approx(best.lam, rel=1e-9)
    assert "--eta must be left out" in refusal(capsys, f"optimum {line} --eta 1")


EVEN = "--student relu --target he1+he2/2 --alpha0 20"  # with a part that an even student learns


@pytest.mark.parametrize(
    ("line", "is_noted"),
    [
        (f"curve {EVEN} --eta 1 --alpha 2,4 --lam .1", True),
        (f"curve {EVEN} --eta .1:10:5:log --alpha 4 --lam .1", True),  # the most in the middle
        (f"optimum {EVEN} --eta 1 --alpha 2,4", True),
        *slow((f"optimum {EVEN} --alpha 4 --lam .1", True)),
        (f"curve {EVEN} --eta 1 --alpha 4 --lam .1 --theory srf", False),
        (f"curve {EVEN} --eta 1 --alpha 4 --lam .1 --train-bias", False),  # the network has none
        (f"optimum {EVEN} --eta .1 --alpha 4", False),  # 2 %
    ],
)
def test_how_far_the_default_is_from_the_network_is_noted(line, is_noted, capsys, monkeypatch):
    """Unasked, where it is above 5 %, and with the best eta of the network where it is searched."""
    monkeypatch.setattr("replica.cli.notes.SECONDS_FOR_NOTE", 60.0)
    assert theory(f"{line} --json") == 0
    printed, noted = capsys.readouterr()
    assert ("of the network itself differs by" in noted) == is_noted
    points = json.loads(printed)["points"]
    assert not any("network_difference" in point for point in points)
    step = replica.GradientStep(student="relu", target="he1+he2/2", alpha0=20, eta=1)
    changes = []
    for point in points if is_noted else []:
        model = step.with_values(1.0, {"eta": point.get("eta", 1.0)}).network(beta=1.0)
        own = replica.solve(model, alpha=point["alpha"], lam=point["lam"])
        changes.append(own.test_error / point["test_error"] - 1)
        best = replica.optimal_eta(model, alpha=4.0, lam=0.1).eta if "--eta" not in line else None
        assert best is None or f"(--theory network), whose best eta is {best:.3g}" in noted
    assert not is_noted or f"differs by {max(changes, key=abs):+.0%}" in noted


def test_a_best_eta_that_is_not_found_fails_no_answer(capsys, monkeypatch):
    """That of the network, of which the note says that it may be another."""

    def nowhere(model, **_):
        raise ConvergenceError("the equations could be solved nowhere in the range", None)

    line = f"curve {EVEN} --eta best --alpha 4 --lam .1"
    expected = document(capsys, line)
    monkeypatch.setattr("replica.cli.notes.observables.optimal_eta", nowhere)
    assert theory(f"{line} --json") == 0
    printed, noted = capsys.readouterr()
    assert json.loads(printed) == expected
    assert "(--theory network), whose best eta may differ" in noted


@pytest.mark.parametrize(("ratio", "is_noted"), [(0.5, True), (1.1, False)])
def test_another_best_eta_of_the_network_is_noted_with_its_error(
    ratio, is_noted, capsys, monkeypatch
):
    """Where the errors of both are near, too: a reader sees that the other eta costs little."""
    step = replica.GradientStep(student="tanh", target="sin", alpha0=20, eta=1)
    srf = replica.optimal_eta(step, alpha=1.0, beta=1.0, lam=0.1)
    network = SimpleNamespace(eta=ratio * srf.eta, test_error=1.01 * srf.test_error)
    monkeypatch.setattr("replica.cli.notes.observables.optimal_eta", lambda *_, **__: network)
    assert (
        theory("curve --student tanh --target sin --alpha0 20 --eta best --alpha 1 --lam .1") == 0
    )
    errors = f"error of {network.test_error:.4g} where the best of the sRF is {srf.test_error:.4g}"
    noted = f"whose best eta is {network.eta:.3g}, with a test {errors}"
    assert (noted in capsys.readouterr().err) == is_noted


@pytest.mark.slow
def test_a_best_eta_of_the_network_at_the_end_of_its_range_is_noted_as_such(capsys):
    assert theory("optimum --student relu --target relu --alpha0 10 --alpha 1") == 0
    assert "whose best eta is 100, an end of the range searched" in capsys.readouterr().err


def test_two_changes_are_in_one_note(capsys):
    """After a small step the limit is far from d = 1000, after a large one the sRF from itself."""
    theory("curve --student tanh --target he1 --alpha0 20 --eta .1,4 --alpha 4 --lam .01")
    _, note = capsys.readouterr().err.splitlines()
    size, _, network = note.partition("; and ")
    assert "in the theory at d = 1000 the test error at eta = 0.1, alpha = 4" in size
    assert "at eta = 4, alpha = 4, lam = 0.01 the test error of the network itself" in network


def test_an_error_of_zero_is_not_compared_with_the_network(capsys):
    """Labels of 1e-200 have squares below the smallest number, and so has the test error."""
    line = "curve --student tanh --target 1e-200*he1 --alpha0 20 --eta 1 --lam .1 --alpha 2"
    assert theory(f"{line} --json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["points"][0]["test_error"] == 0
    assert "network itself" not in err


@pytest.mark.slow
def test_spectrum(capsys, tmp_path):
    line = f"spectrum {STEP} --eta 3 --beta 1.5 --alpha 0.7 --out {tmp_path / 'a.json'}"
    assert theory(line) == 0
    shown = capsys.readouterr().out
    assert "outlier at p times 0.2752128613 to leading order in p, beyond the bulk from" in shown
    found = json.loads((tmp_path / "a.json").read_text())
    assert set(found) >= {"edges", "atom", "outliers", "density"}
    assert found["atom"] == pytest.approx(1 - 0.7 / 1.5, abs=1e-15)
    x, y = (np.array(found["density"][name]) for name in "xy")
    assert np.trapezoid(x * y, np.log(x)) == pytest.approx(0.7 / 1.5, abs=1e-4)
    files = f"--out {tmp_path / 'a.csv'} --plot {tmp_path / 'a.png'}"
    assert theory(f"spectrum {STEP} --eta 0 --beta 2 --alpha 3 {files}") == 0
    assert capsys.readouterr().out.count("density from") == 2
    rows = (tmp_path / "a.csv").read_text().splitlines()
    header = "x,density,converged,theory,student,target,alpha0,eta,noise,beta,alpha"
    assert (len(rows), rows[0]) == (1001, header)
    assert (tmp_path / "a.png").stat().st_size > 5000


@pytest.mark.slow
def test_simulated_spectrum(capsys, tmp_path):
    line = f"spectrum {STEP} --eta 3 --alpha 2 --dimension 100 --rng 1 --plot {tmp_path / 'a.png'}"
    found = document(capsys, line, validate)
    assert found["theory"] == "theory of the network itself"
    assert np.shape(found["eigenvalues"]) == (2, 100)
    assert max(found["stieltjes_off_by"]) < 0.2  # of order 1/d
    x, y = np.transpose(found["stieltjes_at"])
    assert y.tolist() == pytest.approx(x / 2)
    (outlier,) = found["outliers_compared"]
    largest = np.max(found["eigenvalues"], axis=1)
    assert outlier["draws"] == 2
    assert outlier["simulated"] == pytest.approx(largest.mean())
    assert outlier["stderr"] == pytest.approx(abs(largest[0] - largest[1]) / 2)
    assert outlier["largest"] == outlier["simulated"]
    assert outlier["largest_stderr"] == outlier["stderr"]
    assert outlier["theory"] == pytest.approx(largest.mean(), rel=0.2)
    still = f"spectrum {STEP} --eta 0 --alpha 2 --dimension 100 --seeds 1 --rng 1"
    assert validate(still) == 0
    assert "outliers: none, in theory and in simulation" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "sizes", "answer"),
    [
        (theory, "", ""),
        (validate, " --dimension 20 --seeds 2 --rng 0", "largest of 40 simulated eigenvalues: "),
    ],
)
def test_a_spectrum_that_takes_too_long_is_given_up(capsys, command, sizes, answer):
    """What is simulated is answered without it."""
    line = f"spectrum {STEP} --eta 3 --alpha 2 --readout=-1,1,.5 --time-limit 1e-3{sizes}"
    assert command(line) == 1
    found = capsys.readouterr()
    assert found.err.count("\n") == 1
    assert found.out.startswith(answer)
    assert bool(found.out) == bool(answer)
    assert "was not found within its --time-limit (a larger --time-limit gives it" in found.err


@pytest.mark.slow
@pytest.mark.parametrize("is_noted", [True, False])
def test_how_far_a_spectrum_is_from_the_network_is_noted(is_noted, capsys, monkeypatch):
    """By the end of the bulk, where no theory is named, or that this is not known in time."""
    monkeypatch.setattr("replica.cli.notes.SECONDS_FOR_NOTE", 60.0 * is_noted)
    line = "spectrum --student tanh --target sin --alpha0 .3 --eta 4 --beta .5 --alpha 2"
    assert theory(line) == 0
    step = replica.GradientStep(student="tanh", target="sin", alpha0=0.3, eta=4)
    srf, network = (replica.spectrum(step, 2.0, beta=0.5, theory=one) for one in THEORIES)
    change = f"differs by {network.edges.max() / srf.edges.max() - 1:+.0%} (--theory network)"
    noted = capsys.readouterr().err
    assert (change in noted) == is_noted
    assert ("the upper end of the network's bulk is not known here, and may" in noted) != is_noted
    assert theory(f"{line} --theory srf") == 0
    assert "bulk" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_flagged_spectrum_names_its_errors(capsys):
    line = "spectrum --student gelu --target z1+z1*z2 --alpha0 2 --eta 1 --alpha 2 --theory network"
    assert theory(line) == 1
    flagged = r"\(--theory srf .*\); quadrature error \d\.\de-\d\d; the mass is off by 7.0e-05"
    assert re.search(flagged, capsys.readouterr().err)
