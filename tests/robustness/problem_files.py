"""Problem files of any values, and bad ones: no problem, or made to break what reads them."""

import json

BAD_PATHS = [".", "/", "nowhere.toml", "/dev/zero", "/dev/null", "/proc/self/mem", "x" * 5000]
ODD_VALUES = {  # by names of keys
    "alpha lam eta alpha0 beta noise": [
        *(True, [], [[1]], ["x"], [True], "x", {}, -1, [1, -1], "1:2", 10**400)
    ],
    "intercept train_bias": ["yes", "no", "", 1, 0, [True], 1.0],
    "student target loss readout bias label_noise theory steps": [
        *(1e400, {"a": 1}, [["x"]], [[[1]]], True)
    ],
}


def bad_contents():
    """Problem files that are none, are no problem, or are made to break what reads them."""
    yield from (b"", b"\xff\xfe", b"student", b"[", b"=1", b"alpha = ", b"[groups]", b"student = 3")
    yield from (b"\0" * 10**6, b"# " + b"x" * 2 * 10**6, b"[" + b"a." * 100_000 + b"b]")
    yield from (b"a." * 100_000 + b"b = 1", b'"a".' * 50_000 + b"b = 1")
    for line in (
        *(b"x = 1", b"alpha = 1", b'[groups]\nr = "x"\nc = 1\ngamma = 0', b"y = 1e400"),
        *(b"y=" + b"[" * 900 + b"]" * 900, b"y=" + b"{a=" * 900 + b"1" + b"}" * 900),
        *(b"y=" + b"1" * 5001, b"y=[" + b"1," * 12_000_000 + b"]", b'y = "' + b"x" * 10**6 + b'"'),
    ):
        yield problem() + line
    for names, values in ODD_VALUES.items():
        for name in names.split():
            for value in values:
                yield problem(**{name: value})


def problem(**changes) -> bytes:
    """A problem file with some values changed."""
    values = {"student": "tanh", "target": "sin", "alpha0": 20, "eta": 3, "alpha": 1, "lam": 0.1}
    return "".join(f"{key} = {_toml(x)}\n" for key, x in (values | changes).items()).encode()


def _toml(value) -> str:
    """A value as TOML writes it: as JSON does, but for tables and infinity."""
    return json.dumps(value).replace('": ', '" = ').replace("Infinity", "inf")
