"""What a command shows: tables that fit a page, and figures of what matters."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray

import replica
from replica.cli.notes import print_notes
from replica.files import to_tex
from solvers.results import Status
from tests.cli.commands import document, refusal, theory, validate
from tests.problems import PUBLISHED
from validation.cli.commands import paper_rows

SIGNS = "--student tanh --target sign --r 1.5 --c 1.3 --gamma .8 --loss logistic"
STEP = "--student tanh --target sin --alpha0 20"
SMALL = "--alpha .5,1 --lam .1 --dimension 40 --seeds 2 --rng 0"


@pytest.mark.parametrize(
    ("command", "line", "left_out"),
    [
        (validate, f"compare {STEP} --eta 3 --simulated srf {SMALL}", "train_error_stderr"),
        (validate, f"simulate {SIGNS} {SMALL}", "train_error_stderr"),
    ],
)
def test_tables_fit_a_page_or_are_wide(command, line, left_out, capsys):
    """What has no room is named; with --wide it is shown."""
    command(line)
    narrow, noted = capsys.readouterr()
    assert max(map(len, narrow.splitlines()[:3])) <= 100
    assert left_out in noted
    assert left_out not in narrow
    assert "train_error_z" in narrow.split() or SIGNS in line  # scores of both errors have room
    command(f"{line} --wide")
    wide, noted = capsys.readouterr()
    assert left_out in wide.splitlines()[0]
    assert "--wide" not in noted


def test_a_long_table_shows_its_ends(tmp_path, capsys):
    """Up to 60 rows all; of more the ends, and it says how to have the rest."""
    line = f"curve {STEP} --eta 3 --lam .1 --alpha"
    theory(f"{line} 0.2:3:60")
    assert "are shown" not in capsys.readouterr().err
    theory(f"{line} 0.2:3:61 --out {tmp_path / 'a.csv'}")
    table, noted = capsys.readouterr()
    alpha = [row.split()[0] for row in table.splitlines()]
    assert (len(alpha), alpha[1], alpha[21], alpha[-1]) == (42, "0.2", "...", "3")
    assert "note: the first and the last 20 of 61 points are shown: --wide shows all" in noted
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 62
    theory(f"{line} 0.2:3:61 --wide")
    assert len(capsys.readouterr().out.splitlines()) == 62


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (theory, f"curve {SIGNS} --lam .1 --alpha 1,2"),
        (validate, f"compare {SIGNS} {SMALL}"),
        (validate, f"simulate {SIGNS} {SMALL}"),
    ],
)
def test_which_labels_a_classification_error_is_of(command, line, capsys):
    command(line)
    table, noted = capsys.readouterr()
    assert "classification_error is the share of new labels, with their noise, that" in noted
    names = table.splitlines()[0].split()
    if "compare" in line:
        assert names.pop(2) == "source"
    assert names[2] == "classification_error"  # which is what --plot draws
    if "compare" in line:
        assert names[3] == "classification_error_z"  # before what a grid has no room for
    if "curve" in line:  # outputs are not fitted to the labels
        squared = "test_error and train_error are squared errors, which it does not minimise"
        assert f"{squared}; notes on d = 1000 are of the classification error alone" in noted
        assert names[-2:] == ["test_error", "train_error"]


@pytest.mark.slow
def test_errors_above_that_of_zero_are_noted(capsys):
    """E sigma_*^2 of abs is 1; an intercept cannot be advised twice."""
    line = "--student relu --target abs(z1) --alpha0 1 --eta 5 --alpha .05,1 --lam 1e-5,1e3"
    assert theory(f"curve {line}") == 0
    table, noted = capsys.readouterr()
    errors = [float(row.split()[2]) for row in table.splitlines()[1:]]
    worse_count = sum(error > 1 for error in errors)
    assert 0 < worse_count < 4
    up_to = f"up to {max(errors):.4g}, is hardly below 1, that of predicting 0, or above it"
    assert f"at {worse_count} of 4 points the test error, {up_to}" in noted
    assert "--intercept or a larger --lam" in noted
    for without_intercept in ("--intercept", "--reuse 1"):  # refused with it
        theory(f"curve {line} {without_intercept}")
        noted = capsys.readouterr().err
        assert "or above it: a larger --lam" in noted
    theory(f"curve {STEP} --eta 3 --alpha 1 --lam .1")
    (which,) = capsys.readouterr().err.splitlines()  # nor is the limit far, or the network
    assert which.startswith("note: theory of the sRF, the published equivalent")


def test_unknown_errors_are_counted_by_reason_and_in_no_note(capsys):
    statuses = [Status.QUADRATURE, Status.TIME, Status.QUADRATURE, Status.CONVERGED]
    errors = [np.nan, np.nan, np.nan, 3.0]
    points = [
        {"test_error": error, "status": str(status), "converged": status is Status.CONVERGED}
        for error, status in zip(errors, statuses, strict=True)
    ]
    print_notes(points, problem=PUBLISHED, time_limit=20.0)
    noted, warning = capsys.readouterr().err.splitlines()
    assert noted.startswith("note: at 1 of 4 points the test error, up to 3, is hardly below 0.43")
    assert warning.startswith("WARNING: 3 of 4 points: not converged: the quadrature error")
    assert "compare accepts it) (2 of them); not converged" in warning
    assert "(a larger --time-limit gives it more seconds) (1 of them)" in warning


def test_a_grid_far_from_the_limit_is_noted(capsys):
    """At the ends of its axes, where the smallest rate is: simulated, d = 500 is 3.7 times off."""
    line = f"curve {STEP} --eta .1,1,3 --alpha .2:5:5 --lam .1"
    assert theory(f"{line} --dimension 1000 --json") == 0
    (own,) = (
        point["test_error"]
        for point in json.loads(capsys.readouterr().out)["points"]
        if (point["eta"], point["alpha"]) == (0.1, 0.2)
    )
    assert theory(f"{line} --json") == 0
    printed, noted = capsys.readouterr()
    points = json.loads(printed)["points"]
    assert not any("finite_size_shift" in point for point in points)
    shift = own / points[0]["test_error"] - 1
    assert f"at eta = 0.1, alpha = 0.2, lam = 0.1 differs by {shift:+.0%}" in noted


@pytest.mark.slow
def test_an_unknown_distance_from_networks_is_noted(capsys):
    """Steep along a diagonal: there are no nodes for an answer at d = 1000, twice the limit."""
    line = "curve --theory network --student tanh --target tanh(3*(z1+z2)) --alpha0 4 --eta .05"
    assert theory(f"{line} --alpha .5 --lam 1.85") == 0
    noted = "how far these are from d = 1000 is not known: no answer, or none in time"
    assert f"note: {noted}\n" in capsys.readouterr().err


def test_how_far_the_limit_is_stands_in_the_figure(tmp_path, capsys):
    """As it does on standard error, and in the data set, where it is above 2 %."""
    line = f"curve {STEP} --eta 3 --alpha .2,1 --lam .1,100 --notes --out {tmp_path / 'a.nc'}"
    assert theory(f"{line} --plot {tmp_path / 'a.svg'}") == 0
    shift = capsys.readouterr().err.partition("differs by ")[2].split()[0]
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as data:
        assert data.attrs["limit"] == f"d → ∞ (at d = 1000 up to {shift})"
    point = replica.solve(PUBLISHED.srf(beta=1.0), alpha=0.2, lam=100.0)
    assert f"{shift} from the limit d -> inf to d = 1000" in repr(point)
    assert theory(f"curve {STEP} --eta 3 --alpha 1 --lam .1 --notes") == 0
    said = capsys.readouterr().err  # who asks is answered, however near they are
    assert "at d = 1000 the test error at alpha = 1, lam = 0.1 differs by +0.7%" in said
    assert "of the network itself differs by -2%" in said
    theory(f"curve {STEP} --eta 3 --alpha 1 --lam 100 --notes")
    assert "of the network itself differs by less than 0.05%" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "which"),
    [
        ("--eta 3", "note: theory of the sRF, the published equivalent (--theory network: "),
        ("--eta 3 --theory network", "note: theory of the network itself"),
        ("--eta 3 --reuse 1", "note: theory of the network itself, a share 1 of samples reused"),
        ("", ""),
    ],
)
def test_a_table_has_the_theory_of_a_step_beside_it(given, which, capsys):
    step = STEP if given else "--student tanh --target sin --r 1 --c 1 --gamma .9"
    theory(f"curve {step} {given} --alpha 1 --lam .1")
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(which) if which else said == []
    if "reuse" not in given:  # of which neither has a theory
        for command in ("bounds", "spectrum --alpha 1"):
            theory(f"{command} {step} {given}")
            notes = capsys.readouterr().err.splitlines()
            assert notes[0].startswith(which) if which else notes == []


def test_an_optimum_at_the_edge_is_noted(capsys):
    """Nothing is learned of an even target: the larger the penalty, the better."""
    assert theory("optimum --student tanh --target he2 --alpha0 3 --eta 1 --alpha 1") == 0
    table, noted = capsys.readouterr()
    names = "alpha lam test_error train_error converged"
    assert table.splitlines()[0].split() == names.split()
    assert "at 1 of 1 points the best lam is at the edge of the range searched" in noted
    assert "as replica curve or readout with values of --lam there tells" in noted


def test_an_optimum_beside_unsolved_values_is_noted(capsys):
    """At d = 200 penalties below .4 have no answer, which is not the edge of the range."""
    line = "--student relu --target he1+he2/2 --alpha0 1 --eta 2 --alpha 2 --theory network"
    assert theory(f"optimum {line} --dimension 200") == 0
    noted = capsys.readouterr().err
    assert "the best lam is beside values that were not solved, at which the test error" in noted
    assert "edge of the range" not in noted
    assert theory(f"curve {line} --dimension 200 --lam .3") == 1
    assert "(take the limit, without --dimension, a larger dimension" in capsys.readouterr().err


def test_a_table_for_a_paper(tmp_path, capsys):
    """Symbols over numbers of four digits; what could not be solved is a dash."""
    path = tmp_path / "table.tex"
    assert theory(f"curve {STEP} --eta 3 --alpha 1 --lam 1e-5,.1 --out {path}") == 0
    capsys.readouterr()
    comment, *lines = path.read_text().splitlines()
    settings = r"$\alpha_0 = 20$, $\tilde\eta = 3$, $\beta = 1$"
    assert comment == f"% tanh student, sin target, theory of the sRF, {settings}"
    assert lines[0] == r"\begin{tabular}{rrrr}"
    assert lines[2] == r"$\alpha$ & $\lambda$ & test error & train error \\"
    point = replica.solve(PUBLISHED.srf(beta=1.0), alpha=1, lam=0.1)
    assert lines[5] == rf"1 & 0.1 & {point.test_error:.4g} & {point.train_error:.4g} \\"
    swept = "--student tanh --target sin --r .5,1 --c 1 --gamma .9 --alpha 1 --lam .1"
    assert theory(f"curve {swept} --out {path}") == 0
    assert path.read_text().splitlines()[3].startswith(r"$r$ & $\alpha$")
    assert theory(f"curve {STEP} --eta 3 --alpha 1 --lam best --out {path}") == 0
    assert r"$\lambda$ & test error & train error \\" in path.read_text()
    assert theory(f"curve {SIGNS} --alpha 1 --lam .1 --out {path}") == 0
    assert "mean squared test error & mean squared train error & loss error" in path.read_text()
    assert theory(f"staircase --target z1+he2(z2) --out {path}") == 0
    assert path.read_text().startswith("% z1+he2(z2) target, degree = $4$\n")
    assert "& $d$ &" in path.read_text()
    assert "& $d^2$ &" in path.read_text()
    assert r"1 & -- \\" in to_tex([{"alpha": 1, "test_error": np.nan, "status": "time"}])


def test_files_of_simulations(tmp_path, capsys):
    """A row of CSV has the simulation's size and problem; a table for a paper what is printed."""
    line = f"--student tanh --target sin --alpha0 2 --eta 1 {SMALL} --out {tmp_path}"
    for name in ("simulate", "compare"):
        for suffix in ("csv", "tex"):
            assert validate(f"{name} {line}/{name[0]}.{suffix}") == 0
    capsys.readouterr()
    header, first, _ = (tmp_path / "s.csv").read_text().splitlines()
    assert header.endswith(",dimension,seeds,student,target,alpha0,eta,noise,beta")
    assert first.endswith(",40,2,tanh,sin,2.0,1.0,0.0,1.0")
    comment, *table = (tmp_path / "s.tex").read_text().splitlines()
    assert comment.endswith("$d = 40$, 2 seeds")
    assert "dimension" not in str(table)  # the same in all rows
    rows = [row.split(",") for row in (tmp_path / "c.csv").read_text().splitlines()]
    assert rows[0][-9:-4] == ["theory", "dimension", "seeds", "student", "target"]
    assert rows[1][-9:-4] == ["network at d = 40", "", "", "tanh", "sin"]
    assert rows[2][-9:-4] == ["network at d = 40", "40", "2", "tanh", "sin"]
    comment, *table = (tmp_path / "c.tex").read_text().splitlines()
    assert "$d = 40$, 2 seeds, theory of the network itself; taken at d = 40" in comment
    head, _, row = table[2:5]
    of_error = r"{0} error theory & {0} error simulated & {0} error difference \%"
    errors = f"{of_error.format('test')} & {of_error.format('train')}"
    assert head == rf"$\alpha$ & $\lambda$ & {errors} \\"
    theory_error, error, stderr = float(rows[1][3]), float(rows[2][3]), float(rows[2][4])
    of_both = rf"{theory_error:.4g} & ${error:.3f} \pm {stderr:.3f}$ & "
    off = f"${100 * (error - theory_error) / error:.1f}$"
    assert row.startswith(f"0.5 & 0.1 & {of_both}{off} & ")
    line = "alignment --student tanh --target sin --alpha0 2 --eta 1 --dimension 40 --seeds 2"
    assert validate(f"{line} --rng 0 --out {tmp_path}/a.tex") == 0
    assert "weights theory & weights simulated" in (tmp_path / "a.tex").read_text()


