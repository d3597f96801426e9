"""The capability rollouts: brings releases to their users in steps, and takes bad ones back."""
