// The frame: which view an address shows, the keyboard, and what is heard of changes.
import { Pad, Stats, Why } from "/static/answers.js";
import { Conversation } from "/static/conversation.js";
import { Dialog, act } from "/static/dialog.js";
import { Difference } from "/static/diff.js";
import { Forest, inRows } from "/static/forest.js";
import { Search } from "/static/search.js";
import { ago, copy, get, go, html, live, render, useEffect, useRef, useState } from "/static/util.js";

const KEYS = [
  ["j, k", "next and previous row"], ["[, ]", "previous and next conversation"], ["Enter", "open or fold"],
  ["/, Ctrl-K", "search"], ["u", "all conversations"], ["c", "copy the resume command"], ["f", "fork at this turn"],
  ["m", "merge"], ["r", "rename"], ["l", "label"], ["z", "operations, and undo"], ["x", "unfold or fold all turns on screen"],
  ["g, G", "first and last row"], ["?", "these keys"], ["Esc", "close"],
];
const readOnly = "readOnly" in document.documentElement.dataset;
const RESTING_MS = 20_000, CALL_MS = 45_000;

function App() {
  const [, moved] = useState(0);
  const [panel, setPanel] = useState(null);
  useEffect(() => {
    const listener = () => moved((n) => n + 1);
    addEventListener("popstate", listener);
    return () => removeEventListener("popstate", listener);
  }, []);
  useEffect(() => {
    const listener = (event) => key(event, setPanel);
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
  const [, kind, ...rest] = location.pathname.split("/").map(decodeURIComponent);
  const view = { "": Forest, s: Conversation, d: Difference, search: Search, why: Why, pad: Pad, stats: Stats }[kind];
  return html`<a class="skip" href="#main">To the content</a>
    <header class="bar"><a href="/" class="brand">sessgit</a>
      <a class="find" href="/search" aria-label="Search">Search <kbd>Ctrl K</kbd></a>
      <nav aria-label="Page"><a class="button" href="/why">Files</a><a class="button" href="/stats">Usage</a><button id="operations" onClick=${() => setPanel("operations")}>Operations</button>
        <button onClick=${() => setPanel("keys")} aria-label="Keys">?</button></nav></header>
    <main id="main" tabindex="-1"><${view} key=${[kind, ...rest.map((one) => one.split("@")[0])].join("/")} address=${rest[0]} a=${rest[0]} b=${rest[1]} readOnly=${readOnly} /></main>
    <p id="said" role="status"></p>
    ${panel && html`<${Panel} key=${panel} kind=${panel} readOnly=${readOnly} close=${() => setPanel(null)} />`}
    <${Dialog} />`;
}

function Panel({ kind, readOnly, close }) {
  const place = useRef(), [listed, set] = useState([]);
  useEffect(() => {
    place.current.showModal();
    if (kind === "operations") get("/api/operations").then((found) => set(found.operations), () => {});
  }, []);
  return html`<dialog ref=${place} aria-labelledby="panel-title" onClose=${close}>
    ${kind === "keys" && html`<h2 id="panel-title">Keys</h2><dl class="keys">${KEYS.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}</dl>`}
    ${kind === "operations" && html`<h2 id="panel-title">Operations</h2>
      ${!listed.length && html`<p class="quiet">Nothing yet.</p>`}
      <ol class="operations">${listed.map((one) => html`<li><span class="what"><b>${one.command}</b> <bdi>${one.summary}</bdi></span>
        <span class="quiet">${ago(one.time)}${one.standing !== "done" ? ` · ${one.standing}` : ""}</span>
        ${!readOnly && one.standing === "done" && html`<button onClick=${() => (place.current.close(), act("undo", { operation: one.id }, html`<b>${one.command}</b> <bdi>${one.summary}</bdi>`))}>Undo…</button>`}</li>`)}</ol>`}
    <p class="buttons"><button class="primary" onClick=${() => place.current.close()}>Close</button></p>
  </dialog>`;
}

function key(event, setPanel) {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") return void (event.preventDefault(), go("/search"));
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input, select, textarea")) return void (event.key === "Escape" && event.target.blur());
  // A block of turns that is not drawn yet is scrolled to, which draws it; the next key goes on from there.
  const rows = [...document.querySelectorAll("main :is([data-row], .block:empty)")].filter((row) => row.checkVisibility());
  const at = rows.indexOf(document.activeElement);
  const focus = (row) => row && (row.focus({ preventScroll: true }), row.scrollIntoView({ block: "nearest" }));
  const click = (selector) => document.querySelector(selector)?.click();
  const actions = {
    j: () => focus(rows[at < 0 ? firstOnScreen(rows) : Math.min(at + 1, rows.length - 1)]),
    k: () => focus(rows[at < 0 ? firstOnScreen(rows) : Math.max(at - 1, 0)]),
    g: () => focus(rows[0]),
    G: () => focus(rows.at(-1)),
    "[": () => step(-1),
    "]": () => step(1),
    "/": () => go("/search"),
    u: () => go("/"),
    c: () => { const found = document.querySelector("#resume"); if (found) copy(found.dataset.text); },
    f: () => (document.activeElement.closest?.(".row")?.querySelector("[data-fork]") || document.querySelector("#fork"))?.click(),
    m: () => click("#merge"),
    r: () => click("#rename"),
    l: () => click("#label"),
    z: () => setPanel("operations"),
    x: () => foldAll(),
    "?": () => setPanel("keys"),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

const firstOnScreen = (rows) => Math.max(0, rows.findIndex((row) => row.getBoundingClientRect().top > 60));

function foldAll() {
  const heads = [...document.querySelectorAll(".row .head")].filter((head) => {
    const { top, bottom } = head.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  });
  const opening = heads.some((head) => head.ariaExpanded === "false");
  heads.filter((head) => (head.ariaExpanded === "false") === opening).forEach((head) => head.click());
}

/** Go to the next or the previous conversation, in the order of the forest. */
async function step(by) {
  const here = decodeURIComponent(location.pathname).match(/^\/s\/([^@]+)/)?.[1];
  const ids = (await get("/api/forest")).families.flatMap((family) => inRows(family.nodes).map((node) => node.id));
  const next = ids[ids.indexOf(here) + by];
  if (here && next) go(`/s/${next}`);
}

/** Links of this page change the view without loading it again. */
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.target) return;
  event.preventDefault();
  document.querySelectorAll("dialog[open]").forEach((one) => one.close());
  go(link.getAttribute("href"));
  if (!link.getAttribute("href").includes("@")) scrollTo(0, 0);
});

const tell = (names) => live.dispatchEvent(new CustomEvent("change", { detail: names }));
const tabs = new BroadcastChannel("changes");
tabs.onmessage = (event) => document.hidden || tell(event.data);

/**
 * One tab that can be seen has the stream of events and tells the others, as a browser opens six connections to a server
 * at most; when it is closed or hidden, another one takes over. A hidden tab only says now and then that it is still there.
 */
let visit, resting;
function listen() {
  clearTimeout(resting);
  if (document.hidden) {
    visit?.abort();
    visit = null;
    const call = () => (get("/api/here").catch(() => {}), (resting = setTimeout(call, CALL_MS)));
    resting = setTimeout(call, RESTING_MS);
  } else if (!visit) {
    if (visit === null) tell(null);
    visit = new AbortController();
    follow(visit.signal);
  }
}
async function follow(signal) {
  const found = await navigator.locks.request("events", { ifAvailable: true }, (lock) => lock && hear(signal).then(() => lock));
  if (!found) navigator.locks.request("events", { signal }, () => hear(signal, true)).catch(() => {});
}
/** Have the stream until the signal; a tab that takes over lets all read again, as no tab had it for a moment. */
const hear = (signal, isTakeover = false) => new Promise((leave) => {
  if (signal.aborted) return leave();
  const stream = new EventSource("/api/events");
  const tellAll = (names) => (tell(names), tabs.postMessage(names));
  stream.addEventListener("change", (event) => tellAll(JSON.parse(event.data).branches));
  stream.addEventListener("reset", () => tellAll(null));
  if (isTakeover) stream.addEventListener("ready", () => tellAll(null));
  stream.addEventListener("error", () => stream.readyState === EventSource.CLOSED && leave());
  signal.addEventListener("abort", () => (stream.close(), leave()));
});
document.addEventListener("visibilitychange", listen);
listen();
render(html`<${App} />`, document.querySelector("#app"));
