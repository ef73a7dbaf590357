"""What a fitted estimator makes of the columns of its table."""

from bochner.explaining.columns import TableColumn, moment_in_words, table_columns
from bochner.explaining.contributions import Contributions
from bochner.explaining.effects import Effect
from bochner.explaining.explanation import (
    Explanation,
    MemberExplanation,
    explain,
    explain_row,
    output_names,
)

__all__ = [
    "Contributions",
    "Effect",
    "Explanation",
    "MemberExplanation",
    "TableColumn",
    "explain",
    "explain_row",
    "moment_in_words",
    "output_names",
    "table_columns",
]
