// Search: as one types, in all turns; a hit opens at its turn.
import { Choice } from "/static/forest.js";
import { ago, base, get, go, html, useEffect, useLoaded, useRef, useState } from "/static/util.js";

export function Search() {
  const query = new URLSearchParams(location.search).get("q") || "", place = new URLSearchParams(location.search).get("in") || "", project = new URLSearchParams(location.search).get("project") || "";
  const forest = useLoaded(() => get("/api/forest"), "forest");
  const projects = [...new Set((forest.value?.sessions || []).map((one) => one.project))].filter(Boolean).sort();
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
      get("/api/search", { q: query, project, in: place }).then(
        (value) => current && (set(value), setError(null)),
        (problem) => current && setError(problem),
      );
    }, 120);
    return () => ((current = false), clearTimeout(timer));
  }, [query, place, project]);
  const change = (values) => go(`/search?${new URLSearchParams(Object.entries({ q: query, project, in: place, ...values }).filter(([, text]) => text))}`, true);
  const results = [...(found?.conversations || []), ...(found?.hits || [])];
  return html`<h1 class="sr">Search</h1>
    <form class="filters" role="search" onSubmit=${(event) => (event.preventDefault(), document.querySelector("main [data-row]")?.focus())}>
      <input ref=${field} type="search" aria-label="Search" placeholder='words, "a phrase", begin*, this OR that, -without' value=${query} onInput=${(event) => change({ q: event.target.value })} />
      <${Choice} label="Project" value=${project} options=${[["", "All projects"], ...projects.map((one) => [one, base(one)])]} onChange=${(text) => change({ project: text })} />
      <${Choice} label="Where" value=${place} options=${[["", "Everywhere"], ["prompts", "Prompts"], ["answers", "Answers"], ["tools", "Tool calls"]]} onChange=${(text) => change({ in: text })} />
      ${found && html`<span class="quiet" role="status">${found.exact ? "" : "more than "}${found.total.toLocaleString("en")} turns</span>`}
    </form>
    ${query.trim() && !found && !error && html`<p class="quiet">Searching…</p>`}
    ${error && html`<p class="problem" role="alert">${error.message} ${error.hint}</p>`}
    ${found && !results.length && html`<p class="quiet">Nothing found.</p>`}
    <ol class="hits">${results.map((hit) => html`<li key=${hit.address || hit.id}>
      <a data-row href=${`/s/${hit.address || hit.id}${words(hit)}`}>
        <span class="what"><bdi class="title">${hit.title}</bdi> <span class="quiet">${hit.address ? `turn ${hit.turn} · ${hit.kind}${hit.left_behind ? ", left behind" : ""}` : hit.matched.join(", ")}</span></span>
        <span class="ago">${ago(hit.time || hit.updated)}</span>
        <bdi class="snippet">${marked(hit.snippet, hit.matches)}</bdi>
      </a></li>`)}</ol>`;
}

/** The words that were found, for the turn to mark. */
function words(hit) {
  if (!hit.address) return "";
  const chars = [...hit.snippet];
  return `?${new URLSearchParams({ q: [...new Set(hit.matches.map(([start, end]) => chars.slice(start, end).join("").toLowerCase()))].join(" ") })}`;
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
