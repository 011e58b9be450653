"""The page in a real browser, as people use it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from didyma.cli import app
from didyma.data.texts import reader as texts
from didyma.serve.access import BearerTokens
from didyma.serve.app import Service
from didyma.serve.limits import Limits
from didyma.serve.served import NamedSource, ServedIndexes, ServedModels
from didyma.text.index import PassageIndex
from didyma.text.text_reranker import TextReranker
from tests.browser import chromium
from tests.serve.conftest import make_service, running
from tests.serve.standin import load
from tests.text.texts import made

WIDE = {"width": 1200, "height": 900}
NARROW = {"width": 320, "height": 700}
QUERY = "when does the ship of the storm sail?"
PASSAGES = [
    "It is late.",
    "A ship ship ship is near the storm, which sails there.",
    "😀 The ship of the storm sails in 1902.",
    "The tree of the river grows or sails in 7.",
]
HOSTILE = [
    '<img src=x onerror="window.harmed = 1"> the ship sails',
    "</script><script>window.harmed = 1</script> a storm",
    "\u202egpj.exe sails",
    "<b onclick=alert(1)>ship</b> &amp; storm {{7*7}}",
]
# Counts what moves, before the page runs.
COUNT_MOVES = """
window.moves = 0;
const animate = Element.prototype.animate;
Element.prototype.animate = function (...given) {
  window.moves += 1;
  return animate.apply(this, given);
};
"""

CONNECTED = "#model option, #token-form:not([hidden])"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for all tests."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of two trained models, and of one that wants scores."""
    folder = tmp_path_factory.mktemp("models")
    lists = {"first": made(12, 0), "second": made(9, 5), "scored": made(12, 1, scores=True)}
    for name, own in lists.items():
        TextReranker(quick=True).fit(own).save(folder / name)
    sources = [NamedSource(folder / name, name) for name in lists]
    with running(Service(ServedModels(sources), Limits(documents=20))) as found:
        yield found


