"""Words, terms and stems."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma._core.text import LONGEST_WORD
from didyma.errors import DataError
from didyma.text.features import lexicon as lexicon_module
from didyma.text.features.characters import fold
from didyma.text.features.languages import LANGUAGES, check_language, detect, stems_of, stop_words
from didyma.text.features.lexicon import Lexicon
from tests.text.features import reference
from tests.text.features.texts import WORDS, languages, texts

SENTENCES = {
    "arabic": "هذا هو الكتاب الذي كان على الطاولة في البيت",
    "danish": "han har ikke været i skole, fordi hun var syg og blev hos dem",
    "dutch": "de hond heeft het niet gezien omdat hij in de tuin was",
    "english": "the dog was in the garden because it is not allowed in",
    "finnish": "hän ei ole täällä mutta se on hyvin kaunis ja kun minä olin siellä",
    "french": "le chien est dans le jardin parce qu'il ne peut pas entrer",
    "german": "der Hund ist im Garten, weil er nicht ins Haus darf",
    "greek": "ο σκύλος είναι στον κήπο και δεν μπορεί να μπει στο σπίτι",
    "hindi": "यह किताब मेज पर है और वह घर में नहीं है",
    "hungarian": "a kutya nem volt a kertben, mert az egy nagy ház és ez is jó",
    "indonesian": "anjing itu tidak ada di dalam rumah karena dia yang pergi dengan kami",
    "italian": "il cane è nel giardino perché non può entrare nella casa",
    "norwegian": "hunden er ikke hjemme fordi han ble igjen hos noen som var syke",
    "polish": "pies jest w ogrodzie, bo nie może wejść do domu i to już",
    "portuguese": "o cão está no jardim porque não pode entrar na casa dele",
    "romanian": "câinele este în grădină pentru că nu poate să intre în casă",
    "russian": "собака была в саду, потому что она не может войти в дом",
    "spanish": "el perro está en el jardín porque no puede entrar en la casa",
    "swedish": "hunden är inte hemma för att han var kvar hos några som är sjuka",
    "turkish": "köpek bahçede değil çünkü bu ev çok büyük ve o da daha küçük bir köpek",
}


def words_of(text):
    tokens = Lexicon(None).read([text])
    return [text[a:b] for a, b in zip(tokens.starts, tokens.stops)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's 3.14, 1,000; e-mail_2.", ["It", "s", "3.14", "1,000", "e", "mail", "2"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("كِتَابٌ جَدِيد", ["كِتَابٌ", "جَدِيد"]),
        ("שָׁלוֹם עולם", ["שָׁלוֹם", "עולם"]),
        ("北京大学", ["北京", "京大", "大学"]),
        ("我", ["我"]),
        ("2020年B52机", ["2020", "年", "B52", "机"]),
        ("ผู้ใหญ่", ["ผู้ใ", "ให", "หญ่"]),
        ("한국어 책", ["한국", "국어", "책"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("Zu\u00adcker a\u200bb", ["Zu\u00adcker", "a", "b"]),
        ("naïve cafe\u0301", ["naïve", "cafe\u0301"]),
        ("\ud800a\x00b\udfff", ["a", "b"]),
        ("", []),
        ("!?…", []),
        ("\u0301a 1. .2 1..2", ["a", "1", "2", "1", "2"]),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


@given(st.text(max_size=40) | languages.flatmap(texts))
@settings(deadline=None)
def test_words_are_their_definition(text):
    tokens = Lexicon(None).read([text])
    found = list(zip(tokens.starts.tolist(), tokens.stops.tolist()))
    assert found == list(reference.spans(text))


@given(st.lists(st.text(max_size=12), max_size=8), st.integers(0, 20))
@settings(deadline=None)
def test_words_do_not_depend_on_chunks_or_on_what_was_read_before(batch, size):
    whole, parts = Lexicon(None), Lexicon(None)
    parts.read(batch[::2])
    with pytest.MonkeyPatch.context() as patch:
        a = whole.read(batch)
        patch.setattr(lexicon_module, "CHUNK", size)
        b = parts.read(batch)
    for name in ("starts", "stops", "begins"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    terms = [[lex.terms[n] for n in t.terms] for lex, t in ((whole, a), (parts, b))]
    assert (
        terms[0]
        == terms[1]
        == [reference.fold(t[i:j]) for t in batch for i, j in reference.spans(t)]
    )


def test_a_lexicon_grows():
    lexicon = Lexicon(None)
    words = [f"w{n}" for n in range(20_000)]
    first, again = lexicon.read([" ".join(words)]), lexicon.read([" ".join(reversed(words))])
    terms = lexicon.terms
    assert [terms[n] for n in first.terms] == words
    assert again.terms.tolist() == first.terms[::-1].tolist()


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize(
    "word", ["Élan", "ệ", "Ångström", "ＡＢＣ", "ﬁn", "한국", "ガラス", "हिन्दी", "й"]
)
def test_how_characters_are_composed_does_not_matter(word, form):
    def terms(text):
        return [fold(part) for part in words_of(text)]

    assert terms(unicodedata.normalize(form, word)) == terms(word)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("STRASSE", "Straße"),
        ("مـاء", "ماء"),
        ("שָׁלוֹם", "שלום"),
        ("١٢", "12"),
        ("1,000", "1000"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
    ],
)
def test_differences_that_are_none(a, b):
    assert fold(a) == fold(b)


def test_differences_that_are_some():
    assert len({fold(word) for word in ("schön", "schon", "3.14", "314", "है", "ह")}) == 6


def test_a_word_without_an_end_is_cut():
    lexicon = Lexicon("english")
    tokens = lexicon.read(["x" * 1_000_000])
    assert lexicon.terms[tokens.terms[0]] == "x" * LONGEST_WORD
    assert tokens.stops.tolist() == [1_000_000]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_stop_words_and_a_stemmer(language):
    assert len(stop_words(language)) > 50
    assert all(word == fold(word) for word in stop_words(language))
    assert len(stems_of(list(stop_words(language)), language)) == len(stop_words(language))


@pytest.mark.parametrize(("language", "text"), SENTENCES.items())
def test_a_language_is_known_by_its_stop_words(language, text):
    assert detect(fold(word) for word in words_of(text)) == language


def test_every_language_has_a_sentence():
    assert set(SENTENCES) == set(LANGUAGES)


@pytest.mark.parametrize("text", ["", "東京タワー 東京", "B52 X11 zzz qqq"])
def test_a_text_may_have_no_language(text):
    assert detect(fold(word) for word in words_of(text)) is None


def test_stems_have_no_accents():
    assert stems_of(["forêts", "foret"], "french") == ["foret", "foret"]
    assert stems_of(["ё"], None) == ["е"]


def test_a_language_that_is_not_known():
    with pytest.raises(
        DataError, match=r"language: expected auto, None, or one or more of arabic.*'latin'"
    ):
        check_language("latin")


@given(languages.flatmap(texts))
@settings(deadline=None)
def test_a_term_of_a_term_is_itself(text):
    for word in words_of(text):
        assert fold(fold(word)) == fold(word)


def test_words_of_five_scripts_are_words():
    for words in WORDS.values():
        assert all(words_of(word) for word in words)
