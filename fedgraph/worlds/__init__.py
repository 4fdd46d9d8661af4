"""What each client holds, what is public, who takes part and who is trusted."""
