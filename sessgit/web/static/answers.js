// What a command says of a conversation, or of all: why a file is as it is, the scratchpad, what was used.
import { Choice } from "/static/forest.js";
import { Message, Problem, clean, count, firstLine, get, go, html, moment, money, newTokens, plural, titleOf, useEffect, useLayoutEffect, useLive, useLoaded, useRef } from "/static/util.js";

const WHAT = { wrote: "wrote", read: "read, before any write", failed: "failed", named: "names the file" };
const BY = [["day", "By day"], ["project", "By project"], ["agent", "By agent"], ["model", "By model"], ["tool", "By tool"], ["session", "By conversation"]];
const KINDS = { thesis: "Thesis", tension: "Tensions", question: "Questions", claim: "Claims", insight: "Insights", evidence: "Evidence" };

/** The answer of a command, asked again after a change of the store. */
function useAnswer(values) {
  const given = Object.fromEntries(Object.entries(values).filter(([, text]) => text));
  const answer = useLoaded(() => get("/api/answer", given), JSON.stringify(given));
  useLive(answer.reload);
  return answer;
}

const asked = (name) => new URLSearchParams(location.search).get(name) || "";
const Command = ({ line }) => html`<p class="command"><code>${line}</code></p>`;
const Of = ({ id }) => id && html`<p class="facts"><a href=${`/s/${id}`}>Back to the conversation</a></p>`;

/** Which calls wrote a file, with the prompts that they came from; without a file, the files of the conversation. */
export function Why() {
  const file = asked("file"), of = asked("of");
  useEffect(() => void (document.title = `${file || "Files"} · sessgit`), [file]);
  const field = useRef();
  useLayoutEffect(() => void (!file && !of && field.current.focus()), []);
  const look = (event) => (event.preventDefault(), go(`/why?${new URLSearchParams({ file: new FormData(event.target).get("file"), ...(of && { of }) })}`));
  return html`<h1>Files</h1><${Of} id=${of} />
    <form class="filters" role="search" onSubmit=${look}>
      <input key=${file} ref=${field} type="search" name="file" aria-label="File" placeholder="A path, or the end of one, as lexer.py" value=${file} />
      <button>Show the turns that wrote it</button></form>
    ${file ? html`<${History} key=${`${file} ${of}`} file=${file} of=${of} />` : of && html`<${Files} of=${of} />`}`;
}

function Files({ of }) {
  const { value, error } = useAnswer({ command: "show", address: of });
  const { value: known, reload } = useLoaded(() => get("/api/files", { address: of }), of);
  useLive(reload);
  if (error) return html`<${Message} error=${error} />`;
  if (!value || !known) return html`<p class="quiet">Reading…</p>`;
  const { project } = value.document.session, written = new Set(known.written);
  const files = Object.entries(value.document.session.files).sort(([, a], [, b]) => (a.last < b.last ? 1 : -1));
  return html`${!files.length && html`<p class="quiet">No tool read or wrote a file.</p>`}
    ${[["Written", true], ["Only read", false]].map(([title, isWritten]) => [title, files.filter(([path]) => written.has(path) === isWritten)]).map(([title, some]) => some.length > 0 && html`<section><h2>${title}</h2>
    <ol class="plain">${some.map(([path, one]) => html`<li><a data-row href=${`/why?${new URLSearchParams({ file: path, of })}`}><code>${path.startsWith(`${project}/`) ? path.slice(project.length + 1) : path}</code></a>
      <time class="ago" datetime=${one.last}>${moment(one.last)}</time></li>`)}</ol></section>`)}`;
}

function History({ file, of }) {
  const { value, error } = useAnswer({ command: "why", file, address: of });
  const forest = useLoaded(() => get("/api/forest"), "forest");
  if (error) return html`<${Message} error=${error} />`;
  if (!value) return html`<p class="quiet">Reading…</p>`;
  const { branch, steps, elsewhere, file: path } = value.document;
  const name = (id) => titleOf(forest.value?.sessions.find((one) => one.id === id) || { name: id.slice(0, 8) });
  const place = (address) => html`<a href=${`/s/${branch}@${address}`}>${address}</a>`;
  return html`<${Command} line=${value.command} />
    <p class="facts"><code>${path}</code> · ${plural(steps.filter((one) => one.what === "wrote").length, "write")}${!of && html` · <a href=${`/s/${branch}`}><bdi>${name(branch)}</bdi></a>`}</p>
    <ol class="plain steps">${steps.map((one) => html`<li class=${one.what}>
      <a data-row href=${`/s/${branch}@${one.cell.address}`}><span class="number">${one.cell.address}</span>
        <span class="what"><b>${one.cell.operation}</b> <span class="quiet">${WHAT[one.what]}</span>${one.prompt && html` <bdi class="title">${firstLine(one.prompt)}</bdi>`}</span>
        <time class="ago" datetime=${one.cell.time}>${moment(one.cell.time)}</time></a>
      ${one.changes.map((change) => change.diff.length > 0 && html`<details><summary>${lines(change.diff)}</summary><pre class="diff"><code>${change.diff.map((line) => html`<span class=${{ "+": "added", "-": "removed" }[line[0]] || ""}>${clean(line)}\n</span>`)}</code></pre></details>`)}
      ${one.reads.length > 0 && html`<p class="quiet">had read ${one.reads.map((read, n) => html`${n > 0 && ", "}${read.file.split("/").pop()} (${place(read.address)})`)}</p>`}
      ${one.readers.length > 0 && html`<p class="quiet">read by ${one.readers.map((read, n) => html`${n > 0 && ", "}${place(read.address)}`)}</p>`}
    </li>`)}</ol>
    ${elsewhere.length > 0 && html`<p class="quiet">Also in ${elsewhere.map((id, n) => html`${n > 0 && ", "}<a href=${`/why?${new URLSearchParams({ file: path, of: id })}`}><bdi>${name(id)}</bdi></a>`)}</p>`}`;
}

