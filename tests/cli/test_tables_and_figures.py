"""What a command shows: tables that fit a page, and figures of what matters."""

import pytest

from tests.cli.commands import theory, validate

SIGNS = "--student tanh --target sign --r 1.5 --c 1.3 --gamma .8 --loss logistic"
STEP = "--student tanh --target sin --alpha0 20"
SMALL = "--alpha .5,1 --lam .1 --dimension 40 --seeds 2 --rng 0"


@pytest.mark.parametrize(
    ("command", "line", "left_out"),
    [
        (validate, f"compare {STEP} --eta 3 {SMALL}", "stderr_train"),
        (validate, f"compare {SIGNS} {SMALL}", "stderr_classification_error"),
        (validate, f"simulate {SIGNS} {SMALL}", "stderr_classification_error"),
    ],
)
def test_tables_fit_a_page_or_are_wide(command, line, left_out, capsys):
    """What has no room is named; with --wide it is shown."""
    command(line)
    narrow, noted = capsys.readouterr()
    assert max(map(len, narrow.splitlines()[:3])) <= 100
    assert left_out in noted
    assert left_out not in narrow
    command(f"{line} --wide")
    wide, noted = capsys.readouterr()
    assert left_out in wide.splitlines()[0]
    assert "--wide" not in noted


def test_scores_of_both_errors_have_room(capsys):
    validate(f"compare {STEP} --eta 3 {SMALL}")
    names = capsys.readouterr().out.splitlines()[0].split()
    assert names[:7] == [
        "alpha", "lam", "theory_test", "simulated_test", "stderr_test", "z", "z_train"
    ]  # fmt: skip


def test_a_figure_of_classification_says_what_the_squared_error_is(tmp_path, capsys):
    assert theory(f"curve {SIGNS} --lam .1 --alpha 1,2 --plot {tmp_path / 'a.png'}") == 0
    table, noted = capsys.readouterr()
    names, *rows = (row.split() for row in table.splitlines())
    squared = sorted(float(row[names.index("test_error")]) for row in rows)
    assert "the figure has the classification error" in noted
    assert f"{squared[0]:.4g} to {squared[1]:.4g}, is test_error" in noted


@pytest.mark.parametrize("more", ["--alpha 1", "--alpha 1 --eta 3", "--alpha 1,2 --lam .1"])
def test_optima_are_drawn(more, tmp_path, capsys):
    assert theory(f"optimum {STEP} {more} --plot {tmp_path / 'a.svg'}") == 0
    assert (tmp_path / "a.svg").stat().st_size > 5000
    capsys.readouterr()


def test_more_lines_than_can_be_told_apart_are_refused(tmp_path, capsys):
    line = f"curve {STEP} --eta 1,2,3 --beta 1,2,3 --alpha 1,2,3,4 --lam .1"
    assert theory(f"{line} --plot {tmp_path / 'a.png'}") == 2
    assert "a figure must be of at most 8 lines" in capsys.readouterr().err
