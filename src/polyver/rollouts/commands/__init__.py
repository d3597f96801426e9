"""The command `polyver rollout`."""
