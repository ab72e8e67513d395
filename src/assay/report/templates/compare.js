// Runs side by side: each against the first.

const head = data("head"), lines = data("lines");
const whole = blocks(head.block);
const SCORED = 0;
const [VALUE, STATE, RESULT] = [0, 1, 2];

const stateOf = cell => cell[STATE] || SCORED;
const valueOf = cell => stateOf(cell) === SCORED ? cell[VALUE] : null;
const othersOf = (row, metric) => row[3][metric].slice(1);
const firstOf = (row, metric) => row[3][metric][0];
const any = test => row => head.metrics.some((m, metric) =>
  othersOf(row, metric).some(cell => test(firstOf(row, metric), cell, m)));

/** How far a cell moved, in the direction that is better; null where it cannot be said. */
function move(first, cell, metric) {
  const before = Number(valueOf(first) ?? NaN), after = Number(valueOf(cell) ?? NaN);
  if (metric.problem || Number.isNaN(before) || Number.isNaN(after)) return null;
  return (after - before) * (metric.direction === "decrease" ? -1 : 1);
}

function text(cell) {
  return stateOf(cell) === SCORED
    ? make("b", {}, shown(cell[VALUE]))
    : make("span", {class: "absent"}, head.states[stateOf(cell)]);
}

function flip(first, cell) {
  if (!first[RESULT] || !cell[RESULT] || first[RESULT] === cell[RESULT]) return null;
  return make("span", {class: `tag ${cell[RESULT]}`}, `now ${cell[RESULT]}`);
}

/** What a cell says beside its value: how far it moved, and whether its verdict flipped. */
function tags(row, metric, run) {
  const first = firstOf(row, metric), cell = row[3][metric][run], found = [];
  const moved = move(first, cell, head.metrics[metric]);
  if (moved) {
    const plain = cell[VALUE] - first[VALUE];
    const tone = head.metrics[metric].direction === "neutral" ? "" : moved > 0 ? "better" : "worse";
    found.push(" ", make("span", {class: `tag ${tone}`}, `${plain > 0 ? "+" : ""}${shown(plain)}`));
  }
  const flipped = flip(first, cell);
  return flipped ? [...found, " ", flipped] : found;
}

function movedCell(row, metric, run) {
  return make("td", {class: "value"}, text(row[3][metric][run]), tags(row, metric, run));
}

/** Two runs fit into one cell: before and after. */
function pairCell(row, metric) {
  return make("td", {class: "value pair"}, make("span", {class: "base"}, text(firstOf(row, metric))),
    " → ", text(row[3][metric][1]), tags(row, metric, 1));
}

const columns = [
  {name: "num", label: "Row", sort: row => row[0], cell: row => make("td", {class: "num"}, String(row[0] + 1))},
];
if (lines.rows.some(row => row[1] !== null)) columns.push({
  name: "id", label: "Id", sort: row => row[1], cell: row => make("td", {class: "id", dir: "auto"}, row[1]),
});
for (const [place, name] of lines.previews.slice(0, 1).entries()) columns.push({
  name: "text", label: name, sort: row => row[2][place].toLowerCase(),
  cell: row => make("td", {class: "text"}, make("span", {dir: "auto"}, row[2][place])),
});
const movedBy = (metric, run) => row => move(firstOf(row, metric), row[3][metric][run], head.metrics[metric]);
for (const [metric, {label}] of head.metrics.entries()) {
  if (head.runs.length === 2) {
    columns.push({name: "value", label, sort: movedBy(metric, 1), cell: row => pairCell(row, metric)});
    continue;
  }
  columns.push({
    name: "value", label: `${label}, ${head.runs[0]}`, sort: row => valueOf(firstOf(row, metric)),
    cell: row => make("td", {class: "value"}, text(firstOf(row, metric))),
  });
  for (let run = 1; run < head.runs.length; run++) columns.push({
    name: "value", label: head.runs[run], sort: movedBy(metric, run), cell: row => movedCell(row, metric, run),
  });
}

const kinds = metric => test => metric === null ? any(test)
  : row => othersOf(row, metric).some(cell => test(firstOf(row, metric), cell, head.metrics[metric]));
function options(metric) {
  const rows = kinds(metric);
  return [
    ["all", null],
    ["flipped", rows((a, b, m) => !m.problem && a[RESULT] && b[RESULT] && a[RESULT] !== b[RESULT])],
    ["now pass", rows((a, b, m) => !m.problem && a[RESULT] === "fail" && b[RESULT] === "pass")],
    ["now fail", rows((a, b, m) => !m.problem && a[RESULT] === "pass" && b[RESULT] === "fail")],
    ["better", rows((a, b, m) => m.direction !== "neutral" && move(a, b, m) > 0)],
    ["worse", rows((a, b, m) => m.direction !== "neutral" && move(a, b, m) < 0)],
    ["lost its score", rows((a, b) => stateOf(a) === SCORED && stateOf(b) !== SCORED)],
    ["won a score", rows((a, b) => stateOf(a) !== SCORED && stateOf(b) === SCORED)],
  ];
}
const filters = [{label: "Rows", options: options(null)}];
if (head.metrics.length > 1)
  for (const [metric, {label}] of head.metrics.entries()) filters.push({label, options: options(metric)});

const strings = row => textsIn([row.columns, row.runs], []);

async function openRow(place) {
  const row = await whole.at(place), line = lines.rows[place];
  const body = make("div", {});
  for (const [name, value] of Object.entries(row.columns)) {
    const others = row.runs.map(side => (side.columns || row.columns)[name]);
    if (others.every(other => JSON.stringify(other) === JSON.stringify(value))) body.append(field(name, value));
    else body.append(make("h4", {}, name), sides(others.map((other, run) => field(head.runs[run], other ?? "–"))));
  }
  const targets = [...new Set(row.runs.flatMap(side => Object.keys(side.target || {})))];
  for (const name of targets) body.append(make("h4", {}, name),
    sides(row.runs.map((side, run) => field(head.runs[run], (side.target || {})[name] ?? "–"))));
  const told = new Set();
  for (const [metric, {label, evaluator}] of head.metrics.entries()) {
    body.append(make("h3", {}, label));
    body.append(sides(head.runs.map((name, run) => {
      const cell = line[3][metric][run];
      const part = make("div", {class: "field"}, make("div", {class: "name"}, name), text(cell));
      if (cell[RESULT]) part.append(make("span", {class: `tag ${cell[RESULT]}`}, ` ${cell[RESULT]}`));
      if (!told.has(evaluator)) for (const words of row.runs[run].words[evaluator] || [])
        if (words) part.append(make("p", {class: "reason", dir: "auto"}, words));
      return part;
    })));
    told.add(evaluator);
  }
  panel.open(`Row ${line[0] + 1}${line[1] === null ? "" : ` · ${line[1]}`}`, body, table.steps());
}

function sides(parts) {
  return make("div", {class: "sides"}, parts.map(part => make("div", {}, part)));
}

panel.root.classList.add("wide");
const table = makeTable({
  rows: lines.rows, columns, filters, open: openRow,
  texts: () => whole.texts(strings),
});
whole.prepare(strings);
