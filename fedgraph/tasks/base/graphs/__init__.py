"""What the tasks that compare graphs share."""
