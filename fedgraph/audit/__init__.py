"""Measures claims: lower bounds on ε, of anybody's mechanism.

lower_bound       what counted events prove about ε and δ (Clopper-Pearson, threshold from other runs); tighter bounds where the
                  law is known up to parameters
one_run           a bound from one run with many independent coins: attacks on whole methods
curve             what such a run says about a whole curve δ(ε), and which estimator reads its guesses
operating_points  what scores are worth to an attacker, and the most that (ε, δ)-DP lets them be worth
"""
