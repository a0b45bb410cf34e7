"""One line for every mistake on the command line and in a problem file."""

import shlex
import subprocess
import sys

import pytest

from tests.cli.commands import document, refusal, theory, validate
from tests.processes import python

STEP = "curve --student tanh --target sin --alpha0 20 --eta 3"
POINT = f"{STEP} --alpha 1 --lam 0.1"


def test_a_module_that_fails_on_import(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boom.py").write_text("1 / 0\n")
    line = refusal(capsys, POINT.replace("tanh", "boom:f"))
    assert "--student" in line
    assert "division by zero" in line


SINE = "curve --student tanh --target sin --r 1.1 --c 1 --gamma .97 --noise .05 --alpha 1 --lam 1"
THREE = "curve --student tanh --target sin --alpha 1 --lam .05"
BARE = "--student tanh --target sin --alpha0 20"
SMALL = "--dimension 30 --seeds 2"


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (f"{STEP} --alpha -1 --lam 1", ["--alpha", "-1", "positive"]),
        (f"{STEP} --alpha 1 --lam 0", ["--lam", "got 0", "no unique minimiser"]),
        (POINT.replace("tanh", "foo"), ["--student", "foo", "tanh, erf, sin"]),
        # what comes close to a name is answered with it, and with the way to any function
        (
            POINT.replace("tanh", "leeky_relu"),
            ["did you mean leaky_relu?)", "or a function of your own"],
        ),
        (POINT.replace("tanh", "mish"), ["tanh, erf, sin", "mymodule:act with def act(x)"]),
        ("simulate --alpha 1", ["No such command 'simulate'", "did you mean replica-validate?"]),
        (POINT.replace("sin", "max(z1,0)"), ["'max' is unknown", "mymodule:act"]),
        (POINT.replace("sin", "foo(z1)"), ["'foo' is unknown", "arithmetic in x, or in z1"]),
        (f"{STEP} --alpha 1:2 --lam 1", ["--alpha", "1:2", "start:stop:count"]),
        (f"{STEP} --alpha 1 --lam 0:1:3:log", ["--lam", "0:1:3:log", "positive numbers"]),
        (POINT.replace("sin", "|z1|"), ["--target must be one of tanh", "abs"]),
        (f"{POINT} --out /nonexistent/a.csv", ["--out", "/nonexistent/a.csv", "folder"]),
        (f"{POINT} --plot /sys/a.png", ["--plot", "/sys/a.png", "folder"]),
        (f"{POINT} --out a.xyz", ["--out", "a.xyz", ".csv, .json, .tex, .nc"]),
        (f"{POINT} --plot a.txt", ["--plot", "a.txt", ".png"]),
        (f"{POINT} --r 1", ["--alpha0", "--r", "not both"]),
        (POINT.replace("--eta 3", "--eta=-2"), ["--eta", "-2", "0 or more"]),
        ("curve --target sin --alpha 1 --lam 1", ["--student must be given: Activation"]),
        ("curve --student tanh --target sin --alpha 1 --lam 1", ["--alpha0 must be given"]),
        (f"{POINT} --nonsense 1", ["--nonsense"]),
        (f"{POINT} --learning-rate 1", ["did you mean eta?"]),
        (f"{POINT} --sigma 1", ["did you mean noise, a variance?"]),
        (f"{POINT} --seeds 3", ["did you mean replica-validate?"]),
        (f"{POINT} --features F.npy", ["did you mean replica readout?"]),
        (
            "bounds --student tanh --target sin --alpha0 20 --eta 3 --dimension 300",
            ["in Python step.network(beta=1, dimension", "dimension=500"],
        ),
        # a word that stands for a number
        (f"{STEP} --alpha 1 --lam bset", ["--lam", "or best alone where it is searched"]),
        (POINT.replace("--alpha0 20", "--alpha0 alhpa"), ["--alpha0", "or alpha alone"]),
        # one value, where others are grids
        (f"{POINT} --theory srf,network", ["--theory must be srf or network"]),
        # what comes close to a name
        (f"{POINT} --theory netwrok", ["--theory must be srf or network", "did you mean network?"]),
        (f"{POINT} --loss hing", ["--loss must be one of square", "did you mean hinge?"]),
        (f"{POINT} --readout gausian", ["--readout must be equal", "did you mean gaussian?"]),
        (POINT.replace("sin", "sgn"), ["--target", "did you mean sign?"]),
        # sizes
        (f"{POINT} --dimension 12.7", ["--dimension must be a whole number, at least 1, or inf"]),
        (f"{POINT} --dimension 0.5", ["--dimension must be a whole number", "got 0.5"]),
        (
            f"{POINT.replace('sin', 'z1*z3')} --dimension 100,2",
            ["--dimension must be a whole number, at least 3, or inf, got 2"],
        ),
        (
            f"{POINT} --loss square,huber:1",
            ["--loss must be one of square", "of several run a command once for each"],
        ),
        (f"{POINT} --theory network --reuse 0,1", ["--reuse must be a single number", "once for"]),
        (POINT.replace("tanh", "tanh,relu"), ["--student must be one of"]),
        ("plan --student tanh --target sin --eta 3 --budget 1,2", ["--budget", "once for each"]),
        (f"{STEP} --alpha 1:3:100000000000 --lam 1", ["--alpha", "at most 500000", "GB"]),
        (f"{POINT} --readout cauchy", ["--readout", "cauchy", "gaussian"]),
        (f"{SINE} --readout 1", ["--readout", "--alpha0"]),
        ("curves", ["curves"]),
        # given twice, or in two ways
        (f"{POINT} --eta 4", ["--eta must be given once"]),
        (f"{POINT} --json --json", ["--json must be given once"]),
        (f"{POINT} --rate 4", ["--rate must be given without --eta"]),
        (f"{POINT} --kinks 1", ["--kinks must be left out"]),
        (f"{POINT} --readout gaussian,uniform", ["--readout must be equal", "or box"]),
        (f"{POINT} --config nowhere.toml", ["--config", "nowhere.toml"]),
        (
            POINT.replace("tanh", "sign"),
            ["--student", "a jump (an sRF of r, c and gamma takes it)"],
        ),
        # losses and laws of labels
        (f"{SINE} --loss huber", ["--loss must be one of square"]),
        (f"{SINE} --label-noise student:1", ["--label-noise must be one of outliers"]),
        # several steps
        (
            f"{THREE} --steps 2:1,2:1 --reuse 1",
            ["several steps (leave reuse out, or take one step"],
        ),
        (f"{THREE} --steps 2:1,2", ["--steps must be pairs alpha0:eta"]),
        (f"{THREE} --steps 2:1,2:1 --eta 1", ["--eta must be given without --steps"]),
        (f"{THREE} --steps 2:1,2:1 --r 1", ["given without"]),
        # what can be learned
        (f"bounds {BARE} --eta 1 --beta 1,2", ["--beta", "single"]),
        (f"bounds {BARE} --eta 1 --reuse 1", ["--reuse in bounds", "(others are of fresh"]),
        (f"optimum {BARE} --eta 3 --alpha 1 --lam 1", ["--lam", "left out"]),
        (f"optimum {BARE}", ["--alpha must be given"]),
        (f"spectrum {BARE} --eta 3 --alpha 1,2", ["--alpha", "single"]),
        (f"spectrum {BARE} --eta 3 --alpha 1 --train-bias", ["--train-bias"]),
        ("staircase", ["--target must be given"]),
        ("staircase --target z1 --out x.nc", ["--out must be a file name ending in .csv, .json"]),
        ("staircase --target he6 --out x.csv", ["--out must be .json where there is no stage"]),
    ],
)
def test_bad_input_is_one_line(line, parts, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refusal(capsys, line)
    for part in parts:
        assert part in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (theory, "curve --groups 1"),  # of files alone
        (theory, "curve --no-intercept"),
        (theory, "bounds --lam 1"),
        (theory, "spectrum --lam 1"),
        (validate, "simulate --theory srf"),
        (validate, "alignment --r 1"),
        (validate, "spectrum --train-bias"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(command, line, capsys):
    message = refusal(capsys, line, command)
    said = message.replace("'", "").replace("option:", "option")  # which depends on typer
    assert said.startswith(f"error: No such option {line.split()[1]}")


@pytest.mark.slow
def test_what_plays_no_part_of_a_problem_file_is_told(tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text('student = "tanh"\ntarget = "sin"\nalpha0 = 2\neta = 1\nloss = "huber:1"\n')
    assert theory(f"bounds --config {path} --eta 2") == 0
    of_theory, unused = capsys.readouterr().err.splitlines()
    assert of_theory.startswith("note: theory of the sRF")
    assert unused == f"note: loss of {path} play no part in this command"
    others = 'student = "erf"\ntarget = "sin"\neta = 1\n'
    path.write_text(f'{others}loss = "logistic"\ntheory = "srf"\nreuse = 0.5\n')
    found = document(capsys, f"plan --config {path} --budget 2")
    path.write_text(others)
    assert found == document(capsys, f"plan --config {path} --budget 2")
    path.write_text("eta = .5\n")
    assert "with 0.5 for .5" in refusal(capsys, f"curve --config {path}")


@pytest.mark.parametrize(
    ("command", "line", "said"),
    [
        (theory, "plan --loss hinge", "--loss in plan: leave it out (replica curve takes it)"),
        (theory, "plan --inputs a.toml", "(replica curve takes it)"),
        (theory, "spectrum --lam 1", "--lam in spectrum: leave it out (replica curve takes it)"),
        (theory, "explore --lam 1", "(replica curve takes it)"),
        (validate, "spectrum --lam 1", "(replica-validate compare takes it)"),
        (validate, "figure cui/1 --lam 1", "(replica-validate compare takes it)"),
        (validate, "plan --loss hinge", "did you mean replica plan?"),
        (
            validate,
            f"simulate {BARE} --eta 1,2 --alpha 1 --lam 1",
            "(run the command once for each, or replica-validate compare, which takes grids",
        ),
    ],
)
def test_what_another_command_takes_is_refused_with_its_name(command, line, said, capsys):
    assert said in refusal(capsys, line, command)


def test_a_ladder_has_dimensions_of_its_own(capsys):
    line = f"compare {BARE} --eta 3 --alpha 1 --lam 1"
    said = refusal(capsys, f"{line} --ladder 30,60 --dimension 40", validate)
    assert "--dimension must be left out with --ladder" in said
    said = refusal(capsys, f"{line} --dimension 30,60", validate)
    assert "one whole number, not 30,60 (of several, compare --ladder" in said


@pytest.mark.parametrize(
    ("command", "line", "parts"),
    [
        (theory, "staircase --target z1+1e300*z2", ["--target", "1e+30"]),
        (theory, "staircase --target he1+1e300*he2", ["--target", "1e300"]),
        (theory, POINT.replace(" sin", " 'z1 + z\uff12'"), ["--target", "z1 ... z4"]),
        (validate, f"alignment {BARE} --eta 1 --beta=nan {SMALL}", ["--beta", "nan"]),
    ],
)
def test_numbers_and_letters_that_are_none(command, line, parts, capsys):
    message = refusal(capsys, line, command)
    assert all(part in message for part in parts), message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "value"),
    [("MPLBACKEND", "x"), ("NUMBA_NUM_THREADS", "0"), ("COLUMNS", "x")],
)
def test_variables_of_others(variable, value, tmp_path):
    """What a library of ours would stumble over, or take forever with."""
    command = f"{POINT} --alpha 1:2:200 --plot {tmp_path / 'a.png'}".replace("--alpha 1 ", "")
    for line in (command, "curve --help"):
        done = python("-m", "replica", *line.split(), variables={variable: value}, timeout=60)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("closed", "status"),
    [
        (">&-", 2),
        pytest.param("2>&-", 0, marks=pytest.mark.slow),
        *(pytest.param(closed, 2, marks=pytest.mark.slow) for closed in (">&- 2>&-", ">/dev/full")),
    ],
)
def test_closed_and_full_streams(closed, status):
    """Without standard error all is as ever; without standard output nothing can be answered."""
    line = f"{shlex.quote(sys.executable)} -m replica {POINT} --json {closed}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == status
    assert (done.stdout == "") == (status == 2)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("alpha0", "true", "--alpha0 must be a number"),
        ("eta", "[true]", "--eta must be a number"),
        ("intercept", "1", "--intercept must be True or False"),
        ("student", "3", "--student must be"),
        ("readout", "true", "--readout must be"),
        ("steps", "2", "--steps must be a sequence of pairs"),
        ("width", "2", "without width, which is no option (did you mean beta, p/d?)"),
        ("lam", "{}", "--lam must be a number"),
    ],
)
def test_a_value_of_another_kind_in_a_problem_file(key, value, said, tmp_path, capsys):
    path = tmp_path / "problem.toml"
    others = {"student": "'tanh'", "target": "'sin'", "alpha0": "1", "eta": "1", "lam": "1"}
    others = {} if key == "steps" else others
    values = {"student": "'tanh'", "target": "'sin'", "alpha": "1", "lam": "1"} | others
    path.write_text("".join(f"{k} = {v}\n" for k, v in (values | {key: value}).items()))
    assert said in refusal(capsys, f"curve --config {path}")
