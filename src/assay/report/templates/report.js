// The report of one run.

const head = data("head"), lines = data("lines");
const whole = blocks(head.block);
let shared = null; // texts that stand in many messages
const SCORED = 0;

const [VALUE, STATE, RESULT, BARS] = [0, 1, 2, 3];
const cellOf = (row, metric) => row[3][metric] || [];
const stateOf = (row, metric) => cellOf(row, metric)[STATE] || SCORED;
const valueOf = (row, metric) => stateOf(row, metric) === SCORED ? cellOf(row, metric)[VALUE] : null;
const anyMetric = test => row => head.metrics.some((_, metric) => test(row, metric));

function valueCell(row, metric) {
  const cell = cellOf(row, metric), td = make("td", {class: "value"});
  if (stateOf(row, metric) !== SCORED) td.append(make("span", {class: "absent"}, head.states[cell[STATE]]));
  else {
    td.append(make("b", {}, shown(cell[VALUE])));
    if (cell[RESULT] === "fail") td.append(" ", make("span", {class: "fail"}, "fail"));
  }
  return td;
}

const columns = [
  {name: "num", label: "Row", sort: row => row[0], cell: row => make("td", {class: "num"}, String(row[0] + 1))},
];
if (lines.rows.some(row => row[1] !== null)) columns.push({
  name: "id", label: "Id", sort: row => row[1], cell: row => make("td", {class: "id", dir: "auto"}, row[1]),
});
for (const [place, name] of lines.previews.entries()) columns.push({
  name: place ? "text second" : "text", label: name, sort: row => row[2][place].toLowerCase(),
  cell: row => make("td", {class: place ? "text second" : "text"}, make("span", {dir: "auto"}, row[2][place])),
});
for (const [metric, {label}] of head.metrics.entries()) columns.push({
  name: "value", label, sort: row => valueOf(row, metric), cell: row => valueCell(row, metric),
});

const states = head.states.map((name, state) => [name, state])
  .filter(([, state]) => state && lines.rows.some(anyMetric((row, metric) => stateOf(row, metric) === state)));
const filters = [{
  label: "Status", options: [
    ["all", null],
    ["with a fail", anyMetric((row, metric) => cellOf(row, metric)[RESULT] === "fail")],
    ["all scored", row => head.metrics.every((_, metric) => stateOf(row, metric) === SCORED)],
    ["without a score", anyMetric((row, metric) => stateOf(row, metric) !== SCORED)],
    ...states.map(([name, state]) => [name, anyMetric((row, metric) => stateOf(row, metric) === state)]),
  ],
}];
const FIXED = 4; // options of a metric before its bars
for (const [metric, {label, bars}] of head.metrics.entries()) filters.push({
  label, options: [
    ["all", null],
    ["pass", row => cellOf(row, metric)[RESULT] === "pass"],
    ["fail", row => cellOf(row, metric)[RESULT] === "fail"],
    ["no score", row => stateOf(row, metric) !== SCORED],
    ...bars.map((name, bar) => [name, row => (cellOf(row, metric)[BARS] || []).includes(bar)]),
  ],
});

function strings(row) {
  const found = [];
  textsIn([row.columns, row.target, row.problem, row.note], found);
  for (const score of row.scores) if (score) {
    textsIn([score.cause, score.message, score.reason, score.outputs, score.evidence], found);
    for (const call of score.calls || []) found.push(call.reply || "", call.note || "");
  }
  return found;
}

/** What was sent, put together from shared texts and the row's own. */
function spelled(pieces, row) {
  shared = shared || data("texts");
  const own = {...row.columns, ...row.target};
  return pieces.map(piece => {
    if (typeof piece === "number") return shared[piece];
    return Array.isArray(piece) ? piece.reduce((value, key) => value[key], own) : piece;
  }).join("");
}

function message(role, text) {
  return make("div", {class: "message"}, make("div", {class: "name"}, role), make("pre", {dir: "auto"}, text));
}

function callPart(call, place, count, row) {
  const usage = call.usage || {}, told = [];
  if (usage.prompt_tokens || usage.completion_tokens)
    told.push(`${usage.prompt_tokens || 0} + ${usage.completion_tokens || 0} tokens`);
  if (usage.reasoning_tokens) told.push(`${usage.reasoning_tokens} of them reasoning`);
  if (usage.cached_tokens) told.push(`${usage.cached_tokens} read from the server's cache`);
  told.push(`${call.latency || 0} s`, call.attempts ? `${call.attempts} attempts` : "1 attempt");
  if (call.model) told.push(call.model);
  told.push(`ended by ${call.finish_reason || "stop"}`);
  if (call.cached) told.push("from the cache");
  const sent = make("details", {class: "sent"}, make("summary", {}, "Messages as sent"));
  sent.addEventListener("toggle", () => {
    if (sent.open && sent.children.length === 1) sent.append(...(typeof call.messages === "string"
      ? [make("p", {class: "small"}, call.messages)]
      : call.messages.map(([role, pieces, other]) => message(
        other ? `${role} ${JSON.stringify(other)}` : role, spelled(pieces, row)))));
  });
  return make("div", {class: "call"},
    count > 1 && make("h4", {}, `Call ${place + 1}: ${call.prompt}`),
    call.note && make("p", {class: "small", dir: "auto"}, `Asked again: ${call.note}`),
    call.inputs && field("given to this step", call.inputs),
    sent, message("raw reply", call.reply || "(empty)"), make("p", {class: "small"}, told.join(" · ")));
}

