"""Bad inputs for both command lines, by theme: what people type by mistake, and what nobody would
type but a file may hold."""

from collections.abc import Iterator
from typing import NamedTuple

from .problem_files import BAD_PATHS, bad_contents, problem

SMALL = "--rng 0 --dimension 30 --seeds 2"
STEP = "--student tanh --target sin --alpha0 20 --eta 3"
CURVE = f"replica curve {STEP} --alpha 1 --lam 0.1"
SIMULATE = f"replica-validate simulate {STEP} --alpha 1 --lam 0.1 {SMALL}"
COMPARE = f"replica-validate compare {STEP} --alpha 1 --lam 0.1 --rng 0 --seeds 2"
SPECTRUM = f"replica spectrum {STEP} --alpha 2"
SIMULATED_SPECTRUM = f"replica-validate spectrum {STEP} --alpha 2 {SMALL}"
ALIGNMENT = f"replica-validate alignment {STEP} {SMALL}"
SRF = "replica curve --student tanh --target sin --r 1 --c 1 --gamma .9 --alpha 1 --lam 1"


class Input(NamedTuple):
    """A command line with the files it finds, and whether it must be refused with status 2."""

    theme: str
    arguments: list[str]
    files: dict[str, bytes]
    refused: bool


def all_inputs() -> Iterator[Input]:
    """Every bad input."""
    for theme, rows in BAD_VALUES.items():
        for line, names, values, *refused in rows:
            for name in names.split():
                for value in values:
                    arguments = with_value(line.split(), f"--{name}", value)
                    yield Input(theme, arguments, {}, False not in refused)
    for theme, line, content in with_files():
        yield Input(theme, line.split(), content, True)


def with_value(words: list[str], option: str, value: object) -> list[str]:
    """The words with this value of an option, in the place of any that it has."""
    at = words.index(option) if option in words else len(words)
    return [*words[:at], *words[at + 2 :], f"{option}={value}"]


# Numbers that are none, or out of range, and counts that are none, negative, or of far too much
LONG = "1" * 5001
NUMBERS = ["", " ", "x", "nan", "-inf", "1e300", "1,,2", "1,x", "1:2", "1:2:0", "1:2:-3"]
NUMBERS += ["1:2:1e3", "1:2:3:lin", "1:2:3:log:", "0:1:3:log", "1:nan:3", "0x10", "1+2j", "True"]
NUMBERS += ["1:2:1000000000000", "1:2:" + "9" * 5001, "\u0663\u066b\u0665", "1;2", "1/2", "-1"]
COUNTS = ["0", "-1", "1.5", "x", "", "nan", "99999999999999999999", "1e3", LONG]
SHARES = ["", "x", "nan", "-inf", "-1", "1+2j", "1,x", "\u00bd", "0x1", "1e"]
# Functions that there are not, or that do something else
CODE = ["builtins:exit", "builtins:print", "builtins:input", "builtins:eval", "sys:exit"]
CODE += ["os:abort", "os:system", "os:_exit", "builtins:breakpoint", "sys:path"]
CODE += ["numpy:sum", "numpy:nothing", "nowhere:f", ":f", "f:", "a:b:c", "..x:y", "a b:c"]
CODE += ["numpy.lib.scimath:sqrt", "numpy.random:standard_normal", "sys:maxsize", "json:dumps"]
TEXT = ["", " ", "tan", "he1+x", "he1/0", "he999", "1*", "x" * 10**5, "\x1b[31m", "\n", "z0", "é"]
# Targets written as text that runs code, has no value, or is far too much
EXPRESSIONS = ["__import__('os')+z1", "z1.real", "exit(z1)", "print(z1)", "eval('z1')", "1j*z1"]
EXPRESSIONS += ["z1 + (-8)**(1/3)*z2", "z1/0", "log(z1)", "1/(z1-z1)", "exp(exp(exp(z1*z1)))"]
EXPRESSIONS += ["z1*1e400", "z1**.5", "+".join(["z1"] * 5000), "*".join(["z1"] * 2000), "z1:=2"]
EXPRESSIONS += ["-" * 5000 + "z1", "(" * 5000 + "z1" + ")" * 5000, "z1" + "**z1" * 3000]
EXPRESSIONS += ["tanh(" * 2000 + "z1" + ")" * 2000, "z1 + " + "9" * 10**5, "z1 # comment\n+"]
EXPRESSIONS += ["z1\n\nz2", "z1 + é"]
# Values within their range of which nobody has the memory or the time
MANY, LARGE, GRID = [10**7, 10**12, 10**18], ["1e12", "1e18", "1e25", "1e300"], "1:2:100000"

