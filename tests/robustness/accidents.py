"""What can happen to the file of a cell, for the trial of stores."""

import json

from validation.run.store import _digest


def damaged(content, rng):
    """What is left of a cell's bytes after one of a dozen accidents."""
    start, stop = sorted(rng.integers(0, len(content) + 1, size=2))
    some = rng.bytes(int(rng.integers(1, 30)))
    document = json.loads(content)
    match int(rng.integers(12)):
        case 0:
            return content[:start]
        case 1:
            return content[:start] + content[stop:]
        case 2:
            return content[:start] + some + content[start:]
        case 3:
            return content[:start] + bytes(stop - start) + content[stop:]
        case 4:
            flipped = bytearray(content)
            flipped[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
            return bytes(flipped)
        case 5:
            digits = [i for i, byte in enumerate(content) if chr(byte).isdigit()]
            changed = bytearray(content)
            place = digits[int(rng.integers(len(digits)))]
            changed[place] = ord("0") + (changed[place] - ord("0") + int(rng.integers(1, 10))) % 10
            return bytes(changed)
        case 6:
            return content + content
        case 7:
            return b"[" * int(rng.integers(1, 10**5))
        case 8:
            return some
        case 9:
            document["cell"]["seed"] += 1
        case 10:
            wrong = [None, True, -1.0, "0.5", [], 10**400, float("nan"), float("inf")]
            document["errors"][0][0][0] = wrong[int(rng.integers(len(wrong)))]
            document["sha256"] = _digest(document["errors"])
        case 11:
            document["errors"] = document["errors"][:-1]
            document["sha256"] = _digest(document["errors"])
    return json.dumps(document, sort_keys=True).encode() + b"\n"