def test_a_table_for_a_paper_names_several_theories():
    errors = {"source": "theory", "test_error": 0.5, "test_error_stderr": 0.1}
    names = ["network at d = 40", "network limit"]
    points = [errors | {"theory": name} for name in names for _ in range(2)]
    assert [row["theory"] for row in paper_rows(points, ["test_error"])] == names
    assert "theory" not in paper_rows(points[:2], ["test_error"])[0]


KINDS = {"PDF": b"%PDF", "eps": b"%!PS", "Png": b"\x89PNG", "SVG": b"<?xml"}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", KINDS)
def test_suffixes_of_files_in_any_letters(suffix, tmp_path, capsys):
    plot, table = tmp_path / f"a.{suffix}", tmp_path / "a.CSV"
    line = f"curve {STEP} --eta 3 --lam .1 --alpha 1,2 --plot {plot} --out {table}"
    assert theory(f"{line} --style paper") == 0
    assert plot.read_bytes().startswith(KINDS[suffix])
    assert table.read_text().startswith("alpha,lam,")
    if suffix == "SVG":  # whose source has the texts: without a title, unless there is room for one
        assert b"student" not in plot.read_bytes()
        for size, titled in (("3.4x2.6", False), ("6x4", True)):
            assert theory(f"{line} --size {size}") == 0
            assert (b"student" in plot.read_bytes()) == titled


