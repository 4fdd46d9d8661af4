"""What an entry of ``methods`` says about its row, beside the settings of its method: its label, its budgets, and the like.

Each task describes these keys by one model, ``ROW``, derived from ``RowKeys``. The reader checks them, the schema lists them,
and the method itself never sees them. Example: in ``{method: gcon, label: GCON, epsilons: [1]}`` the row's own keys are
``label`` and ``epsilons``.
"""

import itertools
import math
from collections.abc import Callable
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from fedgraph.documents.settings import Settings, Spec

MOST_CHOICES = 200


class RowKeys(Settings):
    """The keys that every task understands."""

    label: str | None = Field(None, description="name of the row in tables")


class Select(Settings):
    """Settings of a method that are chosen privately. In each trial every combination of ``over`` is as likely as any other."""

    over: dict[str, list[bool | int | float | str]] = Field(min_length=1, description="setting of the method: values")
    among: float = Field(20, ge=1, le=1000, description="the mean number of trials")
    by: Literal["accuracy"] = Field("accuracy", description="what the noisy score counts: right answers")
    shape: float = Field(0, ge=0, le=10, description="η of the law of the number of trials: 0 logarithmic, 1 geometric")

    @field_validator("over")
    @classmethod
    def _some(cls, over: dict[str, list[bool | int | float | str]]) -> dict[str, list[bool | int | float | str]]:
        """At most ``MOST_CHOICES`` combinations, each planned and priced before anything is trained."""
        combinations = math.prod(map(len, over.values()))
        if not 1 <= combinations <= MOST_CHOICES:
            raise ValueError(f"over has {combinations} combinations; allowed: 1 to {MOST_CHOICES}")
        return over

    @property
    def choices(self) -> list[Spec]:
        """Every combination."""
        return [dict(zip(self.over, values, strict=True)) for values in itertools.product(*self.over.values())]


def checker(row: type[RowKeys]) -> Callable[[Spec], Spec]:
    """A function that returns an entry of ``methods`` as it is; ``ValueError`` where one of its row's keys is wrong."""

    def checked(entry: Spec) -> Spec:
        for name in row.model_fields:
            if (former := row.says(name).formerly) and former in entry:
                raise ValueError(f"the key {former!r} is called {name!r} now: write {name}: …")
        given = {k: v for k, v in entry.items() if k in row.model_fields and k != "label"}  # the reader checks every label
        try:
            row.model_validate(given)
        except ValidationError as error:
            problem = error.errors()[0]
            message = problem["msg"].removeprefix("Value error, ")
            raise ValueError(f"{problem['loc'][0]} of this row is {problem['input']!r}; {message}") from None
        if none := [k for k, v in given.items() if v is None]:
            raise ValueError(f"{none[0]} of this row has no value; write one, or leave the key away")
        return entry

    return checked


def of_method(entry: Spec, row: type[RowKeys]) -> Spec:
    """The keys of an entry that are its method's, without the method's name."""
    return {k: v for k, v in entry.items() if k != "method" and k not in row.model_fields}
