"""What an entry of ``methods`` says about its row, beside the settings of its method: its label, its budgets, and the like.

Each task describes these keys by one model, ``ROW``, derived from ``RowKeys``. The reader checks them, the schema lists them,
and the method itself never sees them. Example: in ``{method: gcon, label: GCON, epsilons: [1]}`` the row's own keys are
``label`` and ``epsilons``.
"""

from collections.abc import Callable

from pydantic import Field, ValidationError

from fedgraph.documents.settings import Settings, Spec


class RowKeys(Settings):
    """The keys that every task understands."""

    label: str | None = Field(None, description="name of the row in tables")


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
