"""Bad inputs for both command lines, by theme: what people type by mistake, and what nobody would
type but a file may hold."""

from collections.abc import Iterator
from typing import NamedTuple

from .problem_files import files, problem

STEP = ["--student", "tanh", "--target", "sin", "--alpha0", "20", "--eta", "3"]
POINT = [*STEP, "--alpha", "1", "--lam", "0.1"]
SRF = ["--student", "tanh", "--target", "sin", "--r", "1", "--c", "1", "--gamma", ".9"]
SMALL = ["--rng", "0", "--dimension", "30", "--seeds", "2"]
SIMULATE = ["replica-validate", "simulate", *POINT, *SMALL]


class Input(NamedTuple):
    """A command line with the files it finds, and whether it must be refused with status 2."""

    theme: str
    arguments: list[str]
    files: dict[str, bytes]
    refused: bool


def all_inputs() -> Iterator[Input]:
    """Every bad input."""
    for theme in (numbers, integers, names, expressions, files, combinations, sizes, data):
        for made in theme():
            arguments, *more = made if isinstance(made, tuple) else (made,)
            content = next((x for x in more if isinstance(x, dict)), {})
            yield Input(theme.__name__, arguments, content, False not in more)


def numbers():
    """Numbers that are none, or out of range, of every option that takes one."""
    bad = ["", " ", "x", "nan", "-inf", "1e300", "1e400", "1,,2", "1,x", "1:2", "1:2:0", "1:2:-3"]
    bad += ["1:2:1e3", "1:2:3:lin", "1:2:3:log:", "0:1:3:log", "1:nan:3", "0x10", "1+2j", "True"]
    bad += ["1:2:1000000000000", "1:2:" + "9" * 5001, "1" * 5001]
    bad += ["\u0663\u066b\u0665", "1;2", "1/2"]
    for name in ("alpha", "lam", "alpha0", "eta", "beta", "noise", "step-noise"):
        for text in bad:
            infinite = name == "alpha0" and text in ("1e400", "1" * 5001)  # which it may be
            yield ["replica", "curve", *POINT, f"--{name}={text}"], not infinite
        if name not in ("alpha0", "eta", "noise", "step-noise"):
            yield ["replica", "curve", *POINT, f"--{name}=0"]
        yield ["replica", "curve", *POINT, f"--{name}=-1"]
    for name in ("r", "c", "gamma"):
        for text in bad[:9]:
            yield ["replica", "curve", *SRF, "--alpha", "1", "--lam", "1", f"--{name}={text}"]
    for text in ("0", "-1", "nan", "x", ""):
        yield ["replica", "curve", *POINT, f"--time-limit={text}"]


def integers():
    """Counts that are none, negative, or of far too much."""
    bad = ["0", "-1", "1.5", "x", "", "nan", "99999999999999999999", "1e3", "1" * 5001]
    for name in ("dimension", "seeds", "workers"):
        for text in bad:
            yield [*SIMULATE, f"--{name}={text}"]
    for text in bad[1:6]:
        yield [*SIMULATE, f"--rng={text}"]
    for text in bad:
        yield ["replica", "spectrum", *STEP, "--alpha", "2", f"--points={text}"]
        yield ["replica", "staircase", "--target", "z1", f"--degree={text}"]
        yield ["replica", "staircase", "--target", "numpy:sin", f"--dimension={text}"]
    for text in ("0", "-1", "1.5", "x", ""):
        yield ["replica", "curve", *POINT, f"--workers={text}"]
    yield ["replica", "spectrum", *STEP, "--alpha", "2", "--points=1"]
    yield ["replica", "spectrum", *STEP, "--alpha", "2", "--points=200000000"]


