// Search: as one types, in all turns; a hit opens at its turn.
import { ago, get, go, html, useEffect, useRef, useState } from "/static/util.js";

export function Search() {
  const query = new URLSearchParams(location.search).get("q") || "", place = new URLSearchParams(location.search).get("in") || "";
  const [found, set] = useState(null), [error, setError] = useState(null);
  const field = useRef();
  useEffect(() => {
    document.title = "Search · sessgit";
    field.current.focus();
  }, []);
  useEffect(() => {
    if (!query.trim()) return void set(null);
    let current = true;
    const timer = setTimeout(() => {
      get("/api/search", { q: query, project: "", in: place }).then(
        (value) => current && (set(value), setError(null)),
        (problem) => current && setError(problem),
      );
    }, 120);
    return () => ((current = false), clearTimeout(timer));
  }, [query, place]);
  const change = (q, where) => go(`/search?${new URLSearchParams({ q, ...(where ? { in: where } : {}) })}`, true);
  const results = [...(found?.conversations || []), ...(found?.hits || [])];
  return html`<h1 class="sr">Search</h1>
    <form class="filters" role="search" onSubmit=${(event) => (event.preventDefault(), document.querySelector("main [data-row]")?.focus())}>
      <input ref=${field} type="search" aria-label="Search" placeholder='words, "a phrase", begin*, this OR that, -without' value=${query} onInput=${(event) => change(event.target.value, place)} />
      <select aria-label="Where" value=${place} onChange=${(event) => change(query, event.target.value)}>
        ${[["", "Everywhere"], ["prompts", "Prompts"], ["answers", "Answers"], ["tools", "Tool calls"]].map(([key, text]) => html`<option value=${key}>${text}</option>`)}</select>
      ${found && html`<span class="quiet" role="status">${found.exact ? "" : "more than "}${found.total.toLocaleString("en")} turns</span>`}
    </form>
    ${query.trim() && !found && !error && html`<p class="quiet">Searching…</p>`}
    ${error && html`<p class="problem" role="alert">${error.message} ${error.hint}</p>`}
    ${found && !results.length && html`<p class="quiet">Nothing found.</p>`}
    <ol class="hits">${results.map((hit) => html`<li key=${hit.address || hit.id}>
      <a data-row href=${`/s/${hit.address || hit.id}`}>
        <span class="what"><bdi class="title">${hit.title}</bdi> <span class="quiet">${hit.address ? `turn ${hit.turn} · ${hit.kind}${hit.left_behind ? ", left behind" : ""}` : hit.matched.join(", ")}</span></span>
        <span class="ago">${ago(hit.time || hit.updated)}</span>
        <bdi class="snippet">${marked(hit.snippet, hit.matches)}</bdi>
      </a></li>`)}</ol>`;
}

/** The snippet with its matches marked; their places count characters, not UTF-16 units. */
function marked(text, spans) {
  const chars = [...text], parts = [];
  let at = 0;
  for (const [start, end] of spans) {
    parts.push(chars.slice(at, start).join(""), html`<mark>${chars.slice(start, end).join("")}</mark>`);
    at = end;
  }
  return [...parts, chars.slice(at).join("")];
}
