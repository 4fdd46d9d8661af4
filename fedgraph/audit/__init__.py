"""Measures claims: lower bounds on ε from many runs, and broken mechanisms that the audit has to find.

lower_bound   what counted events prove about ε and δ (Clopper-Pearson, threshold from other runs)
closed_form   tighter bounds where the law is known up to parameters
cases         one mechanism: its claim, and how to run it in two neighbouring worlds
one_run       a bound from one run with many independent coins: attacks on whole methods
families      the mechanisms, sound ones with their deliberately broken twins, one file per family
mechanisms    run them all and judge: ``python -m fedgraph.audit mechanisms``
"""
