"""Problem files of any values, and bad ones: no problem, or made to break what reads them."""


def files():
    """Problem files that are none, are no problem, or are made to break what reads them."""
    base = problem()
    bad = [b"", b"\xff\xfe", b"student", b"[", b"=1", b"alpha = ", b"[groups]", b"student = 3"]
    bad += [base + b"x = 1", base + b"alpha = 1", base + b'[groups]\nr = "x"\nc = 1\ngamma = 0']
    bad += [base + b"y=" + b"[" * 900 + b"]" * 900, base + b"y=" + b"{a=" * 900 + b"1" + b"}" * 900]
    bad += [base + b"y=" + b"1" * 5001, b"a." * 100_000 + b"b = 1", b'"a".' * 50_000 + b"b = 1"]
    bad += [
        b"[" + b"a." * 100_000 + b"b]",
        base + b"y=[" + b"1," * 12_000_000 + b"]",
        b"\0" * 10**6,
    ]
    bad += [b"# " + b"x" * 2 * 10**6, base + b"y = 1e400", base + b'y = "' + b"x" * 10**6 + b'"']
    for content in bad:
        yield ["replica", "curve", "--config", "p.toml"], {"p.toml": content}
    for name in ("alpha", "lam", "eta", "alpha0", "beta", "noise"):
        for value in (True, [], [[1]], ["x"], [True], "x", {}, -1, [1, -1], "1:2", 10**400):
            yield ["replica", "curve", "--config", "p.toml"], {"p.toml": problem(**{name: value})}
    for name in ("intercept", "train_bias"):
        for value in ("yes", "no", "", 1, 0, [True], 1.0):
            yield ["replica", "curve", "--config", "p.toml"], {"p.toml": problem(**{name: value})}
    for name in ("student", "target", "loss"):
        yield (
            ["replica", "curve", "--config", "p.toml"],
            {"p.toml": problem(**{name: "evil:f"}), "evil.py": b"open('ran', 'w')\nf = abs\n"},
        )
    for name in ("student", "target", "loss", "readout", "bias", "label_noise", "theory", "steps"):
        for value in (1e400, {"a": 1}, [["x"]], [[[1]]], True):
            yield ["replica", "curve", "--config", "p.toml"], {"p.toml": problem(**{name: value})}
    for path in (".", "/", "nowhere.toml", "/dev/zero", "/dev/null", "/proc/self/mem", "x" * 5000):
        yield ["replica", "curve", "--config", path]


def problem(**changes) -> bytes:
    """A problem file with some values changed."""
    values = {"student": "tanh", "target": "sin", "alpha0": 20, "eta": 3, "alpha": 1, "lam": 0.1}
    return toml(values | changes)


def toml(values) -> bytes:
    """A file with a line for each of the ``values``."""
    return "".join(f"{key} = {_text(value)}\n" for key, value in values.items()).encode()


def _text(value) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return '"' + escaped.replace("\x00", "\\u0000") + '"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_text(x)}" for key, x in value.items()) + "}"
    return repr(value)
