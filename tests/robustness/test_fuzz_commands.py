"""Random command lines, problem files and expressions: whatever they ask for ends with status 0, 1
or 2, a few lines on standard error and no traceback, in a minute and 4 GB."""

import re
from io import BytesIO

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from replica.cli.option_table import FLAGS, GRIDS, HELP, OF_PROBLEMS

from .commands import run_command
from .problem_files import toml

pytestmark = pytest.mark.slow
LIMITS = settings(
    max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
)

LEVELS = st.floats(allow_nan=True, allow_infinity=True)
ORDINARY = st.sampled_from([0.1, 0.5, 1.0, 2.0, 20.0])
NUMBERS = st.one_of(ORDINARY, LEVELS, st.integers(), st.sampled_from([1e-30, 1e30, 1e18, 10**40]))
# grids of at most a hundred points or of absurdly many: thousands are honest work of minutes
COUNTS = st.one_of(st.integers(-3, 30), st.integers(10**9, 10**30))
GRID = st.one_of(
    NUMBERS.map(repr),
    st.lists(NUMBERS, max_size=4).map(lambda xs: ",".join(map(repr, xs))),
    st.tuples(NUMBERS, NUMBERS, COUNTS, st.sampled_from(["", ":log", ":x"])).map(
        lambda t: f"{t[0]!r}:{t[1]!r}:{t[2]}{t[3]}"
    ),
)
# without a NUL, which no argument has, and lone surrogates, which no terminal types
TEXT = st.text(st.characters(blacklist_characters="\x00", blacklist_categories=["Cs"]), max_size=30)
ATOMS = st.sampled_from(["z1", "z2", "z3", "z4", "z5", "1", "0.5", "1e300", "0", "1j", "x", "'a'"])
EXPRESSION = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%@&,"), inner).map(" ".join),
        st.tuples(inner, inner).map("**".join),
        st.tuples(
            st.sampled_from(["tanh", "he2", "exp", "abs", "sign", "exit", "he99", "-", "eval"]),
            inner,
        ).map(lambda t: f"{t[0]}({t[1]})"),
    ),
    max_leaves=12,
)
FUNCTION = st.one_of(
    st.sampled_from(["tanh", "sin", "relu", "sign", "he1+he3/6", "numpy:sin", "builtins:exit"]),
    EXPRESSION,
    TEXT,
)
SPECIAL = {
    "student": FUNCTION,
    "target": FUNCTION,
    "loss": st.one_of(
        st.sampled_from(["square", "absolute", "hinge", "logistic"]),
        NUMBERS.map(lambda x: f"huber:{x!r}"),
        NUMBERS.map(lambda x: f"quantile:{x!r}"),
        TEXT,
    ),
    "readout": st.one_of(st.sampled_from(["rademacher", "box", "-1,1"]), GRID, TEXT),
    "label_noise": st.one_of(
        st.tuples(
            st.sampled_from(["student", "flip", "outliers", "logistic"]), NUMBERS, NUMBERS
        ).map(lambda t: f"{t[0]}:{t[1]!r}:{t[2]!r}"),
        NUMBERS.map(lambda x: f"flip:{x!r}"),
        NUMBERS.map(lambda x: f"student:{x!r}"),
        TEXT,
    ),
    "steps": st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3).map(
        lambda pairs: ",".join(f"{a!r}:{b!r}" for a, b in pairs)
    ),
    "theory": st.sampled_from(["srf", "network", "x"]),
}
USUAL = {"student": "tanh", "target": "sin", "alpha0": "20", "eta": "3", "alpha": "1", "lam": ".1"}


def values(name):
    """What an option may be given."""
    return SPECIAL.get(name, GRID if name in GRIDS else st.one_of(GRID, TEXT))


def problems():
    """The options of an ordinary point, some of them replaced."""
    changes = st.lists(
        st.sampled_from([n for n in OF_PROBLEMS if n not in FLAGS]), max_size=3, unique=True
    )
    return changes.flatmap(
        lambda names: st.fixed_dictionaries({name: values(name) for name in names})
    ).map(lambda changed: USUAL | changed)


