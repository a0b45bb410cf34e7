"""``python -m benchmarks.report``: the library beside the literal baseline, on this machine.

One run, a few minutes at most: every round times each thing once or more, the baseline
included, so that all of them meet the same load.  Writes RESULTS.md beside this file.
"""

import datetime
import os
import platform
import time
import timeit
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import scipy

import replica
from replica import reference
from replica.saddle_point import ridge

from . import literal
from .benchmarks import (
    CURVE_COMMAND,
    MANY_ALPHAS,
    MODEL,
    ONE_STEP,
    POINT,
    TIMED_LOSSES,
    Learnable,
    Library,
    Losses,
    LossGrids,
    groups_table,
    kernel_table,
    python,
    python_first_run,
)
from .network_theory import TIMED_MODELS, TIMED_STEPS, Network
from .pages import paragraphs
from .structured_inputs import SETTINGS

ROUND_ALPHAS = (0.2, 0.9, 1.6, 2.3, 3.0)  # the alpha at which each round times the baseline
LOSS_PENALTIES = (1e-4, 0.05, 10)
NUMERICS = "-c", "import numpy, scipy.optimize, scipy.special"
ALPHAS_OF_BOX = np.linspace(0.2, 3, 16)
DIAGRAM = {"alpha": np.linspace(0.2, 3, 40), "eta": np.geomspace(0.1, 20, 40), "lam": 0.1}
GRID_BARS = {"logistic": 10, "hinge": 10, "squared hinge": 10}  # ms a point
# Seconds that the baseline's point takes on the machine that the bars are meant for: times are
# compared with them as they would be there.
BARS_LITERAL = 1.4
RESULTS_PAGE = Path(__file__).with_name("RESULTS.md")


def seconds(function, repeats=1):
    """Median time of ``repeats`` calls."""
    return median(timeit.repeat(function, number=1, repeat=repeats))


def measure(eigenvalues):
    """Seconds of each thing, {name: list over ROUND_ALPHAS}, and the baseline's solutions."""
    table, one = kernel_table(), np.array([POINT["lam"]])
    many = np.full(len(MANY_ALPHAS), POINT["lam"])
    distinct, paired = groups_table("sigmoid"), groups_table("tanh")
    networks = {
        (step, model): kernel_table(getattr(TIMED_STEPS[step], model)(beta=1.0))
        for step in TIMED_STEPS
        for model in ("srf", "network")
    }
    relu = replica.GradientStep(student="relu", target="sin", alpha0=1, eta=2.0)
    sixteen = replace(relu, readout=np.linspace(-1.6, 1.7, 16)).network(beta=1.0)
    box = replace(ONE_STEP, readout="box").network(beta=1.0)
    structured = replica.GradientStep(**SETTINGS["product of two directions"][0])
    mixed = {model: getattr(structured, model)(beta=1.0) for model in ("srf", "network")}
    spectrum = replica.spectrum(MODEL, 2.0)
    x = np.linspace(0, 1.05 * spectrum.edges.max(), 1000)
    tasks = {
        "kernel of 1000": (lambda: ridge.solve_points(table, MANY_ALPHAS, many), 20),
        "checked": (lambda: ridge.solve_points(table, MANY_ALPHAS, many, coarse=table), 20),
        "kernel of 1": (lambda: ridge.solve_points(table, np.array([0.9]), one), 200),
        "32 groups": (lambda: ridge.solve_points(distinct, np.array([0.9]), one), 3),
        "32 paired": (lambda: ridge.solve_points(paired, np.array([0.9]), one), 3),
        "solve": (lambda: replica.solve(MODEL, **POINT), 50),
        "damped": (Library().time_solve_damped, 3),
        "curve": (lambda: replica.learning_curve(MODEL, alpha=MANY_ALPHAS, lam=POINT["lam"]), 20),
        "diagram": (lambda: replica.learning_curve(ONE_STEP, beta=1.0, **DIAGRAM), 3),
        "best lam": (lambda: replica.optimal_lambda(MODEL, alpha=1.0), 20),
        "best pair": (lambda: replica.optimal_eta(ONE_STEP, alpha=1.0, beta=1.0), 3),
        "best pair, first": (Learnable().time_optimal_eta_and_lambda_without_tables, 1),
        "density": (lambda: spectrum.density(x), 10),
        "import": (lambda: python("-c", "import replica"), 2),
        "process": (lambda: python(*CURVE_COMMAND), 2),
        "first run": (lambda: python_first_run(*CURVE_COMMAND), 1),
        "numpy": (lambda: python(*NUMERICS), 2),
        "numpy, first": (lambda: python_first_run(*NUMERICS), 1),
        "16 values": (lambda: replica.solve(sixteen, **POINT), 1),
        "box": (lambda: replica.learning_curve(box, alpha=ALPHAS_OF_BOX, lam=POINT["lam"]), 1),
    }
    for loss in TIMED_LOSSES:
        tasks[loss] = (lambda loss=loss: LossGrids().time_grid(loss), 1)
        for lam in LOSS_PENALTIES:
            tasks[loss, lam] = (lambda loss=loss, lam=lam: Losses().time_point(loss, lam), 5)
    for name, of in mixed.items():
        at = dict(alpha=MANY_ALPHAS, lam=POINT["lam"])
        tasks["mixture", name] = (lambda of=of, at=at: replica.learning_curve(of, **at), 10)
    for name, of in networks.items():
        tasks[name] = (lambda of=of: ridge.solve_points(of, MANY_ALPHAS, many), 10)
    for step, of in TIMED_MODELS.items():
        srf, network = of.srf(beta=1.0), Network()
        network.setup(step)
        tasks[step, "solve"] = (lambda n=network, s=step: n.time_solve(s), 50)
        tasks[step, "its sRF"] = (lambda srf=srf: replica.solve(srf, **POINT), 50)
        tasks[step, "curve"] = (lambda n=network, s=step: n.time_learning_curve_of_1000(s), 10)
        tasks[step, "model"] = (lambda n=network, s=step: n.time_model(s), 3)
    for task, _ in tasks.values():
        task()  # tables made, files in the page cache
    times = {name: [] for name in (*tasks, "literal")}
    baseline = []
    for alpha in ROUND_ALPHAS:
        for name, (task, repeats) in tasks.items():
            times[name].append(seconds(task, repeats))
        start = time.perf_counter()
        baseline.append(
            literal.solve(MODEL, alpha=alpha, lam=POINT["lam"], eigenvalues=eigenvalues)
        )
        times["literal"].append(time.perf_counter() - start)
    return times, baseline


