"""A pfl-research program: its accountant finds the noise."""

from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_accountant import PLDPrivacyAccountant

accountant = PLDPrivacyAccountant(
    num_compositions=1500, sampling_probability=0.001, mechanism="gaussian", epsilon=2.0, delta=1e-6, noise_scale=0.05
)
mechanism = GaussianMechanism.from_privacy_accountant(accountant=accountant, clipping_bound=0.4)
