"""The scorer in JavaScript, in a real browser."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from didyma.exports.description import describe_ranker
from didyma.exports.export import engine_of, export
from didyma.exports.parity import probe_rows
from didyma.exports.plain import SCORER
from tests.browser import chromium
from tests.exports import models

SCRIPT = """async ([model, rows]) => {
  const { score } = await import("/score.js");
  return rows.map((row) => score(model, row));
}"""


@pytest.mark.parametrize("make", [models.additive, models.linear])
def test_a_browser_scores_rows_as_the_model_does(tmp_path: Path, make) -> None:
    model = make(np.random.default_rng(1))
    export(model, tmp_path / "model.json", "json")
    description = describe_ranker(model)
    rows = probe_rows(description, engine_of("json"), missing=model.allows_missing)
    given = [[None if math.isnan(x) else x for x in row] for row in rows.X.tolist()]
    files = {
        "http://page.test/": ("text/html", "<!doctype html><title>rows</title>"),
        "http://page.test/score.js": ("text/javascript", SCORER.read_text()),
    }

    def answer(route, request) -> None:
        kind, body = files[request.url]
        route.fulfill(content_type=kind, body=body)

    with chromium() as browser:
        page = browser.new_page()
        page.route("**/*", answer)
        page.goto("http://page.test/")
        found = page.evaluate(SCRIPT, [json.loads((tmp_path / "model.json").read_text()), given])
    allowed = 50 * np.finfo(np.float64).eps * description.magnitude(rows.X)
    assert np.all(np.abs(np.array(found) - model.predict(rows)) <= allowed)
