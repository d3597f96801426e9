"""The capability rollouts: moves followers to a new release in steps, or rolls it back."""
