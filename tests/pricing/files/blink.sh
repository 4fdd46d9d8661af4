python run_blink.py hard cora gcn --eps 4