function verdict(score, key, row) {
  const [evaluator, iteration] = key, several = head.iterations > 1;
  const title = several ? `${evaluator}, iteration ${iteration + 1}` : evaluator;
  const body = make("section", {class: "verdict"});
  const heading = make("h3", {}, title);
  body.append(heading);
  if (!score) {
    heading.append(make("span", {class: "absent"}, head.states[head.states.length - 1]));
    return body;
  }
  for (const metric of head.metrics.filter(m => m.evaluator === evaluator)) {
    if (score.status !== SCORED) continue;
    const value = (score.outputs || {})[metric.output], result = (score.results || {})[metric.output];
    heading.append(make("b", {}, metric.output === evaluator ? shown(value) : `${metric.output} ${shown(value)}`));
    if (result) heading.append(make("span", {class: result}, result));
    if (metric.threshold !== null && result)
      heading.append(make("span", {class: "small"}, `threshold ${shown(metric.threshold)}`));
    const text = metric.levels[String(value)];
    if (text) body.append(make("p", {class: "level", dir: "auto"}, text));
  }
  if (score.status !== SCORED) heading.append(make("span", {class: "absent"}, head.states[score.status]));
  if (score.cause) body.append(make("p", {class: "reason", dir: "auto"}, `${score.cause.replaceAll("_", " ")}: ${score.message || ""}`));
  if (score.reason) body.append(make("p", {class: "reason", dir: "auto"}, score.reason));
  const known = new Set(head.metrics.filter(m => m.evaluator === evaluator).map(m => m.output));
  for (const [name, value] of Object.entries(score.outputs || {}))
    if (!known.has(name) && value !== score.reason) body.append(field(name, value));
  const {parts, ...evidence} = score.evidence || {}; // parts: what came of each step
  for (const [name, value] of Object.entries({...evidence, ...parts})) body.append(field(name, value));
  const calls = score.calls || [];
  if (calls.length) body.append(make("details", {class: "calls", open: calls.length === 1},
    make("summary", {}, calls.length === 1 ? "The call" : `${calls.length} calls`),
    ...calls.map((call, place) => callPart(call, place, calls.length, row))));
  else body.append(make("p", {class: "small"}, "No call was answered."));
  return body;
}

async function openRow(place) {
  const row = await whole.at(place), line = lines.rows[place];
  const body = make("div", {});
  for (const [name, value] of Object.entries(row.columns)) body.append(field(name, value));
  if (row.target) body.append(make("h3", {}, "From the target"),
    ...Object.entries(row.target).map(([name, value]) => field(name, value)));
  if (row.problem) body.append(make("p", {class: "note loud", dir: "auto"}, row.problem));
  if (row.note) body.append(make("p", {class: "note", dir: "auto"}, row.note));
  body.append(make("h3", {}, "Scores"), ...row.scores.map((score, at) => verdict(score, head.keys[at], row)));
  body.append(make("p", {class: "small"}, `content hash ${row.hash}`));
  panel.open(`Row ${line[0] + 1}${line[1] === null ? "" : ` · ${line[1]}`}`, body, table.steps());
  history.replaceState(null, "", `#row-${line[0] + 1}`);
}

const table = makeTable({
  rows: lines.rows, columns, filters, open: openRow,
  texts: () => whole.texts(strings),
});
table.onclose = () => history.replaceState(null, "", location.pathname + location.search);

// A bar of a histogram stands for the rows in it.
const bars = [...document.querySelectorAll(".chart .bar")];
const isOn = bar => table.get(Number(bar.dataset.metric) + 1) === Number(bar.dataset.bar) + FIXED;
for (const bar of bars) {
  const press = () => {
    table.set(Number(bar.dataset.metric) + 1, isOn(bar) ? 0 : Number(bar.dataset.bar) + FIXED);
    pick("#rows").scrollIntoView({block: "start"});
  };
  bar.addEventListener("click", press);
  bar.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); press(); }
  });
}
table.onupdate = () => { for (const bar of bars) bar.classList.toggle("on", isOn(bar)); };

whole.prepare(strings);
const named = /^#row-(\d+)$/.exec(location.hash);
if (named) {
  const place = lines.rows.findIndex(row => row[0] + 1 === Number(named[1]));
  if (place >= 0) table.choose(place);
}
