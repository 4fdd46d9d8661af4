"""Measures claims: lower bounds on ε from many runs, and broken mechanisms that the audit has to find.

lower_bound       what counted events prove about ε and δ (Clopper-Pearson, threshold from other runs); tighter bounds where the
                  law is known up to parameters
bench             sound mechanisms, protocols and methods beside broken twins, judged alike:
                  ``python -m fedgraph.audit mechanisms`` (and ``fedgraph.attacks mutants`` for whole methods)
one_run           a bound from one run with many independent coins: attacks on whole methods
curve             what such a run says about a whole curve δ(ε), and which estimator reads its guesses
operating_points  what scores are worth to an attacker, and the most that (ε, δ)-DP lets them be worth
families          the mechanisms, one file per family; parts of the protocol are in ``attacks.base.families``
"""
