"""What users hold on to: names, parameters, options, keys of documents, columns of files.

``python -m tests.project.public_names`` writes today's into ``public_names.json``, which is what
the test compares with: a change is made there, on purpose.
"""

import csv
import inspect
import io
import json
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

PATH = Path(__file__).with_suffix(".json")

STEP = "--student tanh --target sin --alpha0 2 --eta 1"
SMALL = "--dimension 40 --seeds 2 --rng 0"
POINT = f"{STEP} --alpha 1 --lam .1"
SIGNS = "--student tanh --target sign --r 1 --c 1 --gamma .8 --alpha 1 --lam .1 --loss logistic"
LINES = {  # commands, each once on an ordinary problem and where its document has more keys
    "curve": f"replica curve {POINT}",
    "curve of labels +-1": f"replica curve {SIGNS}",
    "curve of several steps": "replica curve --student tanh --target sin --steps 2:1,2:1 --alpha 1 "
    "--lam .1",
    "curve over a field": f"replica curve {POINT} --beta 1,2",
    "curve with a trained bias": f"replica curve {POINT} --train-bias",
    "bounds": f"replica bounds {STEP} --alpha 1",
    "optimum": f"replica optimum {STEP} --alpha 1",
    "plan": "replica plan --student tanh --target sin --eta 3 --budget 2 --lam .1",
    "spectrum": f"replica spectrum {STEP} --alpha 2",
    "staircase": "replica staircase --target z1+z1*z2",
    "simulate": f"validate simulate {POINT} {SMALL}",
    "compare": f"validate compare {POINT} {SMALL}",
    "compare labels +-1": f"validate compare {SIGNS} {SMALL}",
    "ladder": f"validate compare {POINT} --ladder 30,40 --seeds 2 --rng 0",
    "alignment": f"validate alignment {STEP} {SMALL}",
    "simulated spectrum": f"validate spectrum {STEP} --alpha 2 --dimension 40 --rng 0",
}
TABLES = {  # what is written to a file, and whether it may be a NetCDF file
    "curve": True, "curve of labels +-1": True, "curve over a field": True,
    "curve with a trained bias": True, "bounds": False, "optimum": True, "plan": False,
    "spectrum": False,
    "staircase": False, "simulate": True, "compare": False, "alignment": False,
}  # fmt: skip


def parameters(function):
    """Names of the parameters as they are given, * where only by name from there on."""
    names, by_name = [], False
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not by_name:
            names.append("*")
            by_name = True
        names.append(f"*{one.name}" if one.kind is one.VAR_POSITIONAL else one.name)
    return " ".join(names)


def members(result):
    """Public attributes and methods of what a function returns."""
    fields = {*getattr(result, "__dataclass_fields__", ()), *dir(result)}
    return " ".join(sorted(name for name in fields if not name.startswith("_")))


def results(replica, validation):
    """The members of what the functions return, where that is not an array or a Dataset."""
    step = replica.GradientStep(student="tanh", target="sin", alpha0=2, eta=1)
    model = step.srf(beta=1.0)
    signs = replica.SpikedRandomFeatures(student="tanh", target="sign", r=1, c=1, gamma=0.8)
    at, small = dict(alpha=1.0, lam=0.1), dict(seeds=2, rng=0)
    logistic = replica.solve(signs, **at, loss="logistic")
    nine = [float(i) for i in range(9)]
    sample = replica.FeatureSample(features=[[x] for x in nine], labels=nine, classes=())
    found = {
        "solve": replica.solve(model, **at),
        "solve.overlaps": replica.solve(model, **at).overlaps,
        "gradient": replica.gradient(model, **at),
        "learned_function": replica.learned_function(model, **at),
        "bounds": replica.bounds(model),
        "bounds over eta": replica.bounds(step, eta=[1.0]),
        "best_bounds": replica.best_bounds(step, eta=(0.5, 1.0)),
        "optimal_lambda": replica.optimal_lambda(model, alpha=1.0),
        "samples_needed": replica.samples_needed(sample, lam=1.0, test_error=0.9),
        "spectrum": replica.spectrum(model, 2.0),
        "calibration": replica.calibration(logistic, [0.0]),
        "after_each_step": replica.after_each_step(step)[0],
        "staircase": replica.staircase("z1 + z1*z2"),
        "staircase.stages": replica.staircase("z1 + z1*z2").stages[0],
        "draw": validation.draw(model, dimension=30, rng=0),
        "simulate": validation.simulate(model, **at, dimension=30, **small),
        "compare": validation.compare(model, **at, dimension=30, **small),
        "ladder": validation.ladder(model, **at, dimensions=[30, 40], **small),
    }
    return {name: members(result) for name, result in found.items()}