const lines = (diff) => ["+", "-"].map((sign) => `${sign === "-" ? "−" : sign}${diff.filter((line) => line.startsWith(sign)).length}`).join(" ");

export function Pad({ address }) {
  const { value, error } = useAnswer({ command: "pad", address });
  useEffect(() => void (document.title = "Scratchpad · sessgit"), []);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="quiet">Reading…</p>`;
  const { id, stage, cycle, confidence, entries, next } = value.document;
  const kinds = [...new Set([...Object.keys(KINDS), ...entries.map((one) => one.kind)])].filter((kind) => entries.some((one) => one.kind === kind));
  return html`<h1>Scratchpad</h1><${Of} id=${id} /><${Command} line=${value.command} />
    <p class="facts">Stage ${stage || "none yet"} · cycle ${cycle}${confidence !== null && ` · confidence ${confidence}`}</p>
    ${!entries.length && html`<p class="quiet">The scratchpad is empty. ${next.what}: <code>${next.command}</code></p>`}
    ${kinds.map((kind) => html`<section><h2>${KINDS[kind] || kind[0].toUpperCase() + kind.slice(1)}</h2><ol class="plain">${entries.filter((one) => one.kind === kind).map((one) => html`<li>
      <bdi class="entry">${clean(one.text) || one.value}</bdi>${one.resolved && html` <span class="tag">resolved${one.answer && `: ${clean(one.answer)}`}</span>`}
      ${one.turn && html` <a class="quiet" href=${`/s/${one.session_id}@${one.turn}`}>· turn ${one.turn}</a>`}</li>`)}</ol></section>`)}`;
}

export function Stats() {
  const of = asked("of"), by = asked("by") || (of ? "model" : "day");
  const { value, error } = useAnswer({ command: "stats", by, address: of });
  useEffect(() => void (document.title = "Usage · sessgit"), []);
  const choose = (text) => go(`/stats?${new URLSearchParams({ ...(of && { of }), by: text })}`, true);
  const cost = (one) => (one.cost_usd !== null ? money(one.cost_usd) : one.cost_usd_at_least ? `≥ ${money(one.cost_usd_at_least)}` : by === "tool" ? "" : "unknown");
  const number = (n) => (n === null ? "" : n.toLocaleString("en"));
  const row = (name, one) => html`<tr><th scope="row">${name}</th><td>${number(one.turns)}</td><td>${one.tokens && count(newTokens(one.tokens))}</td><td>${number(one.calls)}</td>
    <td>${one.tools && number(Object.values(one.tools).reduce((sum, n) => sum + n, 0))}</td><td>${cost(one)}</td></tr>`;
  const name = (one) => (by === "session" ? html`<a href=${`/s/${one.key}`}><bdi>${one.title || one.key.slice(0, 8)}</bdi></a>` : one.key || `(unknown ${by})`);
  return html`<h1>Usage</h1><${Of} id=${of} />
    <form class="filters" onSubmit=${(event) => event.preventDefault()}><${Choice} label="Group" value=${by} options=${BY} onChange=${choose} /></form>
    ${error && html`<${Message} error=${error} />`}
    ${!value && !error && html`<p class="quiet">Counting…</p>`}
    ${value && html`<${Command} line=${value.command} /><div class="wide"><table class="numbers">
      <thead><tr><td></td>${["Turns", "New tokens", "Model calls", "Tool calls", "Cost"].map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
      <tbody>${value.document.rows.map((one) => row(name(one), one))}</tbody>
      <tfoot>${by !== "tool" && row("Total", value.document.total)}</tfoot></table></div>`}`;
}
