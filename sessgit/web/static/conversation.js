// One conversation: a row for each turn, what left it and came back between the rows, and any turn in full.
import { Family } from "/static/forest.js";
import { act } from "/static/dialog.js";
import {
  Message, Problem, ago, base, copy, count, firstLine, get, html, moment, money, newTokens, plural, sessionOf, titleOf, useEffect, useLayoutEffect,
  useLive, useLoaded, useMemo, useNear, useRef, useState,
} from "/static/util.js";

export function Conversation({ address, readOnly }) {
  const [id, at] = address.split("@");
  const turn = at ? Number(at.split(".")[0]) : 0, cell = at?.split(".")[1];
  const { value, error, reload } = useLoaded((old) => get("/api/conversation", { address: id, turn: old ? 0 : turn || 1 }), id);
  useLive(reload);
  const [open, setOpen] = useState(() => new Set(turn ? [turn] : []));
  useEffect(() => setOpen((old) => (turn && !old.has(turn) ? new Set([...old, turn]) : old)), [turn]);
  const seen = useMemo(() => (value ? Number(localStorage.getItem(`seen ${value.session.id}`) ?? value.session.turns) : Infinity), [id, !value]);
  useEffect(() => {
    if (!value) return;
    document.title = `${titleOf(value.session)} · sessgit`;
    localStorage.setItem(`seen ${value.session.id}`, value.session.turns);
  }, [value]);
  if (error && !value) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="quiet">Loading…</p>`;
  const { session } = value, [family] = value.families, ends = Object.keys(value.commits).map(Number);
  const toggle = (number) => setOpen((old) => new Set(old.has(number) ? [...old].filter((n) => n !== number) : [...old, number]));
  const node = family?.nodes.find((one) => one.id === session.id);
  const own = session.id === sessionOf(session.id);
  const labels = session.labels.map((label) => html` <span class="tag">#${label}</span>`);
  return html`<header class="heading">
      <h1 dir="auto">${titleOf(session)}</h1>
      <p class="facts"><code>${value.short}</code>${node?.live && html` · <b class="tag live">live</b>`} · <span title=${session.project}>${base(session.project)}</span>
        ${session.git_branch && html` · ${session.git_branch}`} · ${plural(session.turns, "turn")} · ${count(newTokens(session.tokens))} tokens
        ${session.cost_usd !== null && html` · ${money(session.cost_usd)}`} · <time datetime=${session.updated} title=${session.updated}>${ago(session.updated)}</time>
        ${labels}${session.archived && html` <span class="tag">archived</span>`}</p>
      ${session.description && html`<p class="description" dir="auto">${session.description}</p>`}
      <div class="actions">
        ${value.resume && html`<button id="resume" data-text=${value.resume} title=${value.resume} onClick=${() => copy(value.resume)}>Copy resume command</button>`}
        ${!readOnly && html`<button id="fork" onClick=${() => act("fork", { address: session.id })}>Fork…</button>
          ${own && html`<button id="merge" onClick=${() => act("merge", { into: session.id })}>Merge…</button>
          <button id="rename" onClick=${() => act("rename", { address: session.id, name: session.name })}>Rename…</button>
          <button id="label" onClick=${() => act("edit", { address: session.id }, labels.length > 0 && html`Now: ${labels}`)}>Label…</button>
          <button id="archive" onClick=${() => act(session.archived ? "unarchive" : "archive", { address: session.id })}>${session.archived ? "Unarchive…" : "Archive…"}</button>`}`}
        <a class="button" href=${`/why?of=${session.id}`}>Files</a>
        <a class="button" href=${`/pad/${session.id}`}>Scratchpad</a>
        <a class="button" href=${`/stats?of=${session.id}`}>Usage</a>
        ${session.parent && html`<a class="button" href=${`/d/${session.parent}/${session.id}`}>Compare with its origin</a>`}
      </div>
    </header>
    ${family && family.nodes.length > 1 && html`<details class="relatives" open><summary>Family</summary>
      <${Family} family=${family} sessions=${new Map(value.sessions.map((one) => [one.id, one]))} here=${session.id} /></details>`}
    <ol class="turns" aria-label="Turns">
      <${Between} after=${0} value=${value} />
      ${ends.map((last, n) => html`<${Block} key=${n} first=${(ends[n - 1] || 0) + 1} last=${last} value=${value} open=${open} toggle=${toggle}
        isAtEnd=${n === 0 || n === ends.length - 1} seen=${seen} asked=${turn} cell=${cell} readOnly=${readOnly} />`)}
    </ol>`;
}

/**
 * Some turns. They are drawn and read once they are near the screen; until then there is room for as many rows. The first
 * and the last ones are always there, for the keys g and G. What was known of a turn stays until the block is read again.
 */
function Block({ first, last, value, open, toggle, isAtEnd, seen, asked, cell, readOnly }) {
  const place = useRef();
  const id = value.session.id, commit = value.commits[last], numbers = Array.from({ length: last - first + 1 }, (_, n) => first + n);
  const [near, setNear] = useState(false);
  const [read, setRead] = useState(value.turns[0]?.turn === first ? { commit, turns: value.turns } : { turns: [] });
  useNear(place, () => setNear(true));
  useLayoutEffect(() => {
    if (near && read.commit !== commit) get("/api/turns", { address: id, first, last }).then(({ turns }) => setRead({ commit, turns }), () => {});
  }, [near, commit]);
  if (!near && !isAtEnd && !numbers.some((number) => number === asked || open.has(number)))
    return html`<li class="block" ref=${place} style=${{ "--rows": numbers.length }}></li>`;
  return html`<li class="block" ref=${place}><ol>
    ${numbers.map((number) => html`<${Turn} key=${number} number=${number} more=${read.turns[number - first]} id=${id} isNew=${number > seen}
        isOpen=${open.has(number)} toggle=${toggle} isAsked=${number === asked} cell=${cell} readOnly=${readOnly} />
      <${Between} key=${`after ${number}`} after=${number} value=${value} />`)}
  </ol></li>`;
}

