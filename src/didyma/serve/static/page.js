// The page of `didyma serve` as a whole: what is asked, of what, and what comes of it.

import { Column } from "./column.js";
import { byId, isStill, make } from "./elements.js";
import { Judgements } from "./judgements.js";
import { readPassages } from "./passages.js";
import { Refusal, Server } from "./server.js";
import { watched } from "./watch.js";
import { count, percent } from "./words.js";

const FAR = 0.7; // of the screen's height: results that begin below are scrolled to
const PAUSE = 150; // milliseconds without typing, after which pasted passages are read

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
    byId("columns").addEventListener("keydown", walk);
    for (const event of ["pointerover", "focusin"]) {
      byId("columns").addEventListener(event, ({ target }) => this.#pointOut(target.closest(".card")));
    }
    byId("watch").addEventListener("toggle", () => this.#watch());
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
      this.keepsJudgements = info.judgements;
      const names = Object.keys(info.models);
      options(byId("model"), names.map((name) => [name, name]), info.model_id);
      options(byId("beside"), [["", "none"], ...names.map((name) => [name, name])], "");
      this.#offerIndexes(Object.keys(info.indexes));
      byId("model-choice").hidden = byId("beside-choice").hidden = names.length < 2;
      this.#offerThresholds();
    });
  }

  /** Show what was asked so far, when somebody wants to know. */
  async #watch() {
    if (!byId("watch").open) return;
    await this.#trying(async () => byId("watched").replaceChildren(...watched(await this.server.watch())));
  }

  /** Indexes are further sources of passages. */
  #offerIndexes(names) {
    for (const old of byId("sources").querySelectorAll("[data-index]")) old.remove();
    for (const index of names) {
      const choice = make("input", { type: "radio", name: "source", value: `index ${index}` });
      byId("sources").append(make("label", { dataset: { index } }, choice, make("span", {}, index)));
    }
  }

  /** The index that is asked, if it is one. */
  get #index() {
    return byId("sources").querySelector("label:has(:checked)")?.dataset.index;
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
    this.asking?.abort(); // its answer would be one to other passages
    const source = new FormData(byId("ask")).get("source");
    byId("own").hidden = source !== "own";
    byId("suggestions").hidden = source !== "example";
    this.passages = [];
    if (source === "example") this.passages = this.example.passages.map((text) => ({ text }));
    if (source === "own") {
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
    byId("results-title").textContent = "Passages";
    byId("orders").hidden = true;
    byId("status").textContent = "";
  }

  /** Lay the passages out in so many columns, as they were given. */
  #lay(n) {
    const judge = (passage, grade) => {
      this.judgements.toggle(this.query, passage, grade);
      this.#judge();
      if (this.keepsJudgements) void this.#keep(passage);
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

  /** Mark a passage in all columns, to be seen in both orders. */
  #pointOut(element) {
    const cards = this.columns.flatMap((column) => column.cards);
    const place = cards.find((card) => card.element === element)?.place;
    for (const card of cards) card.element.classList.toggle("pointed", card.place === place);
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
      this.models = (await this.server.info()).models;
      const names = this.#chosen;
      if (!names.length) throw new Refusal("this server has no model to rank by");
      if (this.#index !== undefined) {
        this.passages = await this.server.search(this.#index, query, signal);
        this.#lay(names.length);
        if (!this.passages.length) throw new Refusal("no passage of the index has a word of the question");
      }
      if (!this.passages.length) throw new Refusal("there are no passages yet: paste some");
      const answers = [];
      for (const name of names) {
        if (!(name in this.models)) throw new Refusal(`the server has no ${name} now: load this page again`);
        const scores = this.#scores(this.models[name]);
        const { fields } = this.models[name];
        answers.push(await this.server.rank(name, fields, query, this.passages, scores, signal));
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
    if (!model.uses_scores) return undefined;
    return this.passages.map(({ score }, n) => (this.#scored ? score : 1 / (n + 1)));
  }

  get #scored() {
    return this.passages.every(({ score }) => score !== undefined);
  }

  /** Say what was found, where it can be seen. */
  #tell(names, answers) {
    byId("results-title").textContent = `“${this.query}”`;
    this.#pressOrder("ranked");
    byId("orders").hidden = false;
    const places = answers.map(({ results }) => `number ${results[0].index + 1}`);
    const best = places.length > 1 ? places.map((place, n) => `${place} for ${names[n]}`) : places;
    const said = [`${count(this.passages.length, "passage")}; the best was ${best.join(", ")}.`];
    if (!this.#scored && names.some((name) => this.models[name].uses_scores)) {
      said.push("The model wants scores of a first stage, which these passages lack: 1 / place stands for them.");
    }
    byId("status").textContent = said.join(" ");
    const { top } = byId("results-title").getBoundingClientRect();
    const behavior = isStill() ? "auto" : "smooth";
    if (top > FAR * innerHeight) byId("results").scrollIntoView({ behavior });
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

  /** Send a judgement, or that it is taken back, to the server's store. */
  async #keep(passage) {
    const query = this.query;
    const label = this.judgements.get(query, passage) ?? null;
    await this.#trying(async () => {
      await this.server.judge(query, passage, label, this.passages);
      this.judgements.saved = true;
      byId("judged-note").textContent = "The server keeps them.";
    });
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
