// What people think of passages.

/** Grades by query and passage, with what is known of the passage. */
export class Judgements {
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
      const passages = own.map(({ text, id, document }) =>
        document ? { id, ...document } : id === undefined ? text : { id, text },
      );
      const scores = scored ? { scores: own.map(({ score }) => score) } : {};
      return `${JSON.stringify({ query, passages, labels: own.map(({ grade }) => grade), ...scores })}\n`;
    });
  }
}
