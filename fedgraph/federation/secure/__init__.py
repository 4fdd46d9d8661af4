"""Secure aggregation with masks: the server learns a sum modulo 2^b, and nothing of the single values.

SecAgg+ (Bell, Bonawitz, Gascón, Lepoint & Raykova 2020, "Secure single-server aggregation with (poly)logarithmic overhead", for
a server that is honest but curious), after Bonawitz et al. 2017. One round, for the clients that it asks:

1. ``masking.advertise_masking_keys``: each client sends two X25519 public keys, a fresh one for masks, and one for letters to
   others.
2. ``masking.share_masking_secrets``: each splits its mask key and a fresh seed into Shamir shares, one for each of its
   k = O(log n) neighbours on a random ring (``neighbours``), and sends them encrypted through the server.
3. ``masking.apply_masking``: each sends its whole numbers plus the stream of its own seed, plus or minus the stream that it and
   a neighbour both know, for each neighbour. In the sum of two neighbours their common stream cancels.
4. ``masking.answer_masking_shares``: told who has sent, each gives the server shares of the *seed* of a neighbour that sent, of
   the *mask key* of one that did not, never both of one. It gives nothing where fewer than ``least`` have sent: the noise would
   be too little.
5. ``unmasking.merge_unmasking``: the server rebuilds from any t shares what is left in the sum, and takes it away.

``masked_plan`` turns a method's Gaussian noise into discrete noise on whole numbers, and prices it. All secrets come from named
streams of the run, so a run repeats, and with ``seed: secret`` nobody can.
"""
