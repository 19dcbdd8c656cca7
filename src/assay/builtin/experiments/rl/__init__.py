"""Reinforcement learning of small token policies: tasks, a NumPy policy, four algorithms, and the backends that train them."""
