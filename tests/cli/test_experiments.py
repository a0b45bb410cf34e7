"""replica-validate: comparisons over any parameter, the seed of a store, the list of figures."""

import json

import pytest
import xarray

from tests.cli.commands import document, refusal, validate
from validation import figures

STEP = "--student tanh --target sin --alpha0 2 --alpha .5,2 --lam .1"
SMALL = "--dimension 40 --seeds 3 --rng 0 --simulated srf"


def test_a_comparison_over_any_parameter(capsys):
    """Each point is that of the comparison at its own setting; at d = 40 training errors are more
    than a quarter apart, which tells nothing."""
    found = document(capsys, f"compare {STEP} --eta 1,3 --beta .5,2 {SMALL}", validate)
    assert not found["agrees"]
    assert found["problem"]["eta"] == [1, 3]
    assert len(found["points"]) == 16
    alone = document(capsys, f"compare {STEP} --eta 3 --beta .5 {SMALL}", validate)["points"]
    assert [p for p in found["points"] if (p["eta"], p["beta"]) == (3, 0.5)] == [
        {"eta": 3, "beta": 0.5} | point for point in alone
    ]


def test_a_theory_that_takes_too_long_is_no_verdict(capsys):
    line = f"compare {STEP} --eta 1 {SMALL} --time-limit 1e-9"
    found = document(capsys, line, validate, status=1)
    assert found["verdict"].startswith("The theory did not converge everywhere")
    assert found["points"][0]["test_error"] is None


@pytest.mark.parametrize(
    ("options", "clause", "notes"),
    [
        ("", True, ["a part of --time-limit", "--time-limit 600 gives them more"]),
        ("--theory srf", True, ["as asked"]),
        ("--simulated srf", False, ["which is what is simulated"]),
    ],
)
def test_the_srf_of_networks_may_be_off_in_the_limit_too(
    options, clause, notes, capsys, monkeypatch
):
    """In the verdict unless it agrees; arguments are named as options of the command line."""
    monkeypatch.setattr("replica.steps.row_steps.BATCH_TIME", 0.00005)
    line = f"compare --student erf --target z1+z1*z2 --alpha0 1.3 --eta .7 {options}"
    assert validate(f"{line} --alpha 1 --lam 1e-4 --dimension 20 --seeds 2 --rng 0") == 0
    found = capsys.readouterr().out
    assert "Theory and simulation agree" not in found
    assert (" (the sRF may differ from the network in the limit, too)" in found) == clause
    assert all(note in found for note in notes)
    assert "time_limit" not in found


def test_laws_of_the_readout_side_by_side(tmp_path, capsys):
    line = f"compare {STEP} --eta 1 --readout equal,rademacher {SMALL}"
    file = tmp_path / "a.nc"
    points = document(capsys, f"{line} --out {file}", validate)["points"]
    with xarray.open_dataset(file, engine="h5netcdf") as data:
        own = data.sel(readout="rademacher", source="simulation").test_error
        assert own.values.ravel().tolist() == [point["test_error"] for point in points[5::2]]
    assert [point["readout"] for point in points] == ["equal"] * 4 + ["rademacher"] * 4


def test_a_rate_that_follows_the_width_is_simulated(capsys):
    """eta/d = 2: eta~ is 4 and 1 at the two widths."""
    found = document(capsys, f"compare {STEP} --rate 2 --beta .5,2 {SMALL}", validate)["points"]
    for beta, eta in ((0.5, 4), (2, 1)):
        alone = document(capsys, f"compare {STEP} --eta {eta} --beta {beta} {SMALL}", validate)
        errors = [p["test_error"] for p in alone["points"]]
        assert [p["test_error"] for p in found if p["beta"] == beta] == errors


def test_a_table_is_blank_where_there_is_no_number(capsys):
    """The theory has no standard errors and no scores."""
    line = "alignment --student tanh --target sin --alpha0 2 --eta 1 --dimension 40 --seeds 2"
    assert validate(f"{line} --rng 0 --wide") == 0
    table, noted = capsys.readouterr()
    assert "note: the theory is the limit; cosines at d = 40 differ from it by terms of" in noted
    header, in_theory, simulated = (row.split() for row in table.splitlines())
    assert in_theory[:3] == ["1", "1", "theory"]
    assert (len(header), len(in_theory), len(simulated)) == (9, 5, 9)


def test_a_store_has_a_seed(tmp_path, capsys, caplog):
    """Its own where none is given, which it says; the same line goes on with it, and says how many
    draws it found."""
    line = f"simulate {STEP} --eta 1 --dimension 40 --seeds 2 --store {tmp_path} --json"
    assert validate(line) == 0
    out, err = capsys.readouterr()
    assert "--rng 0 is taken" in err
    assert validate(f"{line} --rng 0") == 0
    assert json.loads(capsys.readouterr().out)["points"] == json.loads(out)["points"]
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert validate(f"{line} --rng 0".replace("--seeds 2", "--seeds 3")) == 0
    assert caplog.messages == [
        f"{text} in {tmp_path}, {run} are run"
        for text, run in (
            ("0 of 2 draws found", 2), ("2 of 2 draws found", 0), ("2 of 3 draws found", 1)
        )
    ]  # fmt: skip


def test_figures_are_listed_and_named_before_anything_else(tmp_path, capsys):
    assert validate("figure --list") == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(" ")]
    assert sorted(listed) == sorted(figures.FIGURES)
    assert "the name of a figure must be one of cui/1" in refusal(capsys, "figure x", validate)
    assert "--plot must be given" in refusal(capsys, "figure cui/3", validate)
    assert "the name of a figure" in refusal(capsys, "figure", validate)


def test_an_interruption_says_what_is_kept(tmp_path, capsys, monkeypatch):
    """Ctrl-C in the third of four draws: two are kept where there is a store, which the same line
    goes on from; none is kept without one, which it says."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "act.py").write_text(
        "import os\nimport numpy as np\n\n\ndef stop(x):\n"
        "    if len(os.listdir('cells')) > int(os.environ['CELLS']):\n"
        "        raise KeyboardInterrupt\n    return np.tanh(x)\n"
    )
    (tmp_path / "cells").mkdir()
    line = f"simulate {STEP.replace('tanh', 'act:stop')} --eta 1 --dimension 40 --seeds 4 --rng 0"
    monkeypatch.setenv("CELLS", "1")
    assert validate(f"{line} --store cells") == 130
    kept = "interrupted; 2 of 4 draws are kept in cells: the same command goes on from there"
    assert kept in capsys.readouterr().err
    assert len(list((tmp_path / "cells").glob("*.json"))) == 2
    monkeypatch.setenv("CELLS", "9")
    assert validate(f"{line} --store cells") == 0
    assert len(list((tmp_path / "cells").glob("*.json"))) == 4
    monkeypatch.setenv("CELLS", "2")
    assert validate(f"compare {line.partition(' ')[2]}") == 130
    assert "none is kept: with --store FOLDER they are" in capsys.readouterr().err


def test_the_layers_drawn_are_a_theory_on_the_command_line(capsys):
    line = f"compare {STEP} --eta 1 --dimension 40 --seeds 3 --rng 0"
    found = document(capsys, f"{line} --theory given", validate)
    assert found["theory"] == "theory given the first layer of every draw"
    message = refusal(
        capsys, f"spectrum {STEP} --eta 1 --theory given".replace("--lam .1", ""), validate
    )
    assert "srf or network" in message
