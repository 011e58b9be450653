/** A model that `didyma export --to json` has written. */
export interface Model {
  format: "didyma";
  version: number;
  name: string;
  columns: string[];
  constant: number;
  lines: Line[];
  tables: Table[];
}

/** What a column adds: weight · (min(max(x, low), high) − centre) / scale. */
export interface Line {
  column: number;
  weight: number;
  centre: number;
  scale: number;
  low: number | null;
  high: number | null;
}

/** What the cells of one column, or of two, add. */
export interface Table {
  stairs: Stairs[];
  values: number[] | number[][];
}

/** Cell `cells[k]` if k edges are below x, and the last one if x is missing. */
export interface Stairs {
  column: number;
  edges: number[];
  cells: number[];
}

/** Numbers in the order of `model.columns`, or by these names; null and NaN are missing values. */
export type Row = ReadonlyArray<number | null> | Readonly<Record<string, number | null>>;

/** The score of a row; NaN if a linear model misses a value. */
export function score(model: Model, row: Row): number;
