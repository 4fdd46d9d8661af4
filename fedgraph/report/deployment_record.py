"""A row as a record of the public registry of deployments of differential privacy (opendp/deployments-registry-data).

The models below state what the registry's ``deployment`` schema allows, at its highest tier; the tests also validate against
the schema itself where it lies. What a simulation cannot know is left as a marked blank, never invented.
"""

import re
from typing import Literal

import yaml
from pydantic import Field

from fedgraph.documents.settings import Settings

BLANK = "[BLANK: to be filled in by whoever publishes]"
NO_DATE = "1900-01-01"  # the registry wants a date; its own template writes this one where none is known


class Basic(Settings):
    """What is published, by whom, for what."""

    name: str
    data_curators: list[str] = Field(min_length=1)
    intended_use: str
    data_product_type: Literal[
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries"
    ]
    data_product_region: str
    description: str
    publication_date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")


class Variant(Settings):
    """Which definition of privacy, over which data."""

    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]
    data_domain: str
    unprotected_quantities: str


class Parameters(Settings):
    """ε and δ."""

    epsilon: float = Field(ge=0, allow_inf_nan=False)
    delta: float = Field(ge=0, lt=1)


class Loss(Settings):
    """Unit and parameters."""

    privacy_unit: str
    privacy_unit_details: str
    privacy_parameters: Parameters
    privacy_parameters_details: str


class Model(Settings):
    """Who is trusted, and how often what is published."""

    model_name: Literal["Local", "Central", "Shuffle", "Federated", "Varies"]
    model_name_details: str
    actors: str
    release_type: Literal["One release", "Many releases"]
    release_type_details: str
    data_source_type: Literal["Static", "Dynamic"]
    data_source_type_details: str
    access_type: Literal["Interactive", "Non-interactive"]
    access_type_details: str


class Accounting(Settings):
    """How losses add up."""

    post_processing: str
    composition: str


class Implementation(Settings):
    """How it is made, and what was done before."""

    preprocessing_and_hyperparameter_tuning: str
    mechanisms: str
    justification: str


class Administrative(Settings):
    """Sources and authors of the record."""

    sources: str
    notes: str
    registry_authors: list[str] = Field(min_length=1)


class Deployment(Settings):
    """The record itself."""

    basic: Basic
    dp_variant: Variant
    privacy_loss: Loss
    deployment_model: Model
    accounting: Accounting
    implementation: Implementation
    administrative: Administrative


class Record(Settings):
    """The whole file. url_slug: made from name, curators and year by ``slug``, as the registry does."""

    url_slug: str
    status: Literal["Draft"]
    tier: Literal[3]
    deployment: Deployment


def record(deployment: Deployment) -> Record:
    """The file for a deployment, as a draft of the highest tier."""
    return Record(url_slug=slug(deployment.basic), status="Draft", tier=3, deployment=deployment)


def slug(basic: Basic) -> str:
    """Name, curators and year in lower case, everything but letters and digits as one hyphen."""
    parts = (basic.name, "-".join(basic.data_curators), basic.publication_date[:4])
    return "-".join(re.sub(r"\W+", "-", part.lower()).replace("_", "-") for part in parts)


def as_yaml(made: Record) -> str:
    """The file. Texts of several lines are literal blocks, and no line is folded: the registry refuses folded text."""
    head = (
        f"# Draft for the registry of deployments. Complete every value that begins with {BLANK.split(':')[0]}, and the date "
        f"{NO_DATE},\n# then give it to the registry. Everything else was read from the run.\n"
    )
    return head + yaml.dump(made.model_dump(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as literal blocks."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)
