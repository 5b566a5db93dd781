// Search: as one types, in all turns; a hit opens at its turn.
import { Choice, TIMES } from "/static/forest.js";
import { Message, ago, base, get, go, html, useEffect, useLayoutEffect, useLoaded, useRef, useState } from "/static/util.js";

export function Search() {
  const asked = Object.fromEntries(["q", "project", "in", "label", "file", "days"].map((name) => [name, new URLSearchParams(location.search).get(name) || ""]));
  const { q: query, file } = asked, isEmpty = !query.trim() && !file.trim();
  const forest = useLoaded(() => get("/api/forest"), "forest");
  const projects = [...new Set((forest.value?.sessions || []).map((one) => one.project))].filter(Boolean).sort();
  const labels = [...new Set((forest.value?.sessions || []).flatMap((one) => one.labels))].sort();
  const [found, set] = useState(null), [error, setError] = useState(null);
  const field = useRef();
  useLayoutEffect(() => {  // before the next key
    document.title = "Search · sessgit";
    field.current.focus();
  }, []);
  useEffect(() => {
    if (isEmpty) return void set(null);
    let current = true;
    const timer = setTimeout(() => {
      get("/api/search", asked).then(
        (value) => current && (set(value), setError(null)),
        (problem) => current && setError(problem),
      );
    }, 120);
    return () => ((current = false), clearTimeout(timer));
  }, [JSON.stringify(asked)]);
  const change = (values) => go(`/search?${new URLSearchParams(Object.entries({ ...asked, ...values }).filter(([, text]) => text))}`, true);
  const results = [...(found?.conversations || []), ...(found?.hits || [])];
  return html`<h1 class="sr">Search</h1>
    <form class="filters" role="search" onSubmit=${(event) => (event.preventDefault(), document.querySelector("main [data-row]")?.focus())}>
      <input ref=${field} type="search" aria-label="Search" placeholder='words, "a phrase", begin*, this OR that, -without' value=${query} onInput=${(event) => change({ q: event.target.value })} />
      <${Choice} label="Project" value=${asked.project} options=${[["", "All projects"], ...projects.map((one) => [one, base(one)])]} onChange=${(text) => change({ project: text })} />
      <${Choice} label="Where" value=${asked.in} options=${[["", "Everywhere"], ["prompts", "Prompts"], ["answers", "Answers"], ["tools", "Tool calls"]]} onChange=${(text) => change({ in: text })} />
      ${labels.length > 0 && html`<${Choice} label="Label" value=${asked.label} options=${[["", "Any label"], ...labels.map((one) => [one, one])]} onChange=${(text) => change({ label: text })} />`}
      <${Choice} label="Time" value=${asked.days} options=${Object.entries(TIMES)} onChange=${(text) => change({ days: text })} />
      <button hidden>Search</button>
      <input class="narrow" aria-label="File" placeholder="File, as lexer.py" value=${file} onInput=${(event) => change({ file: event.target.value })} />
      ${found && html`<span class="quiet" role="status">${found.exact ? "" : "more than "}${found.total.toLocaleString("en")} turns</span>`}
    </form>
    ${!isEmpty && !found && !error && html`<p class="quiet">Searching…</p>`}
    ${error && html`<${Message} error=${error} />`}
    ${found?.searched && found.searched !== query && results.length > 0 && html`<p class="quiet">No match for whole words; found with <code>${found.searched}</code>.</p>`}
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
