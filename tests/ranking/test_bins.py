"""Bins of columns: edges, levels and cells of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.ranking.bins import FEW, Bins, reach

RNG = np.random.default_rng(3)


def test_bins_count_the_edges_below() -> None:
    rows = np.concatenate(
        [RNG.normal(size=(300, 2)), RNG.lognormal(sigma=5, size=(300, 2))], axis=1
    )
    rows[::7, 1] = np.nan
    rows[:, 0] = np.round(rows[:, 0])
    for values in (rows, rows.astype(np.float32)):
        for strategy in ("quantile", "even", "geometric"):
            bins = Bins.of(values, 20, strategy)
            expected = np.stack(
                [np.searchsorted(own, column) for own, column in zip(bins.edges, values.T)], axis=1
            )
            expected[np.isnan(values)] = bins.height - 1
            np.testing.assert_array_equal(bins.transform(values).bins, expected)


def test_rows_of_each_bin_are_counted() -> None:
    rows = RNG.normal(size=(50, 3))
    rows[::7, 1] = np.nan
    binned = Bins.of(rows, 8).transform(rows)
    expected = [np.bincount(column, minlength=binned.height) for column in binned.bins.T]
    np.testing.assert_array_equal(binned.counts(), np.transpose(expected))


def test_crossed_columns_are_cells_of_levels() -> None:
    rows = RNG.normal(size=(180, 5))
    rows[::5, 3] = np.nan
    rows[:, 4] = RNG.integers(3, size=len(rows))
    bins = Bins.of(rows, 16, nominal=np.arange(5) == 4)
    main = bins.transform(rows)
    bins = bins.levelled(main.counts()).crossed(np.array([[0, 3], [4, 1]]))
    found = bins.transform(rows)
    np.testing.assert_array_equal(found.bins, bins.added(main).bins)
    for k, (first, second) in enumerate(bins.pairs, 5):
        a, b = (bins.levels[j][found.bins[:, j]].astype(int) for j in (first, second))
        np.testing.assert_array_equal(found.bins[:, k], 8 * (a - 1) + b)
    levels = bins.levels[3][found.bins[:, 3]]
    assert set(levels[::5]) == {8}
    assert set(np.delete(levels, np.arange(0, len(levels), 5))) == set(range(1, 8))
    strange = rows[:1].copy()
    strange[0, 4] = 77.0
    assert bins.transform(strange).bins[0, 6] == 0


def test_levels_are_finer_towards_both_ends() -> None:
    """Of many values; a few have a level each."""
    rows = np.column_stack([np.arange(1000.0), np.arange(1000) % 5, np.arange(1000) % 2 == 0])
    bins = Bins.of(rows, 64)
    binned = bins.transform(rows)
    main, levels = binned.bins, bins.levelled(binned.counts()).levels
    sizes = np.bincount(levels[0][main[:, 0]])[1:]
    assert len(sizes) == 8
    assert np.all(np.diff(sizes[:4]) > 0)
    np.testing.assert_allclose(sizes, sizes[::-1], atol=20)
    expected = 1000 * np.diff(np.sin(np.linspace(0, np.pi / 2, 9)) ** 2)
    np.testing.assert_allclose(sizes, expected, atol=16)  # a bin has as many rows
    for j, count in ((1, 5), (2, 2)):
        assert len(np.unique(levels[j][main[:, j]])) == count


PRICES = np.array([0.1, 0.25, 1 / 3, 7.7, 1e-50, -3.3, 1e300])


def named(trained: NDArray[Any], asked: NDArray[Any]) -> list[int]:
    """Bins of one nominal column, few rows and many alike."""
    bins = Bins.of(trained[:, None], 8, nominal=np.array([True]))
    few: list[int] = bins.transform(asked[:, None]).bins[:, 0].tolist()
    many = bins.transform(np.tile(asked, FEW)[:, None]).bins[:, 0].tolist()
    assert many == FEW * few
    return few


def test_a_category_is_the_same_in_single_precision() -> None:
    single = PRICES[:-1].astype(np.float32)  # which has no 1e300, and 0 for 1e-50
    for prices in (PRICES[:-1], np.append(PRICES[:-1], np.nan)):
        both = prices, prices.astype(np.float32)
        expected = [3, 4, 5, 6, 2, 1, 8][: len(prices)]
        for trained in both:
            for asked in both:
                assert named(trained, asked) == expected
    assert named(PRICES, single) == named(PRICES, PRICES[:-1])
    assert named(single, np.array([1e300, 0.1001, 0.2, np.nextafter(0.25, 1)])) == [0, 0, 0, 4]
    assert named(PRICES, np.array([0.1 + 1e-12, 0.25 + 1e-12])) == [0, 0]
    assert named(PRICES, np.array([0.1001, 5.0], np.float32)) == [0, 0]


def test_ids_that_single_precision_cannot_tell_apart() -> None:
    ids = 2.0**24 + np.arange(5)
    assert named(ids, ids) == [1, 2, 3, 4, 5]
    assert named(ids, ids + 0.5) == [0] * 5
    assert named(ids, ids.astype(np.float32)) == [1, 1, 3, 5, 5]
    assert named(np.full(3, np.nan), ids) == [0] * 5


def test_narrow_columns_are_looked_up_as_they_are_searched() -> None:
    tiny = np.finfo(float).smallest_subnormal
    for unit in (tiny, 1e-310, 1e-307, 1e-305, 1e-300, np.spacing(1.0)):
        for low in (0.0, 1.0):
            rows = low + unit * RNG.integers(0, 64, size=(2 * FEW, 3))
            bins = Bins.of(rows, 16)
            few = [bins.transform(part).bins for part in np.split(rows, 4)]
            np.testing.assert_array_equal(bins.transform(rows).bins, np.concatenate(few))


def test_what_is_rounded_to_a_category_means_it() -> None:
    for scale in 10.0 ** np.arange(-44, 38, 3):
        single = np.unique(np.append(0, RNG.normal(size=8) * scale).astype(np.float32))
        low, high = reach(single.astype(float))
        for end, way in ((low, -np.inf), (high, np.inf)):
            np.testing.assert_array_equal(end.astype(np.float32), single)
            assert np.all(np.nextafter(end, way).astype(np.float32) != single)
