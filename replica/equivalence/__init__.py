"""The conditional Gaussian equivalence: a model as a finite table of moments.  Eqs. (3.1)-(3.3)

Activations and targets appear nowhere above these tables.
"""

from .batch import Batch
from .one_group import OneGroup, Several
from .rules import jumps, known_layers, rules
from .table import Table
from .tabulate import (
    alike,
    at_points,
    average,
    projections,
    table_at,
    table_of_size,
    tables,
    tabulate,
    tabulate_at,
)

__all__ = [
    "Batch",
    "OneGroup",
    "Several",
    "Table",
    "alike",
    "at_points",
    "average",
    "jumps",
    "known_layers",
    "projections",
    "rules",
    "table_at",
    "table_of_size",
    "tables",
    "tabulate",
    "tabulate_at",
]
