// The public interface of the server, as any client has it.

import { sentence } from "./words.js";

const CANDIDATES = 20; // passages of an index that are ranked
const JSON_TYPE = { "content-type": "application/json" };

/** What the server, or the way to it, has against a request. */
export class Refusal extends Error {
  constructor(message, status) {
    super(sentence(message));
    this.status = status;
  }
}

/** A passage of an index with what the model knows of its metadata. */
function withMetadata({ text, metadata = {} }, fields) {
  const known = fields.filter(({ field }) => field in metadata).map(({ field }) => [field, metadata[field]]);
  return known.length ? { ...Object.fromEntries(known), text } : text;
}

export class Server {
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

  async watch() {
    return (await this.#fetch("watch", {})).json();
  }

  /** The first passages of an index for a question, in its order. */
  async search(index, query, signal) {
    const body = JSON.stringify({ index, query, top_n: CANDIDATES, candidates: CANDIDATES });
    const response = await this.#fetch("v1/search", { method: "POST", headers: JSON_TYPE, body, signal });
    const { results } = await response.json();
    results.sort((a, b) => a.first_stage.rank - b.first_stage.rank);
    return results.map(({ id, text, first_stage, metadata }) => ({ id, text, score: first_stage.score, metadata }));
  }

  /** Keep what somebody thinks of a passage, beside those that were shown with it. */
  async judge(query, passage, label, passages) {
    const name = ({ id, text }) => (id === undefined ? text : String(id));
    const text = passage.id === undefined ? undefined : passage.text;
    const judgement = { query, document: name(passage), label, text, who: "page", shown: passages.map(name) };
    const body = JSON.stringify({ judgements: [judgement] });
    await this.#fetch("v1/judgements", { method: "POST", headers: JSON_TYPE, body });
  }

  /** The results for a question, the best first, notes on it, and how long they took. */
  async rank(model, fields, query, passages, scores, signal) {
    const documents = passages.map((own) => own.document ?? withMetadata(own, fields));
    const body = JSON.stringify({ model, query, documents, scores, explain: true });
    const began = performance.now();
    const response = await this.#fetch("v2/rerank", { method: "POST", headers: JSON_TYPE, body, signal });
    const { results, notes = [] } = await response.json();
    const roundTrip = performance.now() - began;
    const timing = /rank;dur=([\d.]+)/.exec(response.headers.get("server-timing") ?? "");
    return { results, notes, roundTrip, ranking: Number(timing?.[1]) };
  }
}
