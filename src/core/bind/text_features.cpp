#include "text/concepts.hpp"
#include "text/cues.hpp"
#include "text/overlap.hpp"
#include "text/postings.hpp"
#include "text/sequences.hpp"
#include "text/word_vectors.hpp"

#include "bind/families.hpp"
#include "bind/numpy.hpp"

namespace didyma {

using namespace text;

void bind_text_features(nb::module_ m) {
    m.attr("PLACE") = PLACE;
    m.attr("BEING") = BEING;
    m.attr("ARTICLE") = ARTICLE;
    m.attr("COPULA") = COPULA;
    m.attr("PRONOUN") = PRONOUN;

    // The arrays are kept alive as long as what looks at them.
    nb::class_<Reading>(m, "Reading")
        .def(
            "__init__",
            [](Reading* self, Span<const int32_t> terms, Span<const int32_t> stems,
               Span<const int64_t> begins, Span<const int64_t> ends, Span<const int64_t> queries,
               Span<const int64_t> bounds, Span<const int64_t> rows, Span<const bool> is_stop,
               Span<const double> term_idf, Span<const double> stem_idf) {
                new (self) Reading{terms,  stems, begins,  ends,     queries,
                                   bounds, rows,  is_stop, term_idf, stem_idf};
            },
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
            nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>(),
            nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(), nb::keep_alive<1, 10>(),
            nb::keep_alive<1, 11>());
    m.def("overlaps", &overlaps, Released());
    m.def("cues", &cues, Released());
    m.def("word_sequences", &word_sequences, Released());
    m.def("stem_sequences", &stem_sequences, Released());
    m.def("concept_cosines", &concept_cosines, Released());
    m.def("nearnesses", &nearnesses, Released());

    m.def("count_texts", &count_texts, Released());
    m.def("list_texts", &list_texts, Released());
    m.def("add_scores", &add_scores<uint8_t>, Released());
    m.def("add_scores", &add_scores<uint16_t>, Released());
    m.def("add_scores", &add_scores<uint32_t>, Released());
    m.def("add_scores", &add_scores<uint64_t>, Released());
}

}  // namespace didyma
