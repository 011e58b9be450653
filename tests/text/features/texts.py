"""Random texts in five scripts, of few words, so that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

TEXTS = {
    "english": (
        "the a of is Wing wings flow flows flowed pressure 1,000 1000 3.5 naïve naive "
        "who what how many year Emma Austen 1815 $5 5% in He by not (it) city."
    ),
    "russian": "и на крыло крылья давление Давления поток потоки 12 ёлка елка",
    "hindi": "में है किताब किताबें हिन्दी हिंदी पानी १२ और",
    "arabic": "في من كتاب كِتَاب الكتاب ماء الماء ٤٢ مـاء",
    None: "北京大学 北京 我 東京タワー すし ผู้ใหญ่ ไทย 한국어 B52 2020年",
}
WORDS = {language: text.split() for language, text in TEXTS.items()}


def texts(language, max_size=12):
    words = st.lists(st.sampled_from(WORDS[language]), max_size=max_size)
    between = st.sampled_from([" ", ", ", "\n", " — ", "\x00", "\ud800 "])
    return st.tuples(words, between).map(lambda both: both[1].join(both[0]))


languages = st.sampled_from(list(WORDS))
