"""Every error fedgraph raises on purpose.

    FedgraphError
    ├── ScenarioError          the YAML file says something impossible        exit status 2
    ├── PricingError           a foreign configuration cannot be priced       exit status 2
    ├── DataError              a graph cannot be read, or is not what it says exit status 2
    ├── PrivacyError           a guarantee would be false                     exit status 1
    │   ├── UnknownEventError      an event no accountant here can price
    │   ├── UnboundedValueError    a value that the stated bound does not hold for
    │   └── BudgetExceededError    a release that was not planned, or costs too much
    └── RuntimeFailure         a worker or a client failed                    exit status 1

A message says what was found, what is allowed, why, and what to write instead.
"""


class FedgraphError(Exception):
    """Base of every deliberate error; its text is meant for a person."""


class ScenarioError(FedgraphError):
    """A scenario file is wrong. ``str()`` is one line: ``file:line: found; allowed; hint``."""


class PricingError(FedgraphError):
    """A foreign configuration cannot be read or means nothing. ``str()`` is one line: ``file:line: found; allowed``."""


class DataError(FedgraphError):
    """A data set is missing, damaged, or not what it claims to be."""


class PrivacyError(FedgraphError):
    """Going on would make a privacy statement false."""


class UnknownEventError(PrivacyError):
    """No accountant can price this event; it is never counted as zero."""


class UnboundedValueError(PrivacyError):
    """A value does not satisfy the bound that its sensitivity rests on."""


class BudgetExceededError(PrivacyError):
    """A release was not declared in the plan, or would exceed it."""


class RuntimeFailure(FedgraphError):
    """A worker failed; the text names the stage, the client and the cause."""
