python main.py --dp_mech gaussian --dp_eps 10 --dp_delta 1e-5 --num_rounds 100 --client_frac 1.0 --optim sgd --num_epochs 1 --lr 0.01 --grad_clip 1.0
