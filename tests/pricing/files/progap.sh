python train.py progap edge --dataset reddit --epsilon 1 --delta 1e-7 --depth 5
