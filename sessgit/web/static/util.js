// Requests, formats and hooks that all views share.
export * from "/static/vendor/htm-preact.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "/static/vendor/htm-preact.js";

/** Get a document. Rejects with an Error that has the command's message and hint. */
export async function get(path, values = {}) {
  return answer(await fetch(`${path}?${new URLSearchParams(values)}`));
}

/** Run a command: mode "show" only returns its line, "dry-run" changes nothing. */
export async function run(command, values, mode = "run") {
  const body = JSON.stringify({ command, values, mode });
  const headers = { "Content-Type": "application/json", "X-Sessgit": "1" };
  return answer(await fetch("/api/run", { method: "POST", headers, body }));
}

async function answer(response) {
  const document = await response.json();
  if (!response.ok) throw Object.assign(new Error(document.error.message), { hint: document.error.hint });
  return document;
}

/**
 * What a promise of `load` gives, loaded again when `key` changes or after `reload()`; the old value stays meanwhile, and
 * `load` gets it. A burst of changes is read once while it lasts and once after it.
 */
export function useLoaded(load, key) {
  const [state, set] = useState({ key, value: null, error: null });
  const [count, again] = useState(0);
  const reading = useRef(false), isStale = useRef(false);
  const reload = () => (reading.current ? (isStale.current = true) : again((n) => n + 1));
  const own = state.key === key ? state : { value: null, error: null };
  // Before the browser paints: an effect after it would ask a frame later.
  useLayoutEffect(() => {
    let current = true;
    reading.current = true;
    isStale.current = false;
    load(own.value).then(
      (value) => current && set({ key, value, error: null }),
      (error) => current && set((old) => ({ key, value: old.key === key ? old.value : null, error })),
    ).finally(() => {
      if (!current) return;
      reading.current = false;
      if (isStale.current) reload();
    });
    return () => (current = false);
  }, [key, count]);
  return { ...own, reload };
}

export const live = new EventTarget();
/** Call `back` with the names of changed branches, or with null if any may have changed. */
export function useLive(back) {
  useEffect(() => {
    const listener = (event) => back(event.detail);
    live.addEventListener("change", listener);
    return () => live.removeEventListener("change", listener);
  });
}

/** Call `back` when the element of `place` comes near the screen; look anew when `key` changes. */
export function useNear(place, back, key) {
  useEffect(() => {
    // A jump right after the first look leaves two entries, and only the second is near.
    const look = (entries) => entries.some((entry) => entry.isIntersecting) && back();
    const observer = new IntersectionObserver(look, { rootMargin: "900px" });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [key]);
}

/** What is shown instead of a view that could not be read. */
export const Problem = ({ error }) => html`<h1 class="sr">Problem</h1><${Message} error=${error} />`;
/** What went wrong, and the hint. */
export const Message = ({ error }) => html`<p class="problem" role="alert">${error.message.replace(/^./u, (first) => first.toUpperCase()).replace(/[^.?!]$/, "$&.")} ${error.hint}</p>`;
export const sessionOf = (branch) => branch.split(".r-")[0].split(".m-")[0];
export const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
export const money = (n) => (n === null || n === undefined ? "" : n && n < 0.01 ? "<$0.01" : `$${n.toFixed(2)}`);
export const newTokens = (t) => t.input + t.output + t.cache_write;
export function count(n) {
  return n < 1000 ? `${n}` : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k` : `${(n / 1e6).toFixed(1)}M`;
}
export function ago(text) {
  if (!text) return "";
  const then = new Date(text), minutes = (Date.now() - then) / 60000;
  if (minutes < 1) return "now";
  if (minutes < 60) return `${Math.floor(minutes)} min ago`;
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ago`;
  if (minutes < 10080) return `${Math.floor(minutes / 1440)} d ago`;
  const year = then.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return then.toLocaleDateString("en-GB", { day: "numeric", month: "short", year });
}
export const moment = (text) => (text ? text.slice(0, 16).replace("T", " ") : "");
/** A text without control characters, escape sequences of terminals, and overrides of the text's direction. */
export const clean = (text) => (text || "")
  .replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)/g, "")
  .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
/** The name of a session, else its title, else its first prompt, as `ls` has it. */
export const titleOf = (session) => session.name || session.title || firstLine(session.first_prompt) || "(no prompt yet)";
export const firstLine = (text) => clean(text).trim().split("\n", 1)[0].replace(/\*\*|`|^#+ /g, "");
export const short = (path, home) => (`${path}/`.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path);
export const base = (path) => path.replace(/\/+$/, "").split("/").pop() || path || "no project";

/** Go to an address of this page. */
export function go(address, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}

let saying;
/** Say a sentence at the bottom of the page, also to screen readers. */
export function say(text) {
  const place = document.querySelector("#said");
  place.textContent = text;
  clearTimeout(saying);
  saying = setTimeout(() => (place.textContent = ""), 4000);
}
export async function copy(text) {
  await navigator.clipboard.writeText(text);
  say(`Copied: ${text}`);
}
