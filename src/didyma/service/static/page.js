// The page of `didyma serve`: asks the public interface, and shows what comes of it.
// Texts of others become text nodes, never markup.

const MOVE = { duration: 700, easing: "cubic-bezier(.3, 0, .1, 1)" };
const PAUSE = 150; // milliseconds without typing, after which pasted passages are read
const MOST_MOVED = 200; // passages: more of them change places at once
const SHOWN = 10; // features in a table
const NAMED = 3; // features that are named beside a strip

// Elements

const byId = (id) => document.getElementById(id);

/** An element with properties, and texts or nodes in it. */
function make(tag, properties = {}, ...children) {
  const { dataset, attributes, ...plain } = properties;
  const found = Object.assign(document.createElement(tag), plain);
  Object.assign(found.dataset, dataset);
  for (const [name, value] of Object.entries(attributes ?? {})) found.setAttribute(name, value);
  found.append(...children);
  return found;
}

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const hidden = (text) => make("span", { className: "unseen" }, text);

// Texts

const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const signed = (amount) => `${amount < 0 ? "−" : "+"}${Math.abs(amount).toFixed(3)}`;
const rounded = (value) => String(Number(value.toPrecision(3)));
const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

/** A share as people read it; never 0 or 100, which no calibrated score is. */
function percent(share) {
  if (share < 0.01) return "<1%";
  if (share > 0.99) return ">99%";
  return `${Math.round(100 * share)}%`;
}

/** A message with a capital at its beginning and a full stop. */
function sentence(message) {
  const text = message.trim();
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}

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

// Passages that were pasted

/** The passages of a text: JSON lines, paragraphs if there are blank lines, else lines. */
function readPassages(text) {
  const plain = text.replace(/\r\n?/g, "\n").trim();
  if (plain.startsWith("{")) {
    const lines = plain.split("\n").map((line, n) => [line.trim(), n + 1]);
    return [lines.filter(([line]) => line).map(readObject), "JSON lines"];
  }
  const blocks = plain.split(/\n\s*\n/);
  const found = blocks.length > 1 ? blocks : plain.split("\n");
  const layout = blocks.length > 1 ? "separated by blank lines" : "one a line";
  return [found.filter((own) => own.trim()).map((own) => ({ text: own.trim() })), layout];
}

function readObject([line, number]) {
  const fail = (problem) => {
    throw new Error(`Line ${number}: ${problem}.`);
  };
  let value;
  try {
    value = JSON.parse(line);
  } catch {
    fail("expected a JSON object");
  }
  const text = value?.text ?? value?.passage;
  if (typeof text !== "string") fail("expected an object with a text");
  const { title, id, score } = value;
  if (score !== undefined && typeof score !== "number") fail("expected a number as score");
  const whole = typeof title === "string" && title ? `${title} ${text}` : text;
  return { text: whole, id, score };
}

// The server

/** What the server, or the way to it, has against a request. */
class Refusal extends Error {
  constructor(message, status) {
    super(sentence(message));
    this.status = status;
  }
}

class Server {
  #token = "";

  set token(value) {
    if (!/^[\x21-\x7e]+$/.test(value)) throw new Refusal("a token has no spaces and only ASCII characters");
    this.#token = value;
  }

  async #fetch(path, options) {
    const headers = { ...options.headers };
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    let response;
    try {
      response = await fetch(path, { ...options, headers, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal("the server does not answer; is it still running?");
    }
    if (response.ok) return response;
    const found = await response.json().catch(() => ({}));
    const wait = response.headers.get("retry-after");
    const again = wait === null ? "" : `; ask again in ${wait} s`;
    throw new Refusal(`${found.message ?? `the server answers ${response.status}`}${again}`, response.status);
  }

  async info() {
    return (await this.#fetch("info", {})).json();
  }

  /** The results for a question, the best first, and how long they took. */
  async rank(model, query, passages, scores, signal) {
    const documents = passages.map((own) => own.text);
    const body = JSON.stringify({ model, query, documents, scores, explain: true });
    const headers = { "content-type": "application/json" };
    const began = performance.now();
    const response = await this.#fetch("v2/rerank", { method: "POST", headers, body, signal });
    const { results } = await response.json();
    const roundTrip = performance.now() - began;
    const timing = /rank;dur=([\d.]+)/.exec(response.headers.get("server-timing") ?? "");
    return { results, roundTrip, ranking: Number(timing?.[1] ?? NaN) };
  }
}

// Why a passage is where it is

/**
 * What sets each result apart from the mean passage of the list, by feature, the greatest first:
 *     raw − mean raw = Σ (amount − mean amount)
 * What all passages have in common, such as the intercept, moves none of them.
 */
function reasons(results) {
  const means = new Map();
  for (const { explanation } of results) {
    for (const { name, amount } of explanation.contributions) {
      means.set(name, (means.get(name) ?? 0) + amount / results.length);
    }
  }
  const mean = results.reduce((sum, own) => sum + own.explanation.raw, 0) / results.length;
  return results.map(({ explanation }) => {
    const parts = explanation.contributions.map(({ name, amount, value }) => ({
      name,
      value,
      amount: amount - means.get(name),
    }));
    parts.sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount));
    return { parts, mean, raw: explanation.raw };
  });
}

