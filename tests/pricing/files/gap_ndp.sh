python train.py gap-ndp --dataset facebook --hops 2 --epsilon 8 --delta 1e-5 --max_degree 100 --batch_size 256 --epochs 10 --encoder_epochs 10
