// Two conversations side by side: what they share is one line, then the turns of each.
import { act } from "/static/dialog.js";
import { Problem, ago, count, firstLine, get, html, moment, money, newTokens, plural, sessionOf, useEffect, useLayoutEffect, useLive, useLoaded, useRef } from "/static/util.js";

export function Difference({ a, b, readOnly }) {
  const { value, error, reload } = useLoaded(() => get("/api/diff", { a, b }), `${a} ${b}`);
  useLive((names) => (!names || names.some((name) => a.startsWith(name) || b.startsWith(name))) && reload());
  useEffect(() => void (document.title = "Difference · sessgit"), []);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="quiet">Comparing…</p>`;
  const { titles, base, code } = value;
  return html`<h1>Two conversations</h1>
    <p class="command"><code>sessgit diff ${titles.a.short}${a.includes("@") ? `@${a.split("@")[1]}` : ""} ${titles.b.short}${b.includes("@") ? `@${b.split("@")[1]}` : ""}</code></p>
    <p class="shared">${value.shared_turns ? html`${plural(value.shared_turns, "shared turn")}${base && html`, up to <a href=${`/s/${value.a}@${base.turn}`}>turn ${base.turn}</a>`}` : "No shared turns."}
      ${value.partial && ` One side has only the beginning of turn ${value.partial.turn}.`}</p>
    <div class="sides-of">${["a", "b"].map((side) => html`<${Side} key=${side} side=${side} value=${value} readOnly=${readOnly} />`)}</div>
    ${code && html`<section class="commits" aria-labelledby="code"><h2 id="code">Code</h2><${Code} code=${code} /></section>`}`;
}

function Side({ side, value, readOnly }) {
  const across = side === "a" ? "b" : "a";
  const turns = value[`only_${side}`], files = value.files[side], other = new Set(value.files[across]);
  const title = value.titles[side], theirs = value.titles[across];
  const canMerge = !readOnly && value[`only_${across}`].length > 0 && [title, theirs].every((one) => one.id === sessionOf(one.id));
  const costs = turns.map((turn) => turn.cost_usd);
  return html`<section aria-labelledby=${`side-${side}`}>
    <h2 id=${`side-${side}`}><a href=${`/s/${title.id}`} data-row><code>${title.short}</code> <bdi>${title.title}</bdi></a></h2>
    <p class="facts">${plural(turns.length, "own turn")} · ${count(newTokens(value.tokens[side]))} tokens ${!costs.includes(null) && html`· ${money(costs.reduce((sum, one) => sum + one, 0))}`}</p>
    ${canMerge && html`<p class="actions"><button data-merge onClick=${() => act("merge", { into: title.id, theirs: `${theirs.title} ${theirs.id}` })}>Merge ${theirs.short} into this…</button></p>`}
    <ol>${turns.map((turn) => html`<li><a data-row href=${`/s/${title.id}@${turn.turn}`}><span class="number">${turn.turn}</span>
      <span class="what"><bdi class="title">${firstLine(turn.prompt) || "(no text)"}</bdi><bdi class="words">${firstLine(turn.answer)}</bdi></span>
      <time class="ago" datetime=${turn.time} title=${moment(turn.time)}>${ago(turn.time)}</time></a></li>`)}</ol>
    ${files.length > 0 && html`<details><summary>${plural(files.length, "file")}</summary><ul class="files">${files.map((file) => html`<li><code>${file}</code>${other.has(file) && html` <span class="quiet">both</span>`}</li>`)}</ul></details>`}
    ${turns.length > 0 && html`<h3>Last answer</h3><${Last} text=${value[`last_${side}`] || "(no answer)"} />`}
  </section>`;
}

/** An answer in HTML, made by the server from escaped text. */
function Last({ text }) {
  const place = useRef();
  useLayoutEffect(() => {
    place.current.innerHTML = text;
  }, [text]);
  return html`<div class="last prose" dir="auto" ref=${place}></div>`;
}

function Code({ code }) {
  const lines = (one) => one.added !== null && html` <span class="added">+${one.added}</span> <span class="removed">−${one.removed}</span>`;
  return html`${code.problem && html`<p class="quiet">${code.problem}</p>`}
    <div class="sides-of">${["a", "b"].map((side) => html`<ul key=${side}>${code.commits[side].map((one) => html`<li><code>${one.commit.slice(0, 8)}</code> <bdi>${one.subject}</bdi></li>`)}</ul>`)}</div>
    ${code.files.length > 0 && html`<p class="facts">${plural(code.files.length, "changed file")}${lines(code)}</p>
      <ul class="files">${code.files.map((file) => html`<li><code>${file.path}</code>${lines(file)}</li>`)}</ul>`}`;
}