function Turn({ number, more, id, isNew, isOpen, toggle, isAsked, cell, readOnly }) {
  const place = useRef();
  useEffect(() => {
    if (isAsked && !cell) place.current.scrollIntoView();
  }, [isAsked]);
  const tools = Object.entries(more?.tools || {}).map(([name, calls]) => `${name.split("__").pop()}${calls > 1 ? ` ${calls}` : ""}`);
  const address = `${id}@${number}`, tokens = more && count(newTokens(more.tokens));
  return html`<li class=${`row ${isOpen ? "open" : ""} ${isNew ? "new" : ""}`} ref=${place} id=${`row-${number}`}>
    ${more?.compacted && html`<p class="between">The conversation so far was compacted to a summary here.</p>`}
    <button class="head" data-row data-turn=${number} aria-expanded=${isOpen} onClick=${() => toggle(number)}>
      <span class="number">${number}</span>
      <span class="what">
        <bdi class="title" title=${more?.title}>${more && (more.title || "(no text)")}</bdi>${isNew && html` <b class="tag live">new</b>`}
        ${!isOpen && html`<bdi class="words">${firstLine(more?.answer)}</bdi>`}
      </span>
      ${more && html`<span class="meta"><span class="tools" title=${tools.join(", ")}>${tools.join(", ")}</span>
        <span class="files">${more.files > 0 && plural(more.files, "file")}</span><span class="cost" title=${`${tokens} tokens`}>${money(more.cost_usd) || `${tokens} tok`}</span>
        <time class="ago" datetime=${more.time} title=${moment(more.time)}>${ago(more.time)}</time></span>`}
    </button>
    ${isOpen && html`<div class="full">
      <div class="actions">
        <button onClick=${() => copy(`${location.origin}/s/${address}`)}>Copy link</button>
        ${!readOnly && html`<button data-fork onClick=${() => act("fork", { address: id, at: String(number) })}>Fork here…</button>
          <button data-pick onClick=${() => act("pick", { address })}>Pick…</button>`}
      </div>
      ${more && html`<${Body} address=${id} turn=${number} commit=${more.commit} cell=${isAsked ? cell : null} />`}
    </div>`}
  </li>`;
}

/** A turn in full, as an exported page has it. What is unfolded stays so when the turn grows. */
function Body({ address, turn, commit, cell }) {
  const place = useRef();
  const { value, error } = useLoaded(() => get("/api/turn", { address, turn }), `${address} ${turn} ${commit}`);
  const text = value?.html;
  useLayoutEffect(() => {
    if (text === undefined) return;
    const open = [...place.current.querySelectorAll("details")].map((one) => one.open);
    place.current.innerHTML = text;
    place.current.querySelectorAll("details").forEach((one, number) => (one.open = open[number] || false));
    const wanted = cell && document.getElementById(`turn-${turn}.${cell}`);
    if (wanted) {
      wanted.open = true;
      wanted.classList.add("asked");
    }
    (mark(place.current, wanted || place.current) || wanted)?.scrollIntoView({ block: "center" });
  }, [text]);
  return html`${error && html`<${Message} error=${error} />`}<div class="body" ref=${place}></div>`;
}

/** Mark the words of a search that led here, without touching the text; return the first element of a part that has one. */
function mark(body, part) {
  const words = (new URLSearchParams(location.search).get("q") || "").split(/\s+/).filter(Boolean);
  if (!words.length || !CSS.highlights) return null;
  const pattern = new RegExp(words.map((word) => word.replace(/[^\p{L}\p{N}]/gu, "\\$&")).join("|"), "giu");
  const ranges = [], texts = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && ranges.length < 1000)
    for (const found of texts.currentNode.data.matchAll(pattern)) {
      const range = new StaticRange({ startContainer: texts.currentNode, startOffset: found.index, endContainer: texts.currentNode, endOffset: found.index + found[0].length });
      ranges.push(range);
    }
  CSS.highlights.set("found", new Highlight(...ranges));
  return ranges.map((range) => range.startContainer.parentElement).find((one) => part.contains(one) && one.checkVisibility());
}

/** What left the conversation, and what came back, after a turn. */
function Between({ after, value }) {
  const { forks, left, merged, session, origin } = value;
  const link = (one) => html`<a data-row href=${`/s/${one.id}`}><code>${one.short}</code> <bdi>${one.title}</bdi></a>`;
  const compare = (one) => html` · <a href=${`/d/${session.id}/${one.id}`}>compare</a>`;
  const lines = [
    ...(origin && session.fork_turn === after ? [html`<span class="sign">↳</span> Forked here from ${link(origin)}${compare(origin)}`] : []),
    ...(merged[after] || []).map((one) => html`<span class="sign">⤶</span> ${link(one)} was merged here${compare(one)}`),
    ...(forks[after] || []).map((one) => html`<span class="sign">↳</span> ${link(one)} was forked here${one.cell && ` at ${one.cell}`} · ${plural(one.turns, "turn")}${compare(one)}`),
    ...(left[after] || []).map((one) => html`<span class="sign">↶</span> <a data-row href=${`/s/${one.id}@${after + 1}`}>${plural(one.count, "turn")}</a> ${one.rewound ? "left behind by a rewind" : "in another version"}${compare(one)}`),
  ];
  return lines.map((line) => html`<li class="between">${line}</li>`);
}
