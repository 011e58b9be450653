// Passages as people paste them.

/** The passages of a text: JSON lines, paragraphs if there are blank lines, else lines. */
export function readPassages(text) {
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
  const { title, id, score, ...others } = value;
  if (score !== undefined && typeof score !== "number") fail("expected a number as score");
  const whole = typeof title === "string" && title ? `${title} ${text}` : text;
  const document = title === undefined && Object.keys(others).length === 1 ? undefined : { title, ...others };
  return { text: whole, id, score, document };
}
