"""Measurements: `python -m benchmarks [NAME ...] [--quick] [--json FILE]`.

A benchmark, not a test. Every ratio is taken between two things that were
measured in turns in the same run, and stands beside its absolute values.
"""
