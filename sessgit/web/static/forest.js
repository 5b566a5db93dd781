// The forest: a lane for each conversation, along which its turns go; forks and rewinds leave it, merges come back.
import { Problem, ago, base, get, go, html, money, plural, short, titleOf, useEffect, useLive, useLoaded, useMemo, useNear, useRef, useState } from "/static/util.js";

const ROW = 40, DAY = 864e5, FAMILIES = 150;
export const TIMES = { "": "Any time", 1: "Today", 7: "7 days", 30: "30 days", 90: "90 days" };

export function useNarrow() {
  const query = matchMedia("(max-width: 48rem)");
  const [narrow, set] = useState(query.matches);
  useEffect(() => {
    const listener = () => set(query.matches);
    query.addEventListener("change", listener);
    return () => query.removeEventListener("change", listener);
  }, []);
  return narrow;
}

export function Forest() {
  const { value, error, reload } = useLoaded(() => get("/api/forest"), "forest");
  useLive(reload);
  const [most, setMost] = useState(FAMILIES);
  const asked = new URLSearchParams(location.search);
  const set = (name, text) => {
    if (text || name === "project") asked.set(name, text);
    else asked.delete(name);
    go(`/?${asked}`, true);
  };
  const sessions = useMemo(() => new Map((value?.sessions || []).map((one) => [one.id, one])), [value]);
  useEffect(() => void (document.title = "Conversations · sessgit"), []);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="quiet">Loading…</p>`;
  const projects = [...new Set(value.sessions.map((one) => one.project))].filter(Boolean).sort();
  const labels = [...new Set(value.sessions.flatMap((one) => one.labels))].sort();
  const started = projects.includes(value.project) ? value.project : "";
  const filter = {
    text: (asked.get("q") || "").toLowerCase(),
    project: asked.has("project") ? asked.get("project") : started,
    label: asked.get("label") || "",
    days: asked.get("time") || "",
    show: asked.get("show") || "",
  };
  const families = value.families.filter((family) => family.nodes.some((node) => fits(node, sessions, filter)));
  const groups = new Map();
  for (const family of families) {
    const project = sessions.get(family.root)?.project || "";
    if (!groups.has(project)) groups.set(project, []);
    groups.get(project).push(family);
  }
  let room = most;
  for (const [project, list] of groups) {
    groups.set(project, list.slice(0, room));
    room = Math.max(0, room - list.length);
    if (!groups.get(project).length) groups.delete(project);
  }
  const total = families.reduce((sum, family) => sum + family.nodes.filter((n) => n.kind === "session").length, 0);
  return html`<h1 class="sr">Conversations</h1>
    <form class="filters" role="search" aria-label="Filter" onSubmit=${(event) => event.preventDefault()}>
      <input type="search" aria-label="Filter by title" placeholder="Filter by title, prompt or id" value=${asked.get("q") || ""}
        onInput=${(event) => set("q", event.target.value)} />
      <${Choice} label="Project" value=${filter.project} onChange=${(text) => set("project", text)}
        options=${[["", "All projects"], ...projects.map((one) => [one, base(one)])]} />
      ${labels.length > 0 && html`<${Choice} label="Label" value=${filter.label} onChange=${(text) => set("label", text)}
        options=${[["", "Any label"], ...labels.map((one) => [one, one])]} />`}
      <${Choice} label="Time" value=${filter.days} onChange=${(text) => set("time", text)} options=${Object.entries(TIMES)} />
      <${Choice} label="Show" value=${filter.show} onChange=${(text) => set("show", text)}
        options=${[["", "Without archived"], ["archived", "With archived"], ["all", "Everything"]]} />
      <span class="quiet">${plural(total, "conversation")}</span>
    </form>
    ${!families.length && html`<p class="quiet">${value.sessions.length ? "No conversation fits." : "Nothing is recorded yet."}
      ${filter.text && html` <a data-row href=${`/search?${new URLSearchParams({ q: asked.get("q") })}`}>Search what was said</a>`}</p>`}
    ${[...groups].map(([project, list]) => html`<section key=${project} aria-label=${project || "no project"}>
      ${!filter.project && html`<h2 class="project"><bdi title=${project}>${short(project, value.home) || "no project"}</bdi></h2>`}
      ${list.map((family) => html`<${Family} key=${family.root} family=${family} sessions=${sessions} current=${value.current} />`)}
    </section>`)}
    ${families.length > most && html`<${More} left=${families.length - most} more=${() => setMost(most + 2 * FAMILIES)} />`}`;
}

/** Draws more families once it is near the screen, or when it is pressed. */
function More({ left, more }) {
  const place = useRef();
  useNear(place, more, left);
  return html`<p><button data-row ref=${place} onClick=${more}>Show ${left.toLocaleString("en")} more</button></p>`;
}

function fits(node, sessions, filter) {
  const session = sessions.get(node.id);
  if (!session) return false;
  const words = [node.name, node.title, node.first_words, node.id, ...session.labels].join("\n").toLowerCase();
  return (
    words.includes(filter.text) &&
    (!filter.project || session.project === filter.project) &&
    (!filter.label || session.labels.includes(filter.label)) &&
    (!filter.days || Date.now() - new Date(node.updated) < filter.days * DAY) &&
    (filter.show || !node.archived) &&
    (filter.show === "all" || (!session.headless && node.turns > 0))
  );
}

export function Choice({ label, value, options, onChange }) {
  return html`<select aria-label=${label} value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
  </select>`;
}

/** The node on whose lane a fork's last shared turn is: its parent, or an ancestor. */
function origin(node, known) {
  let from = known.get(node.parent);
  while (from && known.has(from.parent) && from.fork_turn > node.fork_turn) from = known.get(from.parent);
  return from;
}

/** The nodes of a family in an order in which no lane crosses another: the forks of a lane that leave it last come first. */
export function inRows(nodes) {
  const known = new Map(nodes.map((node) => [node.id, node])), forks = new Map();
  for (const node of nodes) {
    const from = origin(node, known)?.id;
    forks.set(from, [...(forks.get(from) || []), node]);
  }
  const below = (id) => (forks.get(id) || []).sort((a, b) => b.fork_turn - a.fork_turn).flatMap((node) => [node, ...below(node.id)]);
  return below(undefined);
}

export function Family({ family, sessions, current, here }) {
  const narrow = useNarrow();
  const nodes = inRows(family.nodes);
  return html`<div class="family">
    <${Lanes} nodes=${nodes} width=${narrow ? 72 : 200} row=${narrow ? 56 : ROW} here=${here} />
    <ol>${nodes.map((node) => html`<${Row} key=${node.id} node=${node} session=${sessions?.get(node.id)}
      current=${node.id === current} here=${node.id === here} />`)}</ol>
  </div>`;
}

function Row({ node, session, current, here }) {
  const kind = { rewound: "left behind by a rewind", machine: "another version" }[node.kind];
  const title = kind || node.name || node.title || (node.parent && node.first_words) || titleOf(session || node);
  const turns = node.parent && node.kind === "session" ? `${node.own_turns} of ${plural(node.turns, "turn")}` : plural(node.own_turns, "turn");
  return html`<li class=${`node ${node.kind} ${node.archived ? "archived" : ""}`}>
    <a data-row href=${`/s/${node.id}`} aria-current=${here ? "true" : null}>
      <span class="what">
        ${node.live && html`<b class="tag live">live</b> `}${current && html`<b class="tag">current</b> `}
        <bdi class="title" title=${title}>${title}</bdi>
        ${node.first_words && !title.startsWith(node.first_words.replace(/…$/, "")) && html` <bdi class="words">${node.first_words}</bdi>`}
      </span>
      <span class="meta">
        ${session?.labels.map((label) => html`<span class="tag">#${label}</span>`)}
        ${node.archived && html`<span class="tag">archived</span>`}
        <span class="count">${turns}</span><span class="cost">${money(node.own_cost_usd)}</span>
        <span class="ago">${ago(node.updated)}</span>
      </span>
    </a>
  </li>`;
}

/** Draw the lanes: a turn is as far to the right as its number's logarithm, so that 3 and 3,000 turns both show. */
function Lanes({ nodes, width, row, here }) {
  const end = (node) => (node.kind === "session" ? node.turns : node.fork_turn + node.own_turns);
  const most = Math.max(8, ...nodes.map(end));
  const x = (turn) => 8 + ((width - 24) * Math.log2(1 + turn)) / Math.log2(1 + most);
  const place = new Map(nodes.map((node, number) => [node.id, number * row + row / 2]));
  const known = new Map(nodes.map((node) => [node.id, node]));
  let arcs = 0;  // each bends further than the last one, so that they do not cover each other
  const shapes = nodes.map((node) => {
    const y = place.get(node.id), from = place.get(origin(node, known)?.id);
    const start = x(from === undefined ? 0 : node.fork_turn || 0), stop = Math.max(x(end(node)), start + 14);
    const path = from === undefined ? `M${start} ${y}H${stop}` : `M${start} ${from}V${y - 8}Q${start} ${y} ${start + 8} ${y}H${stop}`;
    const merges = node.merged_into
      .filter((merge) => place.has(merge.session_id))
      .map((merge) => {
        const to = x(merge.turn), above = place.get(merge.session_id), bend = Math.max(to, stop) + 6 + 3 * (arcs++ % 5);
        return html`<path class="merge" d=${`M${stop} ${y}C${bend} ${y} ${bend} ${above} ${to} ${above}`} />`;
      });
    const kind = `${node.kind} ${node.archived ? "archived" : ""} ${node.id === here ? "here" : ""}`;
    const dot = html`<circle class=${kind} cx=${stop} cy=${y} r=${node.kind === "session" ? 4 : 3} />`;
    return [html`<g class=${kind}><path d=${path} />${merges}</g>`, dot];
  });
  const [lines, dots] = [0, 1].map((part) => shapes.map((shape) => shape[part]).reverse());
  return html`<svg class="lanes" width=${width} height=${nodes.length * row} aria-hidden="true">${lines}${dots}</svg>`;
}