def check(arguments, files=None):
    ended = run_command(arguments, files)
    assert not ended.fault, (ended.fault, ended.err[-2000:])


def arguments(options):
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


def honest(text):
    """Whether a size is neither small nor out of reach: its simulation takes from minutes to years,
    and is not refused, as somebody may have them."""
    numbers = re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", text)
    return any(100 < float(number) < 1e18 for number in numbers if number.count(".") < 2)


COMMANDS = ["curve", "bounds", "optimum", "spectrum"]


@LIMITS
@given(st.sampled_from(COMMANDS), problems(), st.lists(st.sampled_from(FLAGS), max_size=1))
def test_command_lines(command, options, flags):
    if command in ("bounds", "optimum", "spectrum"):
        options = {k: v for k, v in options.items() if k not in ("lam", "loss")}
    if command == "spectrum":  # of dozens of groups it takes as long as it may
        options["time-limit"] = 20
    flags = [f"--{name.replace('_', '-')}" for name in flags]
    check(["replica", command, *arguments(options), *flags])


@LIMITS
@given(
    st.sampled_from(["simulate", "compare", "alignment", "spectrum"]),
    problems(),
    st.dictionaries(
        st.sampled_from(["dimension", "seeds", "rng", "workers", "memory", "shard", "device"]),
        st.one_of(st.integers(-2, 40), st.integers(10**9, 10**40), TEXT),
        max_size=2,
    ),
)
def test_simulations(command, options, sizes):
    ratios = ("alpha", "beta", "alpha0", "steps")
    assume(not any(honest(options.get(name, "")) for name in ratios))
    own = {"dimension": 20, "seeds": 2, "rng": 0}
    if command in ("alignment", "spectrum"):
        options = {k: v for k, v in options.items() if k not in ("lam", "loss", "theory")}
        sizes = {k: v for k, v in sizes.items() if k in own}
    if command == "spectrum":
        options["time-limit"] = 20
    if command == "alignment":
        del options["alpha"]
    if command == "simulate":
        options.pop("theory", None)
    check(["replica-validate", command, *arguments(options), *arguments(own | sizes)])


SCALARS = st.one_of(NUMBERS, TEXT, st.booleans())
TOML = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=6)


@LIMITS
@given(
    st.dictionaries(st.sampled_from([*HELP, "groups", "unknown"]), TOML, max_size=3), st.booleans()
)
def test_problem_files(changes, typed):
    content = {name: changes.get(name, value) for name, value in USUAL.items()} | changes
    more = ["--alpha=1"] if typed else []
    check(["replica", "curve", "--config=p.toml", *more], {"p.toml": toml(content)})


@LIMITS
@given(st.binary(max_size=200))
def test_files_of_random_bytes(content):
    check(["replica", "curve", "--config=p.toml"], {"p.toml": content})


@LIMITS
@given(EXPRESSION)
def test_expressions(text):
    check(["replica", "staircase", f"--target={text}", "--degree=2"])


@LIMITS
@given(st.one_of(st.none(), st.binary(max_size=200)), GRID, GRID, SPECIAL["loss"])
def test_arrays_of_random_bytes(content, samples, lam, loss):
    """And ordinary ones, at whatever points."""
    files = {}
    rng, labels = np.random.default_rng(0), np.repeat([1.0, -1.0], 20)
    for name, array in (("f.npy", rng.standard_normal((40, 3))), ("y.npy", labels)):
        stream = BytesIO()
        np.save(stream, array)
        files[name] = stream.getvalue()
    if content is not None:
        files["f.npy"] = content
    points = [f"--samples={samples}", f"--lam={lam}", f"--loss={loss}"]
    check(["replica", "readout", "--features=f.npy", "--labels=y.npy", *points], files)
