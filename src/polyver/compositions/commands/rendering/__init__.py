"""`polyver render`, in steps: read, choose, serve, run, print.

What is decided is decided by the capability, as the controllers decide it; here are files, and
processes that end with the command.
"""