def speed_table(times, set_up):
    """Lines of the table of speeds, with the bars of the design."""
    middle = {name: median(values) for name, values in times.items()}

    def times_over(one, other):
        return median(a / b for a, b in zip(times[one], times[other], strict=True))

    ratio = times_over("literal", "curve") * len(MANY_ALPHAS)
    network = []
    for step in TIMED_STEPS:
        name = f"the network's, {step}, a point of 1 000"
        over = times_over((step, "network"), (step, "srf"))
        network += [(name, middle[step, "network"] * 1e3, "µs", None)]
        network += [("that over its sRF's", over, "times", 5)]
    for step in TIMED_MODELS:
        over = times_over((step, "solve"), (step, "its sRF"))
        network += [
            (f"a network's model, {step}, and a point", middle[step, "model"], "s", 0.3),
            (f"its `replica.solve`, warm, {step}", middle[step, "solve"] * 1e3, "ms", None),
            ("that over its sRF's", over, "times", 5),
            (f"its curve of 1 000 alpha, {step}", middle[step, "curve"] * 1e3, "ms", 30),
        ]
    losses = []
    for loss in TIMED_LOSSES:
        losses += [
            (f"{loss}: lam = {lam:g}, a point and its tables", middle[loss, lam], "s", 0.1)
            for lam in LOSS_PENALTIES
        ]
        grid = f"{loss}: a point of a grid of 25 x 3"
        losses += [(grid, middle[loss] / 75 * 1e3, "ms", GRID_BARS.get(loss))]
    mixture = "on two components of two coordinates, sRF"
    mixed = times_over(("mixture", "network"), ("mixture", "srf"))
    warm, first = times_over("process", "numpy"), times_over("first run", "numpy, first")
    rows = [
        ("ridge kernel, 128 nodes, a point of 1 000", middle["kernel of 1000"] * 1e3, "µs", 12),
        ("the same with its residuals on two such tables", middle["checked"] * 1e3, "µs", None),
        ("ridge kernel, 128 nodes, one point alone", middle["kernel of 1"] * 1e6, "µs", None),
        *network,
        (f"{mixture}, a point of a curve of 1 000", middle["mixture", "srf"] * 1e3, "µs", 10),
        ("its network's over that", mixed, "times", 5),
        ("general kernel, 32 groups, 128 nodes, a point", middle["32 groups"] * 1e3, "ms", 50),
        ("the same, odd student (16 kinds)", middle["32 paired"] * 1e3, "ms", 50),
        ("`replica.solve`, warm", middle["solve"] * 1e3, "ms", 0.5),
        ("the same, damped iteration", middle["damped"] * 1e3, "ms", None),
        ("`replica.learning_curve`, 1 000 alpha, warm", middle["curve"] * 1e3, "ms", 12),
        ("a phase diagram of 40 rates x 40 alpha", middle["diagram"] * 1e3, "ms", 250),
        ("`replica.optimal_lambda`", middle["best lam"] * 1e3, "ms", 6),
        ("`replica.optimal_eta`, over eta and lam", middle["best pair"] * 1e3, "ms", 60),
        ("the same, tables not yet made", middle["best pair, first"] * 1e3, "ms", None),
        ("density of the spectrum at 1 000 points, warm", middle["density"] * 1e3, "ms", 50),
        *losses,
        ("literal baseline, a point, without its set-up", middle["literal"], "s", None),
        ("literal baseline, set-up (one eigendecomposition)", set_up, "s", None),
        ("relu network, 16 readout values, a point", middle["16 values"], "s", 1),
        ("tanh network, box readout, 16 points", middle["box"], "s", 2),
        ("`replica curve`, five points, whole process, warm", middle["process"], "s", 1.3),
        ("that over `import numpy, scipy.optimize, scipy.special`", warm, "times", 2),
        ("`replica curve`, five points, first run ever", middle["first run"], "s", 12),
        ("that over the same import, first", first, "times", 2.5),
        ("`import replica`, whole process", middle["import"], "s", None),
    ]
    yield f"| measure | here | where a literal point takes {BARS_LITERAL:g} s | bar | |"
    yield "|---|---|---|---|---|"
    for name, value, unit, bar in rows:
        there = value if unit == "times" else value * BARS_LITERAL / middle["literal"]
        limit = "" if bar is None else f"≤ {bar} {unit}"
        verdict = "" if bar is None else "met" if there <= bar else "**not met**"
        yield f"| {name} | {value:.3g} {unit} | {there:.3g} {unit} | {limit} | {verdict} |"
    verdict = "met" if ratio >= 3e5 else "**not met**"
    yield f"| literal point over a point of the curve | {ratio:,.0f} | | ≥ 300,000 | {verdict} |"


