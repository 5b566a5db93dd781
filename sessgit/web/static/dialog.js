// Commands: a form, the command line as a person would type it, a dry run, the result, and Undo beside it.
import { Message, clean, copy, get, html, live, plural, run, sessionOf, titleOf, useEffect, useLayoutEffect, useRef, useState } from "/static/util.js";

const FORMS = {
  fork: { title: "Fork", about: "A new conversation with the turns up to this one. The original does not change.", fields: { at: "Turn (empty: the last)", name: "Name (optional)" } },
  merge: { title: "Merge", about: "Appends what the other conversation has and this one lacks.", fields: { theirs: "The other conversation", mode: ["How", { summary: "One turn with a summary", graft: "Replay all their turns" }], conflicts: ["Conflicts", { "": "Stop", ours: "Use our value", theirs: "Use their value" }], new: "Create a new conversation instead" } },
  pick: { title: "Pick", about: "Copies this turn into another conversation.", fields: { into: "Conversation to copy it into", new: "Create a new conversation instead" } },
  rename: { title: "Rename", about: "An empty name shows the client’s title again.", fields: { name: "Name" } },
  edit: { title: "Label", about: "A word adds a label, -word removes one.", fields: { labels: "Labels" } },
  archive: { title: "Archive", about: "Lists leave it out. It leaves the archive when it continues.", fields: {} },
  unarchive: { title: "Unarchive", about: "", fields: {} },
  undo: { title: "Undo", about: "", fields: {} },
};

let show = () => {};
/** Open the dialog of a command with these values; `now` says what they change. */
export const act = (command, values, now = null) => show({ command, values, now, from: document.activeElement });

export function Dialog() {
  const [asked, set] = useState(null);
  useEffect(() => void (show = set), []);
  const close = () => {
    set(null);
    asked?.from?.focus();
  };
  return asked && html`<${Form} key=${JSON.stringify([asked.command, asked.values])} ...${asked} close=${close} />`;
}

