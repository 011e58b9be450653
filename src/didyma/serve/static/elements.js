// Elements are made here, and nowhere from markup: texts of others become text nodes.

export const byId = (id) => document.getElementById(id);

/** An element with properties, and texts or nodes in it. */
export function make(tag, properties = {}, ...children) {
  const { dataset, attributes, ...plain } = properties;
  const found = Object.assign(document.createElement(tag), plain);
  Object.assign(found.dataset, dataset);
  for (const [name, value] of Object.entries(attributes ?? {})) found.setAttribute(name, value);
  found.append(...children);
  return found;
}

export const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
export const hidden = (text) => make("span", { className: "unseen" }, text);
