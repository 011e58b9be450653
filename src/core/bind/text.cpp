#include "text/lexicon.hpp"

#include "bind/families.hpp"
#include "bind/numpy.hpp"

namespace didyma {

using namespace text;

namespace {

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }
std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

void bind_text(nb::module_ m) {
    m.attr("UNKNOWN") = int{UNKNOWN};
    m.attr("LETTER") = int{LETTER};
    m.attr("DIGIT") = int{DIGIT};
    m.attr("MARK") = int{MARK};
    m.attr("POINT") = int{POINT};
    m.attr("UNSPACED") = int{UNSPACED};
    m.attr("BETWEEN") = int{BETWEEN};
    m.attr("IS_CAPITAL") = int{IS_CAPITAL};
    m.attr("IS_NUMERAL") = int{IS_NUMERAL};
    m.attr("NUMBER") = NUMBER;
    m.attr("YEAR") = YEAR;
    m.attr("STOP_WORD") = STOP_WORD;
    m.attr("LONGEST_WORD") = LONGEST_WORD;

    m.def("has_unknown", &has_unknown, Released());

    // For tests: tables that are made from now on look at so many bits of a hash.
    m.def("set_hash_bits",
          [](int bits) { hash_mask = bits < 32 ? (uint32_t{1} << bits) - 1 : ~uint32_t{0}; });

    // The arrays are kept alive as long as what looks at them.
    nb::class_<Vocabulary>(m, "Vocabulary")
        .def(
            "__init__",
            [](Vocabulary* self, Span<const uint8_t> terms, Span<const uint8_t> stems,
               Span<const int32_t> stem_of, int64_t width) {
                nb::gil_scoped_release released;
                new (self) Vocabulary{{terms, width}, {stems, width}, stem_of, width};
            },
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());
    nb::class_<Traits>(m, "Traits")
        .def(
            "__init__",
            [](Traits* self, Span<const uint8_t> terms, Span<const int64_t> bits) {
                new (self) Traits{{terms, 0}, bits};
            },
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
    nb::class_<Lexicon>(m, "Lexicon")
        .def(nb::init<const Vocabulary*, const Traits&>(), nb::arg("vocabulary").none(),
             nb::arg("traits"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("split", &Lexicon::split, Released())
        .def("tokens", &Lexicon::tokens, Released())
        .def("unfolded", [](const Lexicon& self) { return bytes_of(self.unfolded()); })
        .def("fold",
             [](Lexicon& self, nb::bytes folded, Span<const uint8_t> properties) {
                 const std::string_view lines = view_of(folded);
                 nb::gil_scoped_release released;
                 self.fold(lines, properties);
             })
        .def("unidentified", [](const Lexicon& self) { return bytes_of(self.unidentified()); })
        .def("identify", [](Lexicon& self, nb::bytes digests) { self.identify(view_of(digests)); })
        .def("unstemmed", [](const Lexicon& self) { return bytes_of(self.unstemmed()); })
        .def("stem",
             [](Lexicon& self, nb::bytes stemmed, int64_t width) {
                 const std::string_view lines = view_of(stemmed);
                 nb::gil_scoped_release released;
                 self.stem(lines, width);
             })
        .def_prop_ro("n_terms", [](const Lexicon& self) { return self.terms().size(); })
        .def_prop_ro("n_stems", [](const Lexicon& self) { return self.stems().size(); })
        .def("terms", [](const Lexicon& self) { return bytes_of(self.terms().from(0)); })
        .def("stems", [](const Lexicon& self) { return bytes_of(self.stems().from(0)); })
        .def("stem_of_term", &Lexicon::stem_of_term)
        .def("term_places", &Lexicon::term_places)
        .def("stem_places", &Lexicon::stem_places)
        .def("is_stop", &Lexicon::is_stop)
        .def("traits", &Lexicon::traits)
        .def("prefixes", &Lexicon::prefixes, Released())
        .def("grams", &Lexicon::grams, Released());
}

}  // namespace didyma