def test_figures_that_cannot_be_drawn_are_refused_first(capsys):
    line = f"curve {STEP} --eta 3 --lam .1 --alpha 1"
    assert "--style must be paper" in refusal(capsys, f"{line} --style poster")


def test_a_table_of_latex_has_no_empty_column():
    assert "edge" not in to_tex([{"alpha": 1.0, "at_edge": ""}, {"alpha": 2.0, "at_edge": ""}])
    assert "edge" in to_tex([{"alpha": 1.0, "at_edge": ""}, {"alpha": 2.0, "at_edge": "lam"}])


@pytest.mark.parametrize("size", ["3.4", "axb", "0x2", "3x200"])
def test_sizes_that_are_none_are_refused(size, tmp_path, capsys):
    plot = tmp_path / "a.png"
    assert theory(f"curve {STEP} --eta 3 --lam .1 --alpha 1 --plot {plot} --size {size}") == 2
    said = f"width and height in inches, from 1 to 100, such as 6x4, got {size}\n"
    assert capsys.readouterr().err.endswith(said)
    assert not plot.exists()


@pytest.mark.slow
def test_the_best_penalty_and_rate_on_a_grid(tmp_path, capsys):
    """Those of the Python function, over grids of a step's batch, too."""
    line = (
        f"curve --student tanh --target sin --eta best --alpha 1 --lam best --out {tmp_path}/a.csv"
    )
    found = document(capsys, f"{line} --alpha0 5,20")
    step = replica.GradientStep(student="tanh", target="sin", alpha0=1.0, eta=1.0)
    at = {"alpha": 1.0, "lam": "best", "eta": "best", "alpha0": [5.0, 20.0], "beta": 1.0}
    curve = replica.learning_curve(step, **at)
    for name in ("lam", "eta", "test_error"):
        assert [point[name] for point in found["points"]] == curve[name].values.tolist()
    # of the docstring of optimal_eta
    last = found["points"][1]
    assert (last["lam"], last["eta"]) == pytest.approx((0.155212, 4.81835), rel=1e-5)
    assert found["problem"] == {
        "student": "tanh", "target": "sin", "noise": 0.0, "beta": 1.0, "alpha0": [5.0, 20.0],
        "theory": "srf", "lam": "best", "eta": "best",
    }  # fmt: skip
    assert found["srf"] == {"r": None, "c": None, "gamma": None}
    capsys.readouterr()
    assert theory(f"{line} --alpha0 20") == 0
    assert capsys.readouterr().out.split()[:4] == ["alpha", "lam", "eta", "test_error"]
    for more, message in (
        ("--alpha0 20 --loss huber:1", "--loss must be the square where the best penalty"),
        ("--alpha0 best", "--alpha0 must be a number, a,b,c, start"),
        ("--r 1 --c 1 --gamma .9", "got best"),
        ("--steps 2:1,2:1", "--steps must be left out where the best step is searched"),
    ):
        assert message in refusal(capsys, f"{line} {more}")
    step = f"{STEP} --alpha 1"
    for line, message in (
        (f"curve {step} --eta 3 --lam Best", "or best alone where it is searched, got Best"),
        (f"curve {step} --eta best,1 --lam 1", "or best alone where it is searched, got best,1"),
        (f"spectrum {step} --eta best", "or best alone where it is searched, got best"),
        (f"optimum {step} --noise best", "--noise must be a number, a,b,c, start"),
        (
            f"optimum {step} --eta 3 --loss logistic",
            "loss_error of learning_curve over some lam (of",
        ),
    ):
        assert message in refusal(capsys, line)


def test_what_a_dimension_leaves_out_of_other_losses_is_said_unasked(capsys, caplog):
    """Sigmoid on two classes, .3 and .7 of the samples, has a classification error of .425 +- .012
    in networks of d = 400 at alpha = .7, lam = 1, .3225 in theory (136 draws)."""
    step = "--student tanh --target sign --alpha0 20 --eta 3"
    line = f"curve {step} --theory network --alpha 1 --lam .1"
    note = "the theory has the price of m alone (docs/readout.md): networks may be farther"
    for more, d in (
        ("--loss logistic", 1000),
        ("--loss logistic --dimension 400", 400),
        ("", None),
    ):
        assert theory(f"{line} {more}") == 0
        said = capsys.readouterr().err
        assert (f"at d = {d:g} {note}" in said) if d else note not in said
    network = replace(PUBLISHED, target="sign").network(beta=1.0, dimension=400)
    replica.learning_curve(network, alpha=1.0, lam=0.1, loss="logistic")
    assert f"at d = 400 {note}" in caplog.text
