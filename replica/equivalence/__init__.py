"""The conditional Gaussian equivalence: a model as a finite table of moments.  Eqs. (3.1)-(3.3)

Activations and targets appear nowhere above these tables.
"""

from .rules import known_layers, rules, target_jumps
from .table import (
    Batch,
    Table,
    average_components,
    flat_kappa,
    group_kinds,
    table_at,
    table_at_kappa,
    table_of_size,
    tables,
    tabulate,
    tabulate_at,
    zero_small,
)
