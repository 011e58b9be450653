"""Speed against physical limits and against peers, measured side by side, as ratios.

``python -m benchmarks`` runs them all; ``docs/BENCHMARKS.md`` holds the figures.
"""