function Form({ command, values: given, now, close }) {
  const form = FORMS[command], place = useRef();
  const [values, setValues] = useState({ mode: command === "merge" ? "summary" : "", ...given });
  const [line, setLine] = useState(null), [tried, setTried] = useState(null), [done, setDone] = useState(null);
  const [problem, setProblem] = useState(null), [busy, setBusy] = useState(false);
  const [others, setOthers] = useState([]);
  const key = JSON.stringify(values);
  const isWhole = !Object.keys(form.fields).length;  // nothing to fill in
  // An option of the list is a title and an id.
  const chosen = Object.fromEntries(["theirs", "into"].filter((name) => values[name]).map((name) => [name, values[name].trim().split(" ").pop()]));
  const sent = Object.fromEntries(Object.entries({ ...values, ...chosen }).filter(([name]) => name !== "mode" || command === "merge"));
  useLayoutEffect(() => place.current.showModal(), []);
  useEffect(() => void (done && place.current.querySelector(".primary").focus()), [done]);
  useEffect(() => {
    if (!form.fields.theirs && !form.fields.into) return;
    const here = sessionOf((given.into || given.address).split("@")[0]);
    get("/api/forest").then(({ sessions, families }) => {
      const family = new Set(families.find((one) => one.nodes.some((node) => node.id === here))?.nodes.map((node) => node.id));
      setOthers(sessions.filter((one) => one.id !== here).sort((a, b) => family.has(b.id) - family.has(a.id)));
    }, () => {});
  }, []);
  useEffect(() => {
    let current = true;
    setTried(null);
    if (["theirs", "into", "labels"].some((name) => name in form.fields && !values[name]?.trim())) return void (setLine(null), setProblem(null));
    run(command, sent, "show").then(
      (found) => current && (setLine(found), setProblem(null), isWhole && found.has_dry_run && start("dry-run")),
      (error) => current && (setLine(null), setProblem(error)),
    );
    return () => (current = false);
  }, [key]);
  const start = async (mode) => {
    setBusy(true);
    try {
      const outcome = await run(command, sent, mode);
      mode === "run" ? setDone(outcome) : setTried(outcome);
      live.dispatchEvent(new CustomEvent("change", { detail: null }));
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  const field = (name, label) => {
    const change = (event) => setValues({ ...values, [name]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
    if (name === "new") return html`<label class="check"><input type="checkbox" checked=${values.new || false} onChange=${change} /> ${label}</label>`;
    if (Array.isArray(label)) return html`<label>${label[0]} <select value=${values[name] || ""} onChange=${change}>
      ${Object.entries(label[1]).map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>`;
    const list = name === "theirs" || name === "into" ? "others" : null;
    return html`<label>${label} <input autocomplete="off" list=${list} value=${values[name] || ""} onInput=${change} /></label>`;
  };
  const needsTrial = line?.has_dry_run && (!tried || tried.exit_code !== 0);
  return html`<dialog ref=${place} aria-labelledby="dialog-title" onClose=${close}>
    <h2 id="dialog-title">${form.title}</h2>
    ${!done && html`<p class="quiet">${form.about}</p>
      <form onSubmit=${(event) => (event.preventDefault(), line && !busy && start(needsTrial ? "dry-run" : "run"))}>
        ${now && html`<p>${now}</p>`}
        ${Object.entries(form.fields).map(([name, label]) => field(name, label))}
        <datalist id="others">${others.map((one) => html`<option value=${`${titleOf(one)} ${one.id}`} />`)}</datalist>
        ${line && html`<p class="command"><code>${line.command}</code> <button type="button" onClick=${() => copy(line.command)}>Copy</button></p>`}
        ${problem && html`<${Message} error=${problem} />`}
        ${tried && html`<${Outcome} outcome=${tried} isTrial />`}
        <p class="buttons"><button type="button" onClick=${() => place.current.close()}>Cancel</button>
          <button class="primary" disabled=${!line || busy}>${busy ? "Running…" : needsTrial || (!line && form.fields.new) ? "Dry run" : form.title}</button></p>
      </form>`}
    ${done && html`<p class="command"><code>${done.command}</code></p><${Outcome} outcome=${done} />
      <p class="buttons">${done.operation_id && command !== "undo" && html`<button onClick=${() => act("undo", { operation: done.operation_id }, html`<code>${done.command}</code>`)}>Undo…</button>`}
        <button class="primary" autofocus onClick=${() => place.current.close()}>Close</button></p>`}
  </dialog>`;
}

const FILES = { removed: "deleted", cut: "restored", left: "kept, as it was changed since", archived: "archived" };
const brief = (value, path) => (path === "labels" ? value.join(", ") : Array.isArray(value) ? value.length : typeof value === "object" && value !== null ? JSON.stringify(value) : value);
/** What becomes of a value in a merge, or of the turns. */
function result({ action, value, path }) {
  if (action === "bring") return `${plural(value.length, "turn")} of theirs appended`;
  return action === "conflict" ? "conflict" : action === "ours" || action === "theirs" ? `${action}: ${brief(value, path)}` : brief(value, path);
}

/** What a command answered: its error, or what of its document a person asks for first, and the rest folded. */
function Outcome({ outcome, isTrial }) {
  const { document: found, remarks } = outcome, error = found.error;
  const made = found.id || found.session_id, isHere = location.pathname.split("@")[0] === `/s/${made}`;
  return html`<div class="outcome-of" role="status">
    ${error && html`<${Message} error=${error} />`}
    ${!error && html`<p><b>${isTrial ? "Nothing is changed yet." : "Done."}</b> ${!isTrial && made && !isHere && html`<a href=${`/s/${made}`}>Open the conversation</a>`}</p>`}
    ${found.resume && html`<p class="command"><code>${found.resume}</code> <button type="button" onClick=${() => copy(found.resume)}>Copy</button></p>`}
    ${found.decisions && html`<table class="decisions"><thead><tr><th></th><th>Ours</th><th>Theirs</th><th>Result</th></tr></thead>
      <tbody>${found.decisions.map((one) => html`<tr class=${one.conflict ? "problem" : ""}><td>${one.path}</td><td>${brief(one.ours, one.path)}</td><td>${brief(one.theirs, one.path)}</td>
        <td>${result(one)}</td></tr>`)}</tbody></table>`}
    ${Object.entries(FILES).map(([key, what]) => found[key]?.length > 0 && html`<p>${isTrial ? "Would be " : ""}${what}:${found[key].map((path) => html` <code>${path}</code>`)}</p>`)}
    ${!error && remarks && html`<p class="quiet">${remarks}</p>`}
    ${!error && html`<details><summary>Answer as JSON</summary><pre>${clean(JSON.stringify(found, null, 2))}</pre></details>`}
  </div>`;
}
