// A list of passages that can be seen to reorder.

import { Card } from "./card.js";
import { isStill, make } from "./elements.js";
import { reasons } from "./reasons.js";
import { milliseconds, percent } from "./words.js";

const MOVE = { duration: 700, easing: "cubic-bezier(.3, 0, .1, 1)" };
const MOST_MOVED = 200; // passages: more of them change places at once

/** The passages as one model ranks them. */
export class Column {
  constructor(passages, judge) {
    this.cards = passages.map((passage, place) => new Card(passage, place, judge));
    this.head = make("div", { className: "column-head" });
    this.line = make("li", { className: "line" });
    this.list = make("ol", { className: "passages", role: "list" });
    this.list.append(...this.cards.map((card) => card.element));
    this.element = make("section", { className: "column" }, this.head, this.list);
  }

  /** Take in a model's answer. */
  show(name, about, answer, precision) {
    Object.assign(this, { name, about, results: answer.results, ranked: true });
    this.element.setAttribute("aria-label", `Ranked by ${name}`);
    const times = { "to rank and explain": answer.ranking, "round trip": answer.roundTrip };
    const known = Object.entries(times).filter(([, value]) => value); // a proxy may hide the first
    this.head.replaceChildren(
      make("h3", {}, name),
      ...known.map(([of, value]) => make("span", { className: "timing" }, `${milliseconds(value)} ${of}`)),
      make("p", { className: "verdict quiet" }, about.verdict),
      ...answer.notes.map((note) => make("p", { className: "note quiet" }, `${note}.`)),
    );
    const why = reasons(this.results);
    const longest = Math.max(...why.map((own) => own.reach));
    this.results.forEach((result, n) => {
      this.cards[result.index].show(n + 1, result, why[n], longest);
    });
    this.cut(precision);
  }

  /** Grey what is below the threshold for a precision, and say what that means. */
  cut(precision) {
    const found = this.about.thresholds.find((own) => own.asked === precision);
    const chance = ({ probability, relevance_score }) => probability ?? relevance_score;
    for (const result of this.results) this.cards[result.index].cut(chance(result), found?.score);
    this.kept = this.results.filter((own) => chance(own) >= found?.score).length;
    // The order need not be that of chances: those that reach may stand between others.
    this.isCut = this.results.slice(0, this.kept).every((own) => chance(own) >= found?.score);
    this.line.replaceChildren(...(precision ? this.#meaning(precision, found) : []));
    this.order(this.ranked);
  }

  #meaning(precision, found) {
    if (!found) return [`No score of ${this.name} has a precision of ${percent(precision)}.`];
    const least = percent(found.score);
    const some = this.isCut ? `Below ${least}.` : `${this.kept} of ${this.results.length} reach ${least}.`;
    const all = this.kept === this.results.length ? `All reach ${least}.` : some;
    return [
      make("strong", {}, this.kept ? all : `Nothing here answers: no passage reaches ${least}.`),
      ` Of held-out passages above it ${percent(found.precision)} were relevant,`,
      ` and ${percent(found.answered)} of queries had one.`,
    ];
  }

  /** Put the cards in order, ranked or as given; those that change places are seen to move. */
  order(ranked) {
    this.ranked = ranked;
    const still = isStill() || this.cards.length > MOST_MOVED;
    const before = still ? [] : this.cards.map((card) => card.element.getBoundingClientRect().top);
    const order = ranked ? this.results.map((own) => this.cards[own.index]) : this.cards;
    for (const card of order) card.rank.textContent = String(ranked ? card.after : card.place + 1);
    const elements = order.map((card) => card.element);
    if (ranked && this.line.hasChildNodes()) elements.splice(this.isCut ? this.kept : 0, 0, this.line);
    const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
    this.list.replaceChildren(...elements);
    focused?.focus({ preventScroll: true });
    if (still) return;
    this.cards.forEach((card, n) => {
      const by = before[n] - card.element.getBoundingClientRect().top;
      const zIndex = by > 0 ? 2 : 1; // what rises passes over what falls
      const frames = [{ transform: `translateY(${by}px)`, zIndex }, { transform: "none", zIndex }];
      if (by) card.element.animate(frames, MOVE);
    });
  }
}
