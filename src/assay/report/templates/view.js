// The list of runs, and how those that are going come on.

const SOON = 1500, LATER = 5000; // milliseconds to the next look
let runs = data("runs");
const ticked = []; // in the order of ticking
const search = pick("#search"), list = pick("#list"), compare = pick("#compare"), said = pick("#said");

function states(run) {
  const cell = make("td", {});
  if (!run.progress) {
    cell.append(make("span", {class: `chip ${run.state}`}, run.status));
    if (run.problem) cell.append(make("span", {class: "sub"}, run.problem));
    return cell;
  }
  const {done, total, statuses} = run.progress;
  const missing = Object.entries(statuses).filter(([name]) => name !== "scored");
  cell.append(make("progress", {max: total, value: done, "aria-label": "scores"}),
    make("span", {class: "sub"}, `${done.toLocaleString("en")} of ${total.toLocaleString("en")} scores`
      + missing.map(([name, count]) => `, ${count} ${name.replace("_", " ")}`).join("")));
  return cell;
}

function line(run) {
  const tick = make("input", {type: "checkbox", "aria-label": `Compare ${run.name}`, disabled: run.state === "unreadable"});
  tick.checked = ticked.includes(run.id);
  tick.addEventListener("change", () => {
    if (tick.checked) ticked.push(run.id);
    else ticked.splice(ticked.indexOf(run.id), 1);
    count();
  });
  const link = make("a", {href: `run/${encodeURIComponent(run.id)}/`, dir: "auto"}, run.name);
  return make("tr", {"data-id": run.id}, make("td", {}, tick),
    make("td", {class: "text"}, run.state === "unreadable" ? run.name : link,
      run.name === run.id ? null : make("span", {class: "sub"}, run.id)),
    states(run), make("td", {class: "value"}, run.date || "–"),
    make("td", {}, (run.judges || []).join(", ") || "–"),
    make("td", {class: "num"}, (run.rows ?? "–").toLocaleString("en")),
    make("td", {}, run.metrics.map(m => make("div", {class: "value"}, `${m.label} `, make("b", {}, m.mean)))));
}

function count() {
  compare.disabled = ticked.length < 2;
  compare.textContent = ticked.length < 2 ? "Compare" : `Compare ${ticked.length} runs`;
}

function show() {
  const words = search.value.trim().toLowerCase();
  const found = runs.filter(run => !words || JSON.stringify(run).toLowerCase().includes(words));
  const focused = document.activeElement.closest?.("#list tr")?.dataset.id;
  list.replaceChildren(...found.map(line));
  if (!found.length) list.append(make("tr", {}, make("td", {class: "empty", colspan: 7},
    runs.length ? "No run is like that." : "There are no runs here yet.")));
  if (focused) list.querySelector(`[data-id="${CSS.escape(focused)}"] input`)?.focus();
  said.textContent = `${found.length} of ${runs.length} runs`;
}

async function look() {
  try {
    const answer = await fetch("runs.json");
    const fresh = await answer.json();
    if (JSON.stringify(fresh) !== JSON.stringify(runs)) {
      runs = fresh;
      show();
    }
  } catch {
    said.textContent = "The server has ended; start `assay view` again.";
  }
  setTimeout(look, runs.some(run => run.progress) ? SOON : LATER);
}

compare.addEventListener("click", () => {
  location.href = `compare?${ticked.map(id => `run=${encodeURIComponent(id)}`).join("&")}`;
});
search.addEventListener("input", show);
addEventListener("keydown", event => {
  if (event.key === "/" && event.target !== search) { event.preventDefault(); search.focus(); }
  if (event.key === "Escape" && event.target === search) { search.value = ""; show(); }
});
addEventListener("pageshow", () => { count(); show(); });
setTimeout(look, SOON);
