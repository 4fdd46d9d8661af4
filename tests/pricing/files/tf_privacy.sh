python compute_dp_sgd_privacy.py --N=60000 --batch_size=250 --noise_multiplier=1.1 --epochs=60 --delta=1e-5 --used_microbatching=False
