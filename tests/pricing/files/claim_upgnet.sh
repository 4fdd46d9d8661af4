# Claimed: UPGNET (ICML 2025) local privacy of features at --x_eps. helongzhu/UPGNet at 4c3e3b9 (2023-12-04) is written over LPGNN; this
# is the command of its README. Missing: --y_eps, whose default sends labels in clear; and values are scaled by the least and the
# largest of the data, which a locally private mechanism does not know.
python main.py --dataset cora --mechanism mbm --model sage --x_eps 0.01 --x_steps 8 --learning_rate 0.01 --weight_decay 0.01 --dropout 0.75 -s 12345 -r 1 -o ./test
