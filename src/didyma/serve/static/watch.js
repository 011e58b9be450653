// What the server was asked: drift by day, probabilities, shadow models.

import { make } from "./elements.js";
import { count, percent } from "./words.js";

const DAYS = 7; // that are shown

function row(name, ...values) {
  return make("tr", {}, make("th", { scope: "row" }, name), ...values.map((value) => make("td", {}, value)));
}

function share(part, whole) {
  return whole ? `${percent(part / whole)} of ${whole}` : "none yet";
}

/** Bars, one for each range of probabilities, as high as its share of the highest. */
function histogram({ bounds, counts }) {
  const most = Math.max(1, ...counts);
  const bars = bounds.map((bound, n) => {
    const low = n ? bounds[n - 1] : 0;
    const title = `${low} to ${bound}: ${count(counts[n], "document")}`;
    const bar = make("span", { title });
    bar.style.setProperty("--share", counts[n] / most);
    return bar;
  });
  const label = bounds.map((bound, n) => `up to ${bound}: ${counts[n]}`).join(", ");
  const drawn = make("div", { className: "histogram", role: "img", ariaLabel: `Probabilities: ${label}` }, ...bars);
  return make("div", {}, drawn, make("p", { className: "quiet" }, "Documents by probability, from 0 to 1."));
}

function days(found) {
  if (!found.length) return make("p", { className: "quiet" }, "No query was looked at yet.");
  const told = found.slice(0, DAYS).flatMap(({ day, version, n_queries, verdict }) => [
    make("dt", {}, `${day}, ${count(n_queries, "query", "queries")} to ${version}`),
    make("dd", {}, `Compared with training: ${verdict}.`),
  ]);
  return make("dl", {}, ...told);
}

function numbers(own) {
  const rows = [
    row("answers", String(own.answers)),
    row("without a document", share(own.empty, own.answers)),
    row("words not seen in training", share(own.unseen_words, own.words)),
    ...own.above.map(({ precision, answers }) =>
      row(`with a document above the threshold of ${percent(precision)} precision`, share(answers, own.answers)),
    ),
    ...Object.entries(own.imputed).map(([signal, n]) => row(`without ${signal}`, count(n, "document"))),
    ...Object.entries(own.teacher).filter(([, n]) => n).map(([outcome, n]) => row(`teacher: ${outcome}`, String(n))),
  ];
  if (own.shadow) {
    const { requests, displaced_tops, overlap, correlation } = own.shadow;
    rows.push(row("shadow model: another first", share(displaced_tops, requests)));
    rows.push(row("shadow model: of the first ten the same", percent(overlap.mean)));
    if (correlation.mean !== null) rows.push(row("shadow model: correlation of ranks", correlation.mean.toFixed(2)));
  }
  return make("table", {}, make("tbody", {}, ...rows));
}

/** A section for each model. */
export function watched({ models }) {
  return Object.entries(models).map(([name, own]) =>
    make("section", {}, make("h3", {}, name), days(own.days), histogram(own.probabilities), numbers(own)),
  );
}
