# A command line of GAP at edge level.
python train.py gap-edp --dataset facebook --hops 2 --epsilon 8 --delta 1e-7 --hidden_dim 64 --epochs 100 --seed 1
