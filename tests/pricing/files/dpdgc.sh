python train.py dpdgc-edp --dataset cora --epsilon 1 --delta 1e-5 --encoder_epochs 5 --batch_size 256