def names():
    """Functions and models that there are not, or that do something else."""
    code = ["builtins:exit", "builtins:print", "builtins:input", "builtins:eval", "sys:exit"]
    code += ["os:abort", "os:system", "os:_exit", "builtins:breakpoint", "sys:path"]
    code += ["numpy:sum", "numpy:nothing", "nowhere:f", ":f", "f:", "a:b:c", "..x:y", "a b:c"]
    code += ["numpy.lib.scimath:sqrt", "numpy.random:standard_normal", "sys:maxsize", "json:dumps"]
    text = ["", " ", "tan", "he1+x", "he1/0", "he999", "1*", "x" * 10**5]
    text += ["\x1b[31m", "\n", "z0", "é"]
    for name in ("student", "target"):
        for given in (*code, *text):
            yield ["replica", "curve", *POINT, f"--{name}={given}"]
    for given in ("", "SRF", "x", "gaussian"):
        yield ["replica", "curve", *POINT, f"--theory={given}"]
        yield [*SIMULATE, f"--simulated={given}x"]


def expressions():
    """Targets written as text that runs code, has no value, or is far too much."""
    bad = ["__import__('os')+z1", "z1.real", "exit(z1)", "print(z1)", "eval('z1')", "1j*z1"]
    bad += ["z1 + (-8)**(1/3)*z2", "z1/0", "log(z1)", "1/(z1-z1)"]
    bad += ["exp(exp(exp(z1*z1)))", "z1*1e400", "z1**.5", "+".join(["z1"] * 5000)]
    bad += ["*".join(["z1"] * 2000), "-" * 5000 + "z1", "(" * 5000 + "z1" + ")" * 5000]
    bad += ["tanh(" * 2000 + "z1" + ")" * 2000, "z1" + "**z1" * 3000]
    bad += ["z1 + " + "9" * 10**5, "z1 # comment\n+", "z1\n\nz2", "z1 + é", "z1 + \x00", "z1:=2"]
    for text in bad:
        if "\x00" not in text:  # no argument of a program has one
            yield ["replica", "staircase", f"--target={text}"]
        yield ["replica", "curve", "--config", "p.toml"], {"p.toml": problem(target=text)}


def combinations():
    """Options that are missing, unknown, or do not go together."""
    point, srf = ["replica", "curve", *POINT], ["replica", "curve", *SRF]
    yield [*point, "--r", "1"]
    yield [*point, "--steps", "1:1,1:1"]
    yield [*srf, "--alpha", "1", "--lam", "1", "--theory", "network"]
    yield [*srf, "--alpha", "1", "--lam", "1", "--readout", "1,2"]
    plain = ["replica", "curve", *POINT[:4], "--alpha", "1", "--lam", "1"]
    for steps in ("", "1", "1:", "1:1:1", "1:x", "0:1", "-1:1", "nan:1", "1:1e300", "," * 1000):
        yield [*plain, f"--steps={steps}"]
    for memory in ("", "x", "-1GB", "0", "1e400GB", "nan", "1KB", "1 potato"):
        yield [*SIMULATE, f"--memory={memory}"]
    for shard in ("", "1", "0/2", "3/2", "1/0", "x/y", "1/99", "-1/2", "1/2"):
        yield [*SIMULATE, f"--shard={shard}"]
    for device in ("", "gpu", "cuda:99", "x" * 10**4):
        yield [*SIMULATE, f"--device={device}"]
    for ladder in ("", "40", "x", "0,1", "-1,-2", "40,40", "1e9,2e9", "99999999999999999999,3"):
        yield ["replica-validate", "compare", *POINT, "--rng=0", "--seeds=2", f"--ladder={ladder}"]