# By theme, the values of options of a command line; False where they may be answered.
BAD_VALUES = {
    "numbers": [
        (CURVE, "alpha lam alpha0 eta beta noise step-noise", NUMBERS),
        (CURVE, "alpha lam eta beta noise step-noise", ["1e400", LONG]),
        (CURVE, "alpha0", ["1e400", LONG], False),  # which it may be
        (CURVE, "alpha lam beta", ["0"]),
        (SRF, "r c gamma", [*NUMBERS[:6], "1e400", "1,,2", "1,x"]),
        (CURVE, "time-limit", ["0", "-1", "nan", "x", ""]),
        (CURVE, "decay", [*SHARES, "1e400", "2"]),
        (f"replica bounds {STEP}", "time-limit", SHARES),
        (f"replica optimum {STEP} --alpha 1", "time-limit", SHARES),
        (SPECTRUM, "time-limit", SHARES),
    ],
    "integers": [
        (SIMULATE, "dimension seeds workers", COUNTS),
        (SIMULATE, "rng", COUNTS[1:6]),
        (SPECTRUM, "points", [*COUNTS, "1", "200000000"]),
        ("replica staircase --target z1", "degree", COUNTS),
        ("replica staircase --target numpy:sin", "dimension", COUNTS),
        (CURVE, "workers", COUNTS[:5]),
    ],
    "names": [
        (CURVE, "student target", CODE + TEXT),
        (CURVE, "theory", ["", "SRF", "x", "gaussian"]),
        (CURVE, "step-target", ["", "z9", "sys:exit", "nowhere:f", "classes:1,-1", "he1+x"]),
        (CURVE, "inputs", ["", "nothing.toml", "/dev/null", "."]),
        (SIMULATE, "simulated", ["x", "SRFx", "xx", "gaussianx"]),
    ],
    "expressions": [("replica staircase", "target", EXPRESSIONS)],
    "files": [("replica curve", "config", BAD_PATHS)],
    "combinations": [  # that are missing, unknown, or do not go together
        (CURVE, "r", ["1"]),
        (CURVE, "steps", ["1:1,1:1"]),
        (SRF, "theory", ["network"]),
        (SRF, "readout", ["1,2"]),
        (
            "replica curve --student tanh --target sin --alpha 1 --lam 1",
            "steps",
            ["", "1", "1:", "1:1:1", "1:x", "0:1", "-1:1", "nan:1", "1:1e300", "," * 1000],
        ),
        (SIMULATE, "memory", ["", "x", "-1GB", "0", "1e400GB", "nan", "1KB", "1 potato"]),
        (SIMULATE, "shard", ["", "1", "0/2", "3/2", "1/0", "x/y", "1/99", "-1/2", "1/2"]),
        (SIMULATE, "device", ["", "gpu", "cuda:99", "x" * 10**4]),
        (COMPARE, "ladder", ["", "40", "x", "0,1", "-1,-2", "40,40", "1e9,2e9", f"{10**20 - 1},3"]),
    ],
    "sizes": [
        (SIMULATE, "dimension seeds", [*MANY, 10**9, 10**30]),
        (SIMULATE, "alpha beta alpha0", [*LARGE, "1e-9"]),
        (SIMULATED_SPECTRUM, "alpha beta alpha0", LARGE, False),  # whose theory comes first
        (ALIGNMENT, "beta alpha0", LARGE),
        *((line, "dimension seeds", MANY) for line in (SIMULATED_SPECTRUM, ALIGNMENT, COMPARE)),
        (f"replica curve {STEP} --alpha={GRID}", "lam", [GRID]),
        (CURVE.replace("--eta 3", f"--eta {GRID}"), "beta", [GRID]),
        (f"replica bounds {STEP}".replace("--eta 3", f"--eta {GRID}"), "alpha", [GRID]),
        (CURVE, "alpha lam beta alpha0 eta noise", ["1e18", "1e30", "1e-18", "1e-30"], False),
        (SPECTRUM, "beta", ["1e-9", "1e-30", "1e9", "1e30"], False),
        (f"{SIMULATE} --loss=quantile:0.3", "lam", ["1e-4"], False),
        (f"{SIMULATE} --loss=absolute", "lam", ["1e-6"], False),
        (f"{SIMULATE} --loss=huber:1", "lam", ["1e-12"], False),
        (SIMULATE, "lam", ["1e18", "1e30", "1e-30"], False),
    ],
}


def with_files() -> Iterator[tuple[str, str, dict[str, bytes]]]:
    """Themes, command lines, and files that are none, or do not fit."""
    config = "replica curve --config p.toml"
    for text in (*EXPRESSIONS, "z1 + \x00"):  # which no argument of a program has
        yield "expressions", config, {"p.toml": problem(target=text)}
    for content in bad_contents():
        yield "files", config, {"p.toml": content}
    for name in ("student", "target", "loss"):
        evil = {"p.toml": problem(**{name: "evil:f"}), "evil.py": b"open('ran', 'w')\nf = abs\n"}
        yield "files", config, evil
    for content in (b"", b"means", b"[inputs]\nmeans = 1", b"\x00", b"means = [[1979-05-27]]"):
        yield "data", f"{CURVE} --inputs law.toml", {"law.toml": content}
    header = b"\x93NUMPY\x01\x00"
    arrays = [b"", b"x", header, header + b"\xff\xff{}", b"PK\x03\x04", b"\x80\x04."]
    text = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"
    for descr, shape in (
        ("<f8", "3, 4"), ("|O", "3, 4"), ("<f8", "10**9, 4"), ("<f8", "-3, 4"), ("<U9", "3, 4"),
        ("<c16", "2, 2"), ("<M8[s]", "2, 2"), ("<f8", ""), ("<f8", "0, 4"), ("<f8", "2, 2, 2"),
    ):  # fmt: skip
        said = (text % (descr, shape)).encode().ljust(117) + b"\n"
        arrays.append(header + len(said).to_bytes(2, "little") + said + bytes(8))
    layer = "--weights W.npy --student tanh --target sin"
    for content in arrays:
        for line in (layer, "--features W.npy --labels y.npy"):
            both = {"W.npy": content, "y.npy": content}
            yield "data", f"replica readout {line} --samples 10 --lam 1", both
