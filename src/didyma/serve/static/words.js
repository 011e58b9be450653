// Numbers and messages in words.

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
export const signed = (amount) => `${amount < 0 ? "−" : "+"}${Math.abs(amount).toFixed(3)}`;
export const rounded = (value) => String(Number(value.toPrecision(3)));
export const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : value.toFixed()} ms`;

/** A share as people read it; 0 and 100 only if it is that. */
export function percent(share) {
  if (share > 0 && share < 0.01) return "<1%";
  if (share > 0.99 && share < 1) return ">99%";
  return `${Math.round(100 * share)}%`;
}

/** A message with a capital at its beginning and a full stop. */
export function sentence(message) {
  const text = message.trim();
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
