"""Settings of ``dpar``: each key with its default."""

from typing import Annotated, Literal

from pydantic import Field

from fedgraph.documents.settings import Settings


class Params(Settings):
    """Settings; the defaults are the paper's (§4). ``auto`` depends on the calibration, as each description says."""

    variant: Literal["em0", "em1", "gm", "random", "features", "none"] = Field(
        "em0", description="how neighbours are chosen; random: public coins; features: only oneself (one-hot); none: no DP"
    )
    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    sampled: float | Literal["auto"] = Field(
        "auto", description="q', share of nodes taking part; auto: 0.09 (≥ 210 nodes), 1 federated"
    )
    num_sources: int = Field(70, ge=1, description="M, nodes whose PageRank rows are computed")
    top: int = Field(2, ge=1, description="K, neighbours per row")
    alpha: float = Field(0.25, gt=0, le=1, description="teleport probability, of the rows and of the inference")
    rho: float = Field(1e-4, gt=0, description="sparsity of a PageRank row")
    gamma: float = Field(1e-4, gt=0, description="relative slack of its optimality")
    clip_vector: float = Field(0.01, gt=0, description="C1, L2 norm of a row (gm)")
    clip_entry: float = Field(0.001, gt=0, description="C2, largest entry of a row (em0, em1)")
    split: Annotated[float, Field(gt=0, lt=1)] | Literal["auto"] = Field(
        "auto", description="share of the budget for neighbours; auto: 0.5, random 0"
    )
    values_share: float = Field(0.5, gt=0, lt=1, description="share of that for noisy values (em1)")
    column_rows: Annotated[int, Field(ge=1)] | Literal["auto", "any"] = Field(
        "auto", description="B', rows naming a node; auto: 2 provable, any published"
    )
    tau: float = Field(1.0, gt=0, description="L1 norm of the columns of the chosen rows")
    columns: Literal["clip", "normalise", "none"] = Field("clip", description="at most tau, exactly tau (as coded), or free")
    tail: Literal["one-hot", "none"] = Field(
        "one-hot", description="rows of sampled nodes that are no source (one-hot as coded)"
    )
    hidden: int = Field(32, ge=1, description="hidden units")
    features: Literal["unit", "raw"] = Field("unit", description="feature rows scaled to norm 1, or as they are")
    clip: float = Field(1.0, gt=0, description="C, norm of a row's gradient")
    epochs: int = Field(200, ge=1, description="passes over the rows; steps = epochs · rows/batch")
    batch_size: int = Field(60, ge=1, description="B, rows per step (expected; of all clients where a round is one step)")
    batches: Literal["poisson", "fixed"] = Field("poisson", description="fresh coins each step, or fixed groups (as coded)")
    learning_rate: float = Field(0.005, gt=0, description="step size")
    optimiser: Literal["adam", "sgd"] = Field("adam", description="rule that follows the noisy gradients")
    local_steps: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="steps per round; auto: all of them, 1 if federated"
    )
    propagation_steps: int = Field(2, ge=0, description="P, power iterations at inference")