def accuracy_table(baseline):
    """Lines of the table of errors against the 30-digit solution."""
    yield "| alpha | test error | library off by | residual | literal off by | steps | residual |"
    yield "|---|---|---|---|---|---|---|"
    for alpha, typed in zip(ROUND_ALPHAS, baseline, strict=True):
        exact = reference.solve(MODEL, alpha=alpha, lam=POINT["lam"])
        ours = replica.solve(MODEL, alpha=alpha, lam=POINT["lam"])
        known = f"{alpha:g} | {float(exact.test_error):.10f}"
        own = f"{off_by(ours, exact):.0e} | {ours.residual:.0e}"
        other = f"{off_by(typed, exact):.0e} | {typed.iterations} | {typed.residual:.0e}"
        yield f"| {known} | {own} | {other} |"


def off_by(solution, exact):
    """The larger relative error of the two errors."""
    names = ("test_error", "train_error")
    return max(abs(getattr(solution, name) / float(getattr(exact, name)) - 1) for name in names)


def machine():
    """Processor, versions and date, in one line."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return (
        f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"numpy {np.__version__}, scipy {scipy.__version__}; {datetime.date.today()}."
    )


def main():
    """Measure everything and write RESULTS.md."""
    spectra = []
    set_up = seconds(lambda: spectra.append(literal.spectrum(MODEL.c, MODEL.beta)))
    times, baseline = measure(spectra[0])
    text = paragraphs(
        "# Results",
        "Written by `python -m benchmarks.report`. tanh student, sin target, alpha0 = 20, "
        "eta = 3, beta = 1, lam = 0.1; the rows on label noise: tanh target, alpha0 = 0.5.\n"
        f"Medians over {len(ROUND_ALPHAS)} rounds, each of which times the library and the literal "
        "baseline (`literal.py`) in turn.  The bars are those of a machine on which a point of the "
        f"baseline takes {BARS_LITERAL:g} s, and times are compared as they would be there: by how "
        "much the baseline differs in the same run.",
        machine(),
        "## Speed",
        "\n".join(speed_table(times, set_up)),
        "In a first run every cache is empty: all modules are compiled anew, numpy's and the "
        "compiled kernel included.",
        "## Accuracy",
        "The larger relative error of test and training error, against `replica.reference`.",
        "\n".join(accuracy_table(baseline)),
    )
    RESULTS_PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
