"""A pfl-research program with correlated noise: each user takes part at most once in twelve rounds."""

from pfl.privacy.ftrl_mechanism import BandedMatrixFactorizationMechanism
from pfl.privacy.privacy_accountant import PLDPrivacyAccountant

make_privacy_accountant = lambda num_compositions: PLDPrivacyAccountant(  # noqa: E731
    num_compositions, sampling_probability=0.01, mechanism="gaussian", noise_parameter=3.0, delta=1e-6
)
mechanism = BandedMatrixFactorizationMechanism(
    clipping_bound=1.0, num_iterations=60, min_separation=12, make_privacy_accountant=make_privacy_accountant
)