def package(module):
    """Of every public name its parameters."""
    return {name: parameters(getattr(module, name)) for name in sorted(module.__all__)}


def options(application):
    """Of every command its options and arguments."""
    import typer

    program = typer.main.get_command(application)
    found = {"": " ".join(name for one in program.params for name in one.opts)}
    for name, command in sorted(program.commands.items()):
        given = [(*one.opts, *one.secondary_opts) for one in command.params]
        found[name] = " ".join(sorted("/".join(names) for names in given))
    return found


def keys(document):
    """The keys of a document, level by level: those of plain values in one line, under an empty
    name where others hold more; of a list those of its first entry."""
    if isinstance(document, list):
        return [keys(document[0])] if document and isinstance(document[0], dict) else None
    if not isinstance(document, dict):
        return None
    found = {name: keys(value) for name, value in sorted(document.items())}
    plain = " ".join(name for name, inner in found.items() if inner is None)
    more = {name: inner for name, inner in found.items() if inner is not None}
    return {"": plain} | more if more else plain


def run(line, *more):
    """What a command prints on standard output; 1 is the status of a failed comparison."""
    program, *words = [*line.split(), *more]
    application, runner = programs()[program]
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = runner(application, words)
    assert status in (0, 1), err.getvalue()
    return out.getvalue()


def packages():
    """The names of the public modules, with their parameters."""
    import replica
    import validation
    from replica import plotting, reference, sklearn

    found = {"replica": package(replica), "validation": package(validation)}
    # beside its figures, what those of validation share with them
    figures = [name for name in sorted(plotting.__all__) if name.startswith("plot_")]
    found["replica.plotting"] = {name: parameters(getattr(plotting, name)) for name in figures}
    found["replica.reference"] = {"solve": parameters(reference.solve)}
    found["replica.sklearn"] = package(sklearn)
    found["replica.GradientStep"] = {
        name: parameters(getattr(replica.GradientStep, name)) for name in ("srf", "network")
    }
    return found


def programs():
    """Both applications, and what runs them."""
    from replica.cli import run as runner
    from replica.cli.main import app as theory
    from validation.cli.main import app as experiments

    return {"replica": (theory, runner), "validate": (experiments, runner)}


def told(name):
    """The keys of the document that a command prints; and of the files that it writes the columns,
    of NetCDF the dimensions and variables."""
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "a.csv"
        printed = run(LINES[name], "--json", *(["--out", str(table)] if name in TABLES else []))
        if name in TABLES:
            files["csv"] = " ".join(next(csv.reader(table.read_text().splitlines())))
        if TABLES.get(name):
            import xarray

            file = Path(folder) / "a.nc"
            run(LINES[name], "--out", str(file))
            with xarray.open_dataset(file, engine="h5netcdf") as data:
                variables = sorted(data.variables.items())
                files["nc"] = " ".join(f"{name}({','.join(one.dims)})" for name, one in variables)
                files["nc attributes"] = " ".join(sorted(map(str, data.attrs)))
    return keys(json.loads(printed)), files


def today():
    """All of it, as a document."""
    import replica
    import validation

    found = {name: told(name) for name in LINES}
    return {
        "packages": packages(),
        "results": results(replica, validation),
        "options": {name: options(application) for name, (application, _) in programs().items()},
        "documents": {name: document for name, (document, _) in found.items()},
        "files": {name: found[name][1] for name in TABLES},
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(today(), indent=1) + "\n")
