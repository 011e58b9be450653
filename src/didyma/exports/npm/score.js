// Scores a row by a model that `didyma export --to json` has written. A row is an array with a number
// for each of model.columns, or an object with numbers by these names; null and NaN are missing.
export function score(model, row) {
  const value = (column) => (Array.isArray(row) ? row[column] : row[model.columns[column]]) ?? NaN;
  let total = model.constant;
  for (const { column, weight, centre, scale, low, high } of model.lines) {
    const x = Math.min(Math.max(value(column), low ?? -Infinity), high ?? Infinity);
    total += (weight * (x - centre)) / scale;
  }
  for (const { stairs, values } of model.tables) {
    total += stairs.reduce((cells, own) => cells[cell(own, value(own.column))], values);
  }
  return total;
}

// The cell of a value: by the number of edges below it, or the last one if it is missing.
function cell({ edges, cells }, x) {
  let [low, high] = [0, edges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    [low, high] = edges[middle] < x ? [middle + 1, high] : [low, middle];
  }
  return Number.isNaN(x) ? cells.at(-1) : cells[low];
}