Open = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, client: httpx.Client) -> Iterator[Open]:
    """Opens the page; whatever it complains of, but for what a test expects, is a fault."""
    contexts, complaints = [], []

    def complain(message: str, expected: str) -> None:
        if not (expected and re.search(expected, message)):
            complaints.append(message)

    def open_page(
        size: dict[str, int] = WIDE, expected: str = "", address: Any = None, **options: Any
    ) -> Any:
        options = {"reduced_motion": "reduce", **options}
        context = browser.new_context(viewport=size, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # on a busy machine too
        page.add_init_script(COUNT_MOVES)
        page.on("console", lambda said: complain(said.text, expected))
        page.on("pageerror", lambda error: complain(str(error), expected))
        page.goto(str(address or client.base_url))
        page.wait_for_selector(CONNECTED, state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def paste(page: Any, passages: list[str] | list[dict[str, Any]]) -> None:
    page.get_by_label("your own").check()
    lines = [json.dumps(one) if isinstance(one, dict) else one for one in passages]
    page.locator("#pasted").fill("\n".join(lines))


def ask(page: Any, query: str = QUERY) -> None:
    page.get_by_label("Question", exact=True).fill(query)
    with page.expect_response("**/v2/rerank"):
        page.get_by_role("button", name="Rank", exact=True).click()
    page.wait_for_selector("#columns:not([aria-busy])")


def open_all(page: Any) -> None:
    """Open the reasons of every passage."""
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    page.locator(".parts").last.wait_for()


def shown(page: Any, column: int = 0) -> list[str]:
    """Texts of the passages from the first to the last."""
    return page.locator(".column").nth(column).locator(".card .text").all_text_contents()


def answered(client: httpx.Client, passages: list[str], **more: Any) -> list[dict[str, Any]]:
    body = {"query": QUERY, "documents": passages, "explain": True, **more}
    found = client.post("/v2/rerank", json=body)
    assert found.status_code == 200, found.text
    return found.json()["results"]


def test_passages_are_seen_to_reorder(opened, client):
    page = opened(reduced_motion="no-preference")
    paste(page, PASSAGES)
    page.get_by_text("4 passages, one a line.").wait_for()
    assert shown(page) == PASSAGES
    assert page.evaluate("window.moves") == 0
    ask(page)
    order = [one["index"] for one in answered(client, PASSAGES)]
    assert order != [0, 1, 2, 3]
    assert shown(page) == [PASSAGES[n] for n in order]
    assert page.evaluate("window.moves") > 0
    assert page.locator(".rank").all_text_contents() == ["1", "2", "3", "4"]
    assert page.locator(".was").all_text_contents() == [f"was {n + 1}" for n in order]
    assert (
        page.locator("#status").text_content() == f"4 passages; the best was number {order[0] + 1}."
    )
    assert page.get_by_role("heading", level=2).text_content() == f"“{QUERY}”"
    page.get_by_role("button", name="as given").click()
    assert shown(page) == PASSAGES
    page.get_by_role("button", name="ranked").click()
    assert shown(page) == [PASSAGES[n] for n in order]


def test_nothing_moves_for_those_who_want_that(opened):
    page = opened()
    paste(page, PASSAGES)
    ask(page)
    assert shown(page) != PASSAGES
    assert page.evaluate("window.moves") == 0


def test_what_matched_is_marked(opened, client):
    """Spans count code points, of which the browser's strings know nothing."""
    page = opened()
    paste(page, PASSAGES)
    ask(page)
    for card, result in zip(page.locator(".card").all(), answered(client, PASSAGES)):
        text, spans = PASSAGES[result["index"]], result["explanation"]["spans"]
        marks = card.locator("mark")
        assert marks.all_text_contents() == [text[one["start"] : one["stop"]] for one in spans]
        assert [mark.get_attribute("class") for mark in marks.all()] == [
            one["kind"] for one in spans
        ]
    assert page.locator("mark").count() > 3


def test_bars_add_up(opened, client):
    page = opened()
    paste(page, PASSAGES)
    ask(page)
    raw = np.array([one["explanation"]["raw"] for one in answered(client, PASSAGES)])
    from_mean = raw - raw.mean()
    lengths = """strips => strips.map(strip => [...strip.children].reduce(
        (sum, one) => sum + parseFloat(one.style.width) * (one.className === "up" ? 1 : -1), 0))"""
    drawn = page.locator("summary .strip").evaluate_all(lengths)
    assert np.allclose(np.array(drawn) * from_mean[0], drawn[0] * from_mean, atol=1e-6)
    for place, card in enumerate(page.locator(".card").all()):
        card.locator("summary").click()
        card.locator(".parts").wait_for()
        amounts = [
            float(text.replace("−", "-")) for text in card.locator(".amount").all_text_contents()
        ]
        assert sum(amounts[:-1]) == pytest.approx(amounts[-1], abs=1e-3 * len(amounts))
        assert amounts[-1] == pytest.approx(from_mean[place], abs=1e-3)


def test_a_threshold_greys_what_is_below(opened, client):
    page = opened()
    paste(page, PASSAGES)
    ask(page)
    page.locator(".card summary").first.click()
    results = answered(client, PASSAGES)
    for threshold in client.get("/info").json()["models"]["first"]["thresholds"]:
        page.get_by_label("Threshold").select_option(str(threshold["asked"]))
        below = [one["probability"] < threshold["score"] for one in results]
        greyed = page.locator(".card").evaluate_all(
            "cards => cards.map(card => card.classList.contains('below'))"
        )
        assert greyed == below
        assert page.locator(".line").count() == 1
    assert page.locator(".parts").count() == 1  # what was opened stays open
    ask(page, "how is bread baked?")
    assert "Nothing here answers" in page.locator(".line").text_content()
    page.get_by_label("Threshold").select_option("")
    assert page.locator(".below, .line").count() == 0


def test_scores_and_times_are_shown(opened, client):
    page = opened()
    paste(page, PASSAGES)
    ask(page)
    figures = page.locator(".figure").evaluate_all("all => all.map(one => one.title)")
    assert figures == [f"{one['probability']:.4f}" for one in answered(client, PASSAGES)]
    times = page.locator(".timing").all_text_contents()
    assert re.fullmatch(r"[\d.]+ ms to rank and explain", times[0])
    assert re.fullmatch(r"[\d.]+ ms round trip", times[1])
    assert (
        page.locator(".verdict").text_content()
        == (client.get("/info").json()["models"]["first"]["verdict"])
    )


def test_texts_are_never_markup(opened):
    page = opened()
    paste(page, HOSTILE)
    ask(page, '<img src=x onerror="window.harmed = 1"> ship storm')
    assert sorted(shown(page)) == sorted(HOSTILE)
    open_all(page)
    assert page.locator("#results :is(img, script, b)").count() == 0
    assert page.evaluate("window.harmed") is None
    bidi = page.locator(".text").evaluate_all(
        "all => all.map(one => getComputedStyle(one).unicodeBidi)"
    )
    assert set(bidi) == {"isolate"}


def test_the_browser_forbids_markup_and_foreign_code(opened):
    page = opened(expected="violates|requires 'Trusted")
    refused = """
    () => { try { document.body.innerHTML = "<b>"; return false; } catch { return true; } }
    """
    assert page.evaluate(refused)
    assert page.evaluate("fetch('https://example.invalid/').then(() => false, () => true)")


@pytest.mark.parametrize("size", [WIDE, {"width": 390, "height": 844}], ids=["wide", "narrow"])
def test_signals_are_sent_and_told_in_words(opened, tmp_path, size):
    from tests.serve.test_documents import LISTED, QUERY, collection

    queries, documents, labels = collection()
    texts = [one["text"] for one in queries]
    fields = ("title", "text", "clicks")
    plain = [[{name: one[name] for name in fields} for one in own] for own in documents]
    TextReranker(quick=True).fit(texts, plain, labels).save(tmp_path / "model")
    given = [{name: one[name] for name in fields} for one in LISTED]
    given[0]["colour"] = "red"
    del given[1]["clicks"]
    with running(Service(ServedModels([NamedSource(tmp_path / "model", None)]))) as client:
        page = opened(size, address=client.base_url)
        paste(page, given)
        with page.expect_request("**/v2/rerank") as request:
            ask(page, QUERY)
        assert request.value.post_data_json["documents"] == given
        open_all(page)
        names = page.locator(".parts").first.locator("tbody th").all_text_contents()
        assert "clicks" in names
        assert not any("_" in name or "signal." in name for name in names)
        notes = page.locator(".note").all_text_contents()
        assert "colour: not known from training, ignored in 1 of 6 documents." in notes
        assert any(note.startswith("clicks: missing in 1 of 6 documents") for note in notes)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        page.get_by_role("button", name="relevant", exact=True).first.click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download").click()
        line = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
        assert line["passages"][0] in given


def test_two_models_side_by_side(opened, client):
    page = opened()
    paste(page, PASSAGES)
    page.get_by_label("Beside it").select_option("second")
    ask(page)
    page.wait_for_selector(".column:nth-child(2) .figure")
    assert page.locator("h3").all_text_contents() == ["first", "second"]
    for column, model in enumerate(("first", "second")):
        order = [one["index"] for one in answered(client, PASSAGES, model=model)]
        assert shown(page, column) == [PASSAGES[n] for n in order]
    card = page.locator(".column").first.locator(".card").first
    card.get_by_role("button", name="relevant").click()
    assert page.locator('.judge [aria-pressed="true"]').count() == 2  # in both columns
    card.hover()
    assert page.locator(".card.pointed .text").all_text_contents() == [shown(page)[0]] * 2
    boxes = [column.bounding_box() for column in page.locator(".column").all()]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]


def test_scores_of_a_first_stage_are_sent_where_they_are_wanted(opened):
    page = opened()
    page.get_by_label("Model", exact=True).select_option("scored")
    for scores, said in (([0.5, 2.0], None), ([], [1.0, 0.5])):
        given = [{"text": text} for text in PASSAGES[:2]]
        for one, score in zip(given, scores):
            one["score"] = score
        paste(page, given)
        with page.expect_request("**/v2/rerank") as request:
            ask(page)
        assert request.value.post_data_json["scores"] == (said or scores)
        assert ("1 / place" in page.locator("#status").text_content()) == (said is not None)


def test_judgements_are_what_fit_takes(opened, tmp_path):
    page = opened()
    for number in range(3):
        page.locator("#suggestions button").nth(number).click()
        page.wait_for_selector("#columns:not([aria-busy]) .figure")
        cards = page.locator(".card")
        cards.nth(0).get_by_role("button", name="relevant").click()
        for place in (1, 2, 3):
            cards.nth(place).get_by_role("button", name="not").click()
        cards.nth(3).get_by_role("button", name="not").click()  # taken back
    assert page.locator("#judged-count").text_content() == "9 judgements of 3 questions."
    path = download(page, tmp_path)
    lists = texts.read(path)
    assert len(lists.groups) == 3
    assert lists.y.tolist() == [1.0, 0.0, 0.0] * 3
    assert lists.queries[0] == page.locator("#suggestions button").first.text_content()
    model = tmp_path / "model.safetensors"
    found = CliRunner().invoke(app, ["rerank", "fit", str(path), "-o", str(model), "--quick"])
    assert found.exit_code == 0, found.output
    assert model.exists()


def test_grades_ids_and_scores_are_kept(opened, tmp_path):
    page = opened()
    given = [
        {"id": f"d{n}", "title": "Ships", "text": text, "score": n / 2}
        for n, text in enumerate(PASSAGES)
    ]
    paste(page, given)
    page.get_by_label("Judge by").select_option("4")
    ask(page)
    order = [shown(page).index(f"Ships {text}") for text in PASSAGES]
    for text, grade in zip(order, (0, 1, 3)):
        page.locator(".card").nth(text).get_by_role("button", name=str(grade), exact=True).click()
    lists = texts.read(download(page, tmp_path))
    assert lists.texts == [f"Ships {text}" for text in PASSAGES[:3]]
    assert lists.y.tolist() == [0.0, 1.0, 3.0]
    assert lists.docid.tolist() == ["d0", "d1", "d2"]
    assert lists.scores.tolist() == [0.0, 0.5, 1.0]


def download(page: Any, folder: Path) -> Path:
    with page.expect_download() as found:
        page.get_by_role("button", name="Download").click()
    assert found.value.suggested_filename == "judgements.jsonl"
    path = folder / "judgements.jsonl"
    found.value.save_as(path)
    return path


def focused(page: Any) -> str:
    """What has the focus; it must be seen to have it."""
    name, outline = page.evaluate(
        """() => { const own = document.activeElement;
        const name = own.id || own.dataset.grade || own.localName;
        return [name, getComputedStyle(own).outlineStyle]; }"""
    )
    assert outline != "none", name
    return name


def test_the_keyboard_is_enough(opened, tmp_path):
    page = opened()
    page.keyboard.press("Tab")
    assert focused(page) == "query"
    page.keyboard.type("who explained the tides?")
    page.keyboard.press("Enter")
    page.wait_for_selector("#columns:not([aria-busy]) .figure")
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    page.locator("details[open] .parts").wait_for()
    page.keyboard.press("ArrowDown")
    assert focused(page) == "summary"
    page.keyboard.press("Tab")
    assert focused(page) == "1"
    page.keyboard.press("Space")
    assert focused(page) == "1"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert focused(page) == "0"
    page.keyboard.press("Space")
    pressed = page.locator(".card").evaluate_all(
        "all => all.map(one => one.querySelector('[aria-pressed=true]')?.textContent)"
    )
    assert pressed[:3] == [None, "relevant", "not"]
    tab_to(page, "export")
    with page.expect_download():
        page.keyboard.press("Enter")


def tab_to(page: Any, name: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if focused(page) == name:
            return
    raise AssertionError(f"no way to {name} by the keyboard")


@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_nothing_is_wider_than_the_screen(opened, size):
    page = opened(size)
    paste(page, [*PASSAGES, "x" * 500, "a_" * 200])
    page.get_by_label("Beside it").select_option("second")
    page.get_by_label("Judge by").select_option("4")
    ask(page, "x" * 300)
    page.wait_for_selector(".column:nth-child(2) .figure")
    open_all(page)
    page.locator(".judge button").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    beyond = page.locator("body *").evaluate_all(
        """all => all.filter(one => one.checkVisibility() && !one.closest(".unseen")
        && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML)"""
    )
    assert beyond == []


# Contrast of each text that is seen with what is behind it (WCAG 2).
CONTRAST = """
all => {
  const light = ([r, g, b]) => [r, g, b]
    .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const behind = own => {
    const found = numbers(getComputedStyle(own).backgroundColor);
    return found[3] === 0 ? behind(own.parentElement) : found;
  };
  const texts = all.filter(own => own.checkVisibility() && !own.closest(".unseen, option")
    && [...own.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
  return texts.map(own => {
    const [a, b] = [light(numbers(getComputedStyle(own).color)), light(behind(own))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), own.outerHTML.slice(0, 80)];
  });
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(opened, scheme):
    page = opened(color_scheme=scheme)
    ask(page, "who explained the tides?")
    page.locator("summary").first.click()
    page.locator(".judge button").first.click()
    page.get_by_label("Threshold").select_option(index=1)
    found = page.locator("body *").evaluate_all(CONTRAST)
    assert len(found) > 50
    assert [one for one in found if one[0] < 4.5] == []
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_what_the_server_refuses_is_said_as_a_sentence(opened):
    page = opened(expected="413")
    paste(page, ["a passage"] * 21)
    ask(page)
    alert = page.get_by_role("alert")
    assert alert.text_content() == "Expected at most 20 documents, found 21."
    paste(page, PASSAGES)
    ask(page)
    assert not alert.is_visible()


PASTED = {
    '{"text": "a"}\n{"words": 1}': "Line 2: expected an object with a text.",
    '{"text": "a"}\n\n{': "Line 3: expected a JSON object.",
    '{"text": "a", "score": "b"}': "Line 1: expected a number as score.",
    "a\nb\n\n \nc\n\n\nd": "3 passages, separated by blank lines.",
    ' {"passage": "a"}\n{"text": "b"}': "2 passages, JSON lines.",
}


def test_what_is_pasted_is_read_or_refused(opened):
    page = opened()
    page.get_by_label("your own").check()
    page.get_by_label("Question", exact=True).fill("a")
    page.get_by_role("button", name="Rank", exact=True).click()
    page.get_by_text("There are no passages yet: paste some.").wait_for()
    for text, said in PASTED.items():
        paste(page, [text])
        page.get_by_text(said).wait_for()


def test_a_server_that_has_gone_is_missed(opened):
    page = opened(expected="ERR_FAILED")
    page.route("**/v2/rerank", lambda route: route.abort())
    page.locator("#suggestions button").first.click()
    page.get_by_text("The server does not answer; is it still running?").wait_for()


def test_an_index_is_a_source_of_passages(opened, model, tmp_path):
    notes = [f"The ship of storm {n} sails in 19{n:02}." for n in range(30)] + ["It rains."]
    PassageIndex.build(notes, tmp_path / "notes")
    indexes = ServedIndexes([NamedSource(tmp_path / "notes", None)])
    with running(
        Service(ServedModels([NamedSource(model, "m")], load), indexes=indexes)
    ) as serving:
        page = opened(address=serving.base_url)
        page.get_by_label("notes").check()
        assert shown(page) == []
        ask(page, "when does the ship of storm 7 sail?")
        assert len(shown(page)) == 20
        assert notes[7] in shown(page)
        assert set(shown(page)) < set(notes)
        page.get_by_label("Question", exact=True).fill("zebra")
        page.get_by_role("button", name="Rank", exact=True).click()
        page.get_by_text("no passage of the index has a word of the question").wait_for()
        page.context.close()


def test_a_token_is_asked_for_and_kept_in_memory_only(opened, model):
    service = make_service(model, tokens=BearerTokens(["secret"]))
    with running(service) as guarded:
        page = opened(expected="401", address=guarded.base_url)
        field = page.get_by_label("This server asks for a token")
        assert field.is_visible()
        assert not page.get_by_role("alert").is_visible()
        for token, said in (("wrong", "Expected a valid token"), ("sécret", "only ASCII")):
            field.fill(token)
            page.get_by_role("button", name="Use it").click()
            page.get_by_role("alert").filter(has_text=said).wait_for()
        field.fill("secret")
        page.get_by_role("button", name="Use it").click()
        field.wait_for(state="hidden")
        ask(page)
        assert page.locator(".figure").count() > 1
        assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
        assert page.context.cookies() == []
        page.context.close()
