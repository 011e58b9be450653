"""Sums over all sequences of tags (forward-backward)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit, jit_sum
from didyma.kernels.log_space import log_dot

__all__ = ["forward_backward"]

# A sum of products of exponentials above this has lost nothing that counts to underflow, and
# dividing by it does not overflow.
SMALLEST = 1e-280


@jit
def forward_backward(scores, extra, dims, sizes, log_partition, marginals, extra_marginals):
    """Log partition (B,), marginals (B, d) and (B, f) of p(tags) ∝ exp(score); all start as 0.

    dims are those of `didyma.kernels.viterbi`. Returns the first instance without a possible
    output, or −1.

    The forward pass needs log Σ_a exp(value[a] + transitions[a, b]) for every b. From exponentials
    of both terms this is a vector times a matrix; only sums that underflow are taken term by term.
    The backward pass spreads the marginals of a position over the one before by P(a | b), which
    sums to one over a: nothing large cancels, however large the scores.
    """
    n_tags, stride, start, end = dims[0], dims[1], dims[2], dims[3]
    longest = scores.shape[1] // n_tags
    n_matrices = max(longest - 1, 0) if stride > 0 else 1
    factor = np.empty((n_matrices, n_tags, n_tags))  # exp(transitions), the highest is 1
    shift = np.empty(n_matrices)
    value = np.empty((longest, n_tags))  # log Σ exp(score) over the beginnings, the highest is 0
    weight = np.empty((longest, n_tags))  # exp(value)
    sums = np.empty((longest, n_tags))  # 0 where they underflow
    share = np.empty(n_tags)
    for instance in range(scores.shape[0]):
        row = instance if extra.shape[0] > 1 else 0
        transitions = extra[row, : factor.size].reshape(factor.shape)
        if row == instance:
            for matrix in range(n_matrices):
                shift[matrix] = exponentials(transitions[matrix], factor[matrix])
        n = sizes[instance, 0]
        if n == 0:
            continue

        total = 0.0
        for i in range(n):
            matrix = i - 1 if stride > 0 else 0
            if i == 0:
                for b in range(n_tags):
                    value[0, b] = scores[instance, b] + extra[row, start + b]
            else:
                multiply(weight[i - 1], factor[matrix], sums[i])
                for b in range(n_tags):
                    if sums[i, b] > SMALLEST:
                        value[i, b] = np.log(sums[i, b]) + shift[matrix]
                    else:
                        sums[i, b] = 0.0
                        value[i, b] = log_dot(value[i - 1], transitions[matrix, :, b])
                    value[i, b] += scores[instance, i * n_tags + b]
            if i == n - 1:
                for b in range(n_tags):
                    value[i, b] += extra[row, end + b]
            highest = exponentials(value[i : i + 1], weight[i : i + 1])
            total += highest
            for b in range(n_tags):
                value[i, b] -= highest
        normaliser = 0.0
        for b in range(n_tags):
            normaliser += weight[n - 1, b]
        if normaliser == 0.0:
            return instance
        log_partition[instance] = total + np.log(normaliser)

        for b in range(n_tags):
            marginals[instance, (n - 1) * n_tags + b] = weight[n - 1, b] / normaliser
        for i in range(n - 1, 0, -1):
            matrix = i - 1 if stride > 0 else 0
            here = marginals[instance, i * n_tags : (i + 1) * n_tags]
            before = marginals[instance, (i - 1) * n_tags : i * n_tags]
            joint = extra_marginals[instance, matrix * n_tags * n_tags :]
            for b in range(n_tags):
                share[b] = here[b] / sums[i, b] if sums[i, b] > 0.0 else 0.0
            for a in range(n_tags):
                before[a] = spread(
                    weight[i - 1, a], factor[matrix, a], share, joint[a * n_tags : (a + 1) * n_tags]
                )
            for b in range(n_tags):
                if sums[i, b] == 0.0 and here[b] > 0.0:
                    normaliser = log_dot(value[i - 1], transitions[matrix, :, b])
                    for a in range(n_tags):
                        x = value[i - 1, a] + transitions[matrix, a, b] - normaliser
                        probability = here[b] * np.exp(x)
                        before[a] += probability
                        joint[a * n_tags + b] += probability
        for b in range(n_tags):
            extra_marginals[instance, start + b] = marginals[instance, b]
            extra_marginals[instance, end + b] = marginals[instance, (n - 1) * n_tags + b]
    return -1


@jit
def exponentials(values, weights):
    """Exponentials of a matrix over their highest, whose logarithm is returned (0 if all are 0)."""
    highest = -np.inf
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            highest = values[i, j] if values[i, j] > highest else highest
    if highest == -np.inf:
        highest = 0.0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            weights[i, j] = np.exp(values[i, j] - highest)
    return highest


@jit
def multiply(weights, matrix, sums):
    """Vector times matrix, row by row."""
    for b in range(sums.shape[0]):
        sums[b] = 0.0
    for a in range(weights.shape[0]):
        weight = weights[a]
        row = matrix[a]
        for b in range(sums.shape[0]):
            sums[b] += weight * row[b]


@jit_sum
def spread(weight, factor, share, joint):
    """Add the probabilities weight · factor[b] · share[b] to ``joint``; their sum."""
    total = 0.0
    for b in range(share.shape[0]):
        probability = weight * factor[b] * share[b]
        joint[b] += probability
        total += probability
    return total