const total = (parts) => parts.reduce((sum, part) => sum + part.amount, 0);

/** The greatest parts, and one for all others. */
function shortened(parts, most) {
  const others = parts.slice(most);
  const rest = { name: `${others.length} others`, amount: total(others) };
  return others.length > 1 ? [...parts.slice(0, most), rest] : parts;
}

const way = (amount) => (amount < 0 ? "down" : "up");

/** How far a strip of parts reaches to its longer side. */
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

/** Which parts move a passage most, in words. */
function mainReasons(parts) {
  const named = parts.slice(0, NAMED).filter((part) => part.amount);
  return named.flatMap(({ name, amount }) => [
    make("span", { className: `reason ${way(amount)}` }, hidden(`${way(amount)}: `), name),
    " ",
  ]);
}

/** Every part with its bar, and their sum. */
function table({ parts, mean, raw }) {
  const shown = shortened(parts, SHOWN);
  const longest = Math.max(...shown.map((part) => Math.abs(part.amount)));
  const rows = shown.map(({ name, amount, value }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, name),
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
  const head = ["feature", "value", "", "adds"].map((name) => make("th", { scope: "col" }, name));
  return [
    make(
      "table",
      { className: "parts" },
      make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...rows, sum),
    ),
    make("p", { className: "quiet" }, `Raw score ${raw.toFixed(3)}; the mean here is ${mean.toFixed(3)}.`.replaceAll("-", "−")),
  ];
}

// Judgements

/** Grades by query and passage, with what is known of the passage. */
class Judgements {
  #queries = new Map();
  saved = true;

  get(query, passage) {
    return this.#queries.get(query)?.get(passage.text)?.grade;
  }

  /** Give a grade, or take it back if it is given already. */
  toggle(query, passage, grade) {
    const own = this.#queries.get(query) ?? new Map();
    if (this.get(query, passage) === grade) own.delete(passage.text);
    else own.set(passage.text, { ...passage, grade });
    if (own.size) this.#queries.set(query, own);
    else this.#queries.delete(query);
    this.saved = this.#queries.size === 0;
  }

