"""Image files as tests write them."""

import struct


def idx(array, shape=None, axes=None):
    """An IDX file of an array, of which the header may say something else."""
    kind = {"uint8": 8, "int32": 12, "float64": 14}[array.dtype.name]
    shape = array.shape if shape is None else shape
    header = struct.pack(f">2xBB{len(shape)}I", kind, axes or len(shape), *shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()
