"""The base of all joints: the class with its hooks, handles of values, checks, closure."""