  get counts() {
    const lists = [...this.#queries.values()].map((own) => [...own.values()]);
    const mixed = lists.some(
      (own) => own.some(({ grade }) => grade > 0) && own.some(({ grade }) => grade === 0),
    );
    return { queries: lists.length, passages: lists.flat().length, mixed };
  }

  /** JSON lines as `didyma rerank fit` reads them; scores only if every passage came with one. */
  lines() {
    const lists = [...this.#queries].map(([query, own]) => [query, [...own.values()]]);
    const scored = lists.every(([, own]) => own.every(({ score }) => score !== undefined));
    return lists.map(([query, own]) => {
      const passages = own.map(({ text, id }) => (id === undefined ? text : { id, text }));
      const scores = scored ? { scores: own.map(({ score }) => score) } : {};
      return `${JSON.stringify({ query, passages, labels: own.map(({ grade }) => grade), ...scores })}\n`;
    });
  }
}

// What is shown

/** A passage in a column: its ranks, its text, its score, why, and how it is judged. */
class Card {
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

  show(rank, result, reason, longest) {
    this.after = rank;
    const risen = this.place + 1 - rank;
    this.moved.className = `moved ${risen > 0 ? "up" : risen < 0 ? "down" : ""}`;
    this.moved.replaceChildren(
      make("span", { ariaHidden: "true" }, risen > 0 ? `▲ ${risen}` : risen < 0 ? `▼ ${-risen}` : "="),
      make("span", { className: "was" }, `was ${this.place + 1}`),
    );
    this.text.replaceChildren(...marked(this.passage.text, result.explanation.spans));
    const summary = make(
      "summary",
      {},
      hidden("Why? "),
      strip(shortened(reason.parts, NAMED), longest),
      make("span", { className: "reasons" }, ...mainReasons(reason.parts)),
    );
    const details = make("details", {}, summary);
    details.addEventListener("toggle", () => {
      if (details.open && details.lastChild === summary) details.append(...table(reason));
    });
    this.why.replaceChildren(details);
  }

  cut(value, threshold) {
    this.element.classList.toggle("below", threshold !== undefined && value < threshold);
    this.score.replaceChildren(...score(value, threshold));
  }

  judged(grade, grades) {
    const focused = this.judge.contains(document.activeElement)
      ? document.activeElement.dataset.grade
      : undefined;
    const names = grades === 2 ? ["not", "relevant"] : Array.from({ length: grades }, (_, n) => String(n));
    const buttons = names.map((name, n) => {
      const pressed = grade === undefined ? false : Math.min(grade, grades - 1) === n;
      return make("button", { type: "button", ariaPressed: String(pressed), dataset: { grade: n } }, name);
    });
    this.judge.replaceChildren(...(grades === 2 ? buttons.reverse() : buttons));
    if (focused !== undefined) this.judge.querySelector(`[data-grade="${focused}"]`)?.focus();
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

/** The passages as one model ranks them. */
class Column {
  constructor(passages, judge) {
    this.cards = passages.map((passage, place) => new Card(passage, place, judge));
    this.head = make("div", { className: "column-head" });
    this.line = make("li", { className: "line" });
    this.list = make("ol", { className: "passages", role: "list" });
    this.list.append(...this.cards.map((card) => card.element));
    this.element = make("section", { className: "column" }, this.head, this.list);
  }

  show(name, about, answer, precision) {
    Object.assign(this, { about, results: answer.results, ranked: true });
    this.element.setAttribute("aria-label", `Ranked by ${name}`);
    this.head.replaceChildren(
      make("h3", {}, name),
      make("span", { className: "timing" }, `${milliseconds(answer.ranking)} to rank and explain`),
      make("span", { className: "timing" }, `${milliseconds(answer.roundTrip)} round trip`),
      make("p", { className: "verdict quiet" }, about.verdict),
    );
    const why = reasons(this.results);
    const longest = Math.max(...why.map(({ parts }) => reach(shortened(parts, NAMED))));
    this.results.forEach((result, n) => {
      this.cards[result.index].show(n + 1, result, why[n], longest);
    });
    this.cut(precision);
  }

  /** Grey what is below the threshold for a precision, and say what that means. */
  cut(precision) {
    const found = this.about.thresholds.find((own) => own.asked === precision);
    for (const { index, relevance_score } of this.results) {
      this.cards[index].cut(relevance_score, found?.score);
    }
    this.line.replaceChildren();
    if (found) {
      this.kept = this.results.filter((own) => own.relevance_score >= found.score).length;
      const least = percent(found.score);
      this.line.append(
        make("strong", {}, this.kept ? `Below ${least}.` : `Nothing here answers: no passage reaches ${least}.`),
        ` Of held-out passages above it ${percent(found.precision)} were relevant, and ${percent(found.answered)} of queries had one.`,
      );
    }
    this.order(this.ranked);
  }

  /** Put the cards in order, ranked or as given; those that change places are seen to move. */
  order(ranked) {
    this.ranked = ranked;
    const still = isStill() || this.cards.length > MOST_MOVED;
    const before = still ? [] : this.cards.map((card) => card.element.getBoundingClientRect().top);
    const order = ranked ? this.results.map((own) => this.cards[own.index]) : this.cards;
    for (const card of order) card.rank.textContent = String(ranked ? card.after : card.place + 1);
    const elements = order.map((card) => card.element);
    if (ranked && this.line.hasChildNodes()) elements.splice(this.kept, 0, this.line);
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

// The page as a whole

class Page {
  server = new Server();
  judgements = new Judgements();
  models = {};
  columns = [];
  query = "";

  async start() {
    byId("ask").addEventListener("submit", (event) => this.#submitted(event));
    byId("ask").addEventListener("change", (event) => this.#changed(event.target));
    byId("pasted").addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.#read(), PAUSE);
    });
    byId("pasted").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("ask").requestSubmit();
    });
    byId("token-form").addEventListener("submit", (event) => this.#authorised(event));
    byId("orders").addEventListener("click", (event) => this.#ordered(event.target.dataset.order));
    byId("columns").addEventListener("keydown", (event) => walk(event));
    byId("export").addEventListener("click", () => this.#export());
    window.addEventListener("beforeunload", (event) => {
      if (!this.judgements.saved) event.preventDefault();
    });
    this.example = await (await fetch("page/example.json")).json();
    this.#suggest();
    this.#read();
    await this.#connect();
  }

  /** Ask what is served, and for a token if one is needed. */
  async #connect() {
    await this.#trying(async () => {
      const info = await this.server.info();
      byId("token-form").hidden = true;
      this.models = info.models;
      const names = Object.keys(info.models);
      options(byId("model"), names.map((name) => [name, name]), info.model_id);
      options(byId("beside"), [["", "none"], ...names.map((name) => [name, name])], "");
      byId("model-choice").hidden = byId("beside-choice").hidden = names.length < 2;
      this.#offerThresholds();
    });
  }

  /** Do something, and show as a sentence what goes wrong. */
  async #trying(work) {
    const alert = byId("alert");
    alert.hidden = true;
    try {
      await work();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 401) {
        byId("token-form").hidden = false;
        byId("token").focus();
      }
      if (error.status !== 401 || this.asked) {
        alert.textContent = error.message;
        alert.hidden = false;
      }
    }
    this.asked = true;
  }

  async #authorised(event) {
    event.preventDefault();
    await this.#trying(async () => {
      this.server.token = byId("token").value.trim();
      byId("token").value = "";
      await this.#connect();
    });
  }

  get #chosen() {
    const names = [byId("model").value, byId("beside").value].filter(Boolean);
    return [...new Set(names)];
  }

  get #precision() {
    return Number(byId("precision").value) || undefined;
  }

  #suggest() {
    const buttons = this.example.queries.map((query) => make("button", { type: "button" }, query));
    for (const button of buttons) {
      button.addEventListener("click", () => {
        byId("query").value = button.textContent;
        byId("ask").requestSubmit();
      });
    }
    byId("suggestions").replaceChildren(...buttons);
  }

  /** Read the passages of the chosen source, and show them in their order. */
  #read() {
    clearTimeout(this.typing);
    this.typing = undefined;
    const own = new FormData(byId("ask")).get("source") === "own";
    byId("own").hidden = !own;
    byId("suggestions").hidden = own;
    this.passages = [];
    if (!own) this.passages = this.example.passages.map((text) => ({ text }));
    else {
      const note = byId("pasted-note");
      note.classList.remove("wrong");
      try {
        const [passages, layout] = readPassages(byId("pasted").value);
        this.passages = passages;
        note.textContent = passages.length ? `${count(passages.length, "passage")}, ${layout}.` : "";
      } catch (error) {
        note.textContent = error.message;
        note.classList.add("wrong");
      }
    }
    this.#lay(1);
    byId("orders").hidden = true;
    byId("status").textContent = "";
  }

  #lay(n) {
    const judge = (passage, grade) => {
      this.judgements.toggle(this.query, passage, grade);
      this.#judge();
    };
    this.columns = Array.from({ length: n }, () => new Column(this.passages, judge));
    byId("columns").replaceChildren(...this.columns.map((column) => column.element));
    byId("columns").classList.toggle("two", n > 1);
  }

  #changed(target) {
    if (target.name === "source") this.#read();
    if (target.id === "precision") for (const column of this.#answered) column.cut(this.#precision);
    if (target.id === "scale") this.#judge();
    if (target.id === "model" || target.id === "beside") {
      this.#offerThresholds();
      if (this.#answered.length) byId("ask").requestSubmit();
    }
  }

  get #answered() {
    return this.columns.filter((column) => column.results);
  }

  #offerThresholds() {
    const known = this.#chosen.flatMap((name) => this.models[name].thresholds.map((own) => own.asked));
    const precisions = [...new Set(known)].sort();
    const field = byId("precision");
    const listed = precisions.map((value) => [String(value), `${percent(value)} precision`]);
    options(field, [["", precisions.length ? "none" : "none is known"], ...listed], field.value);
    field.disabled = !precisions.length;
  }

  async #submitted(event) {
    event.preventDefault();
    if (this.typing) this.#read();
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const query = byId("query").value.trim();
    byId("columns").setAttribute("aria-busy", "true");
    await this.#trying(async () => {
      if (!this.passages.length) throw new Refusal("there are no passages yet: paste some");
      this.models = (await this.server.info()).models;
      const names = this.#chosen;
      const answers = [];
      for (const name of names) {
        const scores = this.#scores(this.models[name]);
        answers.push(await this.server.rank(name, query, this.passages, scores, signal));
      }
      this.query = query;
      if (this.columns.length !== names.length) this.#lay(names.length);
      this.columns.forEach((column, n) => {
        column.show(names[n], this.models[names[n]], answers[n], this.#precision);
      });
      this.#judge();
      this.#tell(names, answers);
    });
    if (this.asking.signal === signal) byId("columns").removeAttribute("aria-busy");
  }

  /** The first stage's scores for a model that needs them; places in the list if there are none. */
  #scores(model) {
    if (!model?.uses_scores) return undefined;
    return this.passages.map(({ score }, n) => (this.#scored ? score : 1 / (n + 1)));
  }

  get #scored() {
    return this.passages.every(({ score }) => score !== undefined);
  }

  #tell(names, answers) {
    this.#pressOrder("ranked");
    byId("orders").hidden = false;
    const best = answers.map(({ results }) => `number ${results[0].index + 1}`);
    const text =
      names.length === 1
        ? `${count(this.passages.length, "passage")}; the best was ${best[0]}.`
        : `${count(this.passages.length, "passage")}; the best was ${best[0]} for ${names[0]}, ${best[1]} for ${names[1]}.`;
    const standIn = !this.#scored && names.some((name) => this.models[name]?.uses_scores);
    const note = " The model was trained with scores of a first stage, and these passages have none: 1 / place stands for them.";
    byId("status").textContent = text + (standIn ? note : "");
    const head = byId("results-title").getBoundingClientRect();
    if (head.top > 0.7 * innerHeight) byId("results").scrollIntoView({ behavior: isStill() ? "auto" : "smooth" });
  }

  #pressOrder(order) {
    for (const button of byId("orders").children) {
      button.ariaPressed = String(button.dataset.order === order);
    }
  }

  #ordered(order) {
    if (!order) return;
    this.#pressOrder(order);
    for (const column of this.#answered) column.order(order === "ranked");
  }

  /** Show all judgements as they are now. */
  #judge() {
    const grades = Number(byId("scale").value);
    for (const column of this.#answered) {
      for (const card of column.cards) card.judged(this.judgements.get(this.query, card.passage), grades);
    }
    const { queries, passages, mixed } = this.judgements.counts;
    byId("judged").hidden = !passages;
    byId("judged-count").textContent = `${count(passages, "judgement")} of ${count(queries, "question")}.`;
    byId("judged-note").textContent = mixed
      ? "didyma rerank fit judgements.jsonl learns from them."
      : "To learn, one question at least needs a passage that is relevant and one that is not.";
  }

  #export() {
    const file = new Blob(this.judgements.lines(), { type: "application/jsonl" });
    const href = URL.createObjectURL(file);
    make("a", { href, download: "judgements.jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
    this.judgements.saved = true;
  }
}

function options(field, listed, chosen) {
  field.replaceChildren(...listed.map(([value, text]) => make("option", { value }, text)));
  if (listed.some(([value]) => value === chosen)) field.value = chosen;
}

/** Up and down go to the same control of the passage above or below. */
function walk(event) {
  const step = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
  const card = event.target.closest(".card");
  if (!step || !card || event.altKey || event.ctrlKey || event.metaKey) return;
  let other = card[step];
  if (other && !other.matches(".card")) other = other[step];
  const controls = (own) => [...own.querySelectorAll("summary, button")];
  const target = other && controls(other)[controls(card).indexOf(event.target)];
  if (!target) return;
  event.preventDefault();
  target.focus();
}

await new Page().start();
