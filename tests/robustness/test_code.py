"""Code that a command is given: what it prints, what it returns, and who may name it."""

from tests.cli.commands import refusal, theory

REST = "--target sin --alpha0 20 --eta 3 --alpha 1 --lam 0.1"


def test_what_a_users_module_prints_is_not_part_of_the_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talks.py").write_text("import numpy\nprint('hello')\nf = numpy.tanh\n")
    assert theory(f"curve --student talks:f {REST}") == 0
    out, err = capsys.readouterr()
    assert out.split()[-1] == "True"
    assert ("hello" in out, "hello" in err) == (False, True)


def test_a_file_may_name_code_only_if_that_is_allowed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("import numpy\nopen('ran', 'w').close()\nf = numpy.tanh\n")
    (tmp_path / "p.toml").write_text('student = "evil:f"\n')
    line = f"curve {REST} --config p.toml"
    assert "--allow-import" in refusal(capsys, line)
    assert not (tmp_path / "ran").exists()
    assert theory(f"{line} --allow-import") == 0
    assert (tmp_path / "ran").exists()
