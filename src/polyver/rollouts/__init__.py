"""The capability rollouts: releases reach their users in steps, and come back if they hurt."""