def sizes():
    """Values within their range of which nobody has the memory or the time; and extremes."""
    for name in ("dimension", "seeds"):
        for value in (10**7, 10**9, 10**12, 10**18, 10**30):
            yield [*SIMULATE, f"--{name}={value}"]
    for name in ("alpha", "beta", "alpha0"):
        for value in ("1e12", "1e18", "1e25", "1e300"):
            yield [*SIMULATE, f"--{name}={value}"]
            for command in ("spectrum", "alignment"):
                if (command, name) != ("alignment", "alpha"):
                    of = STEP if command == "alignment" else [*STEP, "--alpha", "2"]
                    line = ["replica-validate", command, *of, *SMALL, f"--{name}={value}"]
                    # the theory of a spectrum comes first, and may not be found
                    yield line, command == "alignment"
        yield [*SIMULATE, f"--{name}=1e-9"]
    for command in ("spectrum", "alignment", "compare"):
        of = {"alignment": STEP, "spectrum": [*STEP, "--alpha", "2"]}.get(command, POINT)
        for value in (10**7, 10**12, 10**18):
            yield ["replica-validate", command, *of, *SMALL, f"--dimension={value}"]
            yield ["replica-validate", command, *of, *SMALL, f"--seeds={value}"]
    grid = "1:2:100000"
    yield ["replica", "curve", *STEP, f"--alpha={grid}", f"--lam={grid}"]
    yield ["replica", "curve", *POINT, f"--eta={grid}", f"--beta={grid}"]
    yield ["replica", "bounds", *STEP, f"--eta={grid}", "--alpha", grid]
    for name in ("alpha", "lam", "beta", "alpha0", "eta", "noise"):
        for value in ("1e18", "1e30", "1e-18", "1e-30"):
            yield ["replica", "curve", *POINT, f"--{name}={value}"], False
    for beta in ("1e-9", "1e-30", "1e9", "1e30"):
        yield ["replica", "spectrum", *STEP, "--alpha", "2", f"--beta={beta}"], False
    for loss, lam in (("quantile:0.3", "1e-4"), ("absolute", "1e-6"), ("huber:1", "1e-12")):
        yield [*SIMULATE, f"--loss={loss}", f"--lam={lam}"], False
    for lam in ("1e18", "1e30", "1e-30"):
        yield [*SIMULATE, f"--lam={lam}"], False


def data():
    """Laws of inputs, later steps, weights and features that are none, or do not fit."""
    bad = ["", "x", "nan", "-inf", "1e400", "-1", "2", "1+2j", "1,x", "\u00bd", "0x1", "1e"]
    for text in bad:
        yield ["replica", "curve", *POINT, f"--decay={text}"]
        for command in ("bounds", "optimum", "spectrum"):
            at = [] if command == "bounds" else ["--alpha", "1"]
            if text not in ("2", "1e400"):
                yield ["replica", command, *STEP, *at, f"--time-limit={text}"]
    for text in ("", "z9", "sys:exit", "nowhere:f", "classes:1,-1", "he1+x"):
        yield ["replica", "curve", *POINT, f"--step-target={text}"]
    for content in ("", "means", "[inputs]\nmeans = 1", "\x00", "means = [[1979-05-27]]"):
        at = ["replica", "curve", *POINT, "--inputs", "law.toml"]
        yield at, {"law.toml": content.encode()}
    for text in ("", "nothing.toml", "/dev/null", "."):
        yield ["replica", "curve", *POINT, f"--inputs={text}"]
    header = b"\x93NUMPY\x01\x00"
    arrays = [b"", b"x", header, header + b"\xff\xff{}", b"PK\x03\x04", b"\x80\x04."]
    text = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"
    for descr, shape in (
        ("<f8", "3, 4"), ("|O", "3, 4"), ("<f8", "10**9, 4"), ("<f8", "-3, 4"), ("<U9", "3, 4"),
        ("<c16", "2, 2"), ("<M8[s]", "2, 2"), ("<f8", ""), ("<f8", "0, 4"), ("<f8", "2, 2, 2"),
    ):  # fmt: skip
        said = (text % (descr, shape)).encode().ljust(117) + b"\n"
        arrays.append(header + len(said).to_bytes(2, "little") + said + bytes(8))
    for content in arrays:
        layer = ["--student", "tanh", "--target", "sin", "--samples", "10", "--lam", "1"]
        yield ["replica", "readout", "--weights", "W.npy", *layer], {"W.npy": content}
        features = ["--labels", "y.npy", "--samples", "10", "--lam", "1"]
        both = {"W.npy": content, "y.npy": content}
        yield ["replica", "readout", "--features", "W.npy", *features], both
