"""Measures the native training of reinforcement learning algorithms against its promises."""
