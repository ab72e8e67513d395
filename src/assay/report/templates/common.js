"use strict";
// What every page uses. Text only ever becomes a text node: nothing here makes markup of data.

const data = name => JSON.parse(document.getElementById(name).textContent);
const pick = selector => document.querySelector(selector);

/** An element: make("td", {class: "num"}, "text", otherElement). Nothings are left out. */
function make(tag, given, ...children) {
  const found = document.createElement(tag);
  for (const [key, value] of Object.entries(given || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) found.addEventListener(key.slice(2), value);
    else found.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat())
    if (child !== null && child !== undefined && child !== false && child !== "") found.append(child);
  return found;
}

/** A number with at most three decimals, yes and no, or the text as it is. */
function shown(value) {
  if (value === null || value === undefined) return "–";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value !== "number") return String(value);
  return String(Math.round(value * 1000) / 1000).replace("-", "−");
}

/** Any value as text: texts as they are, lists of texts by blank lines, the rest as JSON. */
function asText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.length && value.every(item => typeof item === "string"))
    return value.join("\n\n");
  return JSON.stringify(value, null, 2);
}

/** A named value; long lists are numbered. */
function field(name, value) {
  const body = make("div", {class: "field"}, make("div", {class: "name"}, name));
  const texts = Array.isArray(value) && value.length > 1 && value.every(v => typeof v === "string");
  for (const [place, item] of (texts ? value : [value]).entries()) {
    const plain = typeof item === "string" || typeof item === "number";
    if (texts) body.append(make("div", {class: "small"}, String(place + 1)));
    const text = plain ? String(item) : asText(item);
    body.append(clamped(make("div", {class: plain ? "text" : "value-text", dir: "auto"}, text), text));
  }
  return body;
}

/** A long text shows its start until it is asked for. */
function clamped(element, text) {
  if (text.length < 900 && text.split("\n").length < 14) return element;
  element.classList.add("long");
  const more = make("button", {type: "button", class: "more", onclick: () => {
    element.classList.remove("long");
    more.remove();
  }}, "Show all");
  return make("div", {}, element, more);
}

function theme() {
  const button = pick("#theme"), root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const now = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const show = () => { button.textContent = now() === "dark" ? "Light" : "Dark"; };
  try { // a page opened from a folder may have no store
    const kept = localStorage.getItem("assay-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* the system's choice, then */ }
  button.addEventListener("click", () => {
    root.dataset.theme = now() === "dark" ? "light" : "dark";
    try { localStorage.setItem("assay-theme", root.dataset.theme); } catch { /* this time only */ }
    show();
  });
  system.addEventListener("change", show);
  show();
}

/** The panel at the side: one thing at a time; Esc closes it and gives the focus back. */
const panel = {
  root: pick("#panel"),
  isOpen: () => !panel.root.hidden,
  open(title, body, buttons) {
    const close = make("button", {type: "button", class: "close", onclick: panel.close}, "Close");
    panel.root.replaceChildren(
      make("header", {}, make("h2", {id: "panel-title", dir: "auto"}, title), buttons, close), body);
    panel.root.hidden = false;
    panel.root.scrollTop = 0;
    panel.root.focus({preventScroll: true});
  },
  close() {
    panel.root.hidden = true;
    panel.root.replaceChildren();
    panel.onclose();
  },
  onclose() {},
};

addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details.made:first-of-type, details.legend")) part.open = true;
});

theme();
