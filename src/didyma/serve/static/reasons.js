// Why a passage is where it is: what its features add, as bars.

import { hidden, make } from "./elements.js";
import { rounded, signed } from "./words.js";

const SHOWN = 10; // features in a table
const NAMED = 3; // features in a strip, and named beside it
const LEAST = 0.0005; // amounts below it would be shown as 0

/**
 * What sets each result apart from the mean passage of the list, by feature, the greatest first:
 *     raw − mean raw = Σ (amount − mean amount)
 * What all passages have in common, such as the intercept, moves none of them.
 */
export function reasons(results) {
  const means = new Map();
  for (const { explanation } of results) {
    for (const { name, amount } of explanation.contributions) {
      means.set(name, (means.get(name) ?? 0) + amount / results.length);
    }
  }
  const mean = results.reduce((sum, own) => sum + own.explanation.raw, 0) / results.length;
  return results.map(({ explanation }) => {
    const parts = explanation.contributions.map(({ name, words, amount, value }) => ({
      name,
      words: words ?? name,
      value,
      amount: amount - means.get(name),
    }));
    parts.sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));
    return { parts, mean, raw: explanation.raw, reach: reach(shortened(parts, NAMED)) };
  });
}

const total = (parts) => parts.reduce((sum, part) => sum + part.amount, 0);

/** The greatest parts, and one for all others. */
function shortened(parts, most) {
  const others = parts.slice(most);
  const rest = { words: `${others.length} others`, amount: total(others) };
  return others.length > 1 ? [...parts.slice(0, most), rest] : parts;
}

const way = (amount) => (amount < 0 ? "down" : "up");

/** How far a strip of parts goes to its longer side. */
function reach(parts) {
  const up = total(parts.filter((part) => part.amount > 0));
  return Math.max(up, up - total(parts));
}

/** Parts end to end, from the middle to either side. */
function strip(parts, longest) {
  const ends = { up: 50, down: 50 };
  const track = make("span", { className: "strip", ariaHidden: "true" });
  for (const { amount } of parts.filter((part) => part.amount)) {
    const piece = make("span", { className: way(amount) });
    const size = (50 * Math.abs(amount)) / longest;
    piece.style.width = `${size}%`;
    piece.style[amount < 0 ? "right" : "left"] = `${ends[way(amount)]}%`;
    ends[way(amount)] += size;
    track.append(piece);
  }
  return track;
}

/** The main parts as a strip and in words; opened, a table of more. `longest` is the longest reach. */
export function explained(reason, longest) {
  const named = reason.parts.slice(0, NAMED).filter((part) => part.amount);
  const names = named.flatMap(({ words, amount }) => [
    make("span", { className: `reason ${way(amount)}` }, hidden(`${way(amount)}: `), words),
    " ",
  ]);
  const summary = make(
    "summary",
    {},
    hidden("Why? "),
    strip(shortened(reason.parts, NAMED), longest),
    make("span", { className: "reasons" }, ...names),
  );
  const details = make("details", {}, summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.lastChild === summary) details.append(...table(reason));
  });
  return details;
}

/** Parts with their bars, and the sum of all. */
function table({ parts, mean, raw }) {
  const visible = parts.filter(({ amount }) => Math.abs(amount) >= LEAST).length;
  const shown = shortened(parts, Math.min(SHOWN, Math.max(1, visible)));
  const longest = Math.max(...shown.map((part) => Math.abs(part.amount)));
  const rows = shown.map(({ name = "", words, amount, value }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", title: name }, words),
      make("td", { className: "value" }, value == null ? "" : rounded(value)),
      make("td", { className: "drawn" }, strip([{ amount }], longest)),
      make("td", { className: "amount" }, signed(amount)),
    ),
  );
  const sum = make(
    "tr",
    { className: "sum" },
    make("th", { scope: "row", colSpan: 3 }, "above or below the mean passage here"),
    make("td", { className: "amount" }, signed(total(parts))),
  );
  const head = ["what counts", "value", "", "adds"].map((name) => make("th", { scope: "col" }, name));
  return [
    make(
      "table",
      { className: "parts" },
      make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...rows, sum),
    ),
    make("p", { className: "quiet" }, `Raw score ${signed(raw)}; the mean here is ${signed(mean)}.`),
  ];
}
