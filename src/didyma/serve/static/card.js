// A passage with all that is known of it.

import { make } from "./elements.js";
import { explained } from "./reasons.js";
import { percent } from "./words.js";

/** A text with its matched spans marked; spans count code points. */
function marked(text, spans) {
  const points = Array.from(text);
  const parts = [];
  let last = 0;
  for (const { start, stop, kind, matched } of spans) {
    const title = `matches ${matched.join(", ")}${kind === "stem" ? " by its stem" : ""}`;
    const inside = points.slice(start, stop).join("");
    parts.push(points.slice(last, start).join(""), make("mark", { className: kind, title }, inside));
    last = stop;
  }
  return [...parts, points.slice(last).join("")];
}

/** A passage in a column: its ranks, its text, its score, why, and how it is judged. */
export class Card {
  constructor(passage, place, judge) {
    Object.assign(this, { passage, place });
    this.rank = make("span", { className: "rank" }, String(place + 1));
    this.moved = make("span", { className: "moved" });
    this.text = make("p", { className: "text", dir: "auto" }, passage.text);
    this.why = make("div", { className: "why" });
    this.score = make("div", { className: "score" });
    this.judge = make("div", {
      className: "judge",
      role: "group",
      ariaLabel: `Judge the passage that was number ${place + 1}`,
    });
    this.judge.addEventListener("click", (event) => {
      const grade = event.target.closest("button")?.dataset.grade;
      if (grade !== undefined) judge(passage, Number(grade));
    });
    this.element = make(
      "li",
      { className: "card" },
      make("div", { className: "ranks" }, this.rank, this.moved),
      make("div", { className: "body" }, this.text, this.why),
      make("div", { className: "side" }, this.score, this.judge),
    );
  }

  /** Take in what a model says of the passage. */
  show(rank, result, reason, longest) {
    this.after = rank;
    const risen = this.place + 1 - rank;
    this.moved.className = `moved ${risen > 0 ? "up" : risen < 0 ? "down" : ""}`;
    this.moved.replaceChildren(
      make("span", { ariaHidden: "true" }, risen > 0 ? `▲ ${risen}` : risen < 0 ? `▼ ${-risen}` : "="),
      make("span", { className: "was" }, `was ${this.place + 1}`),
    );
    this.text.replaceChildren(...marked(this.passage.text, result.explanation.spans));
    this.why.replaceChildren(explained(reason, longest));
  }

  /** Show the score, and whether it is below a threshold. */
  cut(value, threshold) {
    this.element.classList.toggle("below", threshold !== undefined && value < threshold);
    this.score.replaceChildren(...score(value, threshold));
  }

  /** Offer so many grades, of which one may have been given. */
  judged(given, grades) {
    if (this.judge.children.length !== grades) {
      const names = grades === 2 ? ["not", "relevant"] : Array.from({ length: grades }, (_, n) => n);
      const buttons = names.map((name, grade) =>
        make("button", { type: "button", dataset: { grade } }, String(name)),
      );
      this.judge.replaceChildren(...(grades === 2 ? buttons.reverse() : buttons));
    }
    for (const button of this.judge.children) {
      button.ariaPressed = String(Number(button.dataset.grade) === Math.min(given ?? NaN, grades - 1));
    }
  }
}

/** A score in figures and as a bar, with the threshold as a tick. */
function score(value, threshold) {
  const bar = make("span", { className: "bar" });
  bar.style.width = `${100 * value}%`;
  const meter = make("span", { className: "meter", ariaHidden: "true" }, bar);
  if (threshold !== undefined) {
    const tick = make("span", { className: "tick" });
    tick.style.left = `${100 * threshold}%`;
    meter.append(tick);
  }
  const figure = make("strong", {}, percent(value));
  return [make("span", { className: "figure", title: value.toFixed(4) }, figure, " likely"), meter];
}
