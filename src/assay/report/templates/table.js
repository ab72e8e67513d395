// A table of rows: search, filters, sorting, pages, and the keyboard.

const SIZES = [50, 200, 1000];

/**
 * rows: what the table shows, in its own order. columns: {name, label, sort(row), cell(row)}.
 * filters: {label, options: [[name, test(row)]...]}; the first option is "all".
 * texts(): a promise of every row's text in lower case, to be searched. open(place).
 */
function makeTable({rows, columns, filters, texts, open, first}) {
  const root = pick("#table"), tools = pick("#tools"), pager = pick("#pager");
  const state = {page: 0, size: SIZES[0], sort: first || null, found: [], current: null, update: 0};
  const search = make("input", {type: "search", placeholder: "Search all text   /", "aria-label": "Search all text"});
  const said = make("span", {class: "said", role: "status"});
  const selects = filters.map(({label, options}) => {
    const select = make("select", {"aria-label": label},
      options.map(([name], place) => make("option", {value: place}, place ? name : `${label}: ${name}`)));
    select.addEventListener("change", () => update(true));
    return select;
  });
  const clear = make("button", {type: "button", class: "quiet", onclick: reset}, "Clear");
  tools.append(search, ...selects, clear, said);
  tools.hidden = false;
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => update(true), 80); });

  const head = make("tr", {});
  for (const [place, column] of columns.entries()) {
    const button = make("button", {type: "button", onclick: () => sortBy(place)}, column.label);
    head.append(make("th", {class: column.name, scope: "col"}, column.sort ? button : column.label));
  }
  const body = make("tbody", {});
  root.append(make("thead", {}, head), body);

  async function update(fromStart) {
    const words = search.value.trim().toLowerCase(), mine = ++state.update;
    if (words) said.textContent = "Searching";
    const lower = words ? await texts() : null;
    if (mine !== state.update) return; // something newer was asked for meanwhile
    const tests = selects.map((select, place) => filters[place].options[select.value][1]).filter(Boolean);
    for (const select of selects) select.classList.toggle("on", select.value !== "0");
    clear.disabled = !words && !tests.length;
    state.found = [];
    for (let place = 0; place < rows.length; place++) {
      const row = rows[place];
      if (tests.every(test => test(row)) && (!words || lower[place].includes(words))) state.found.push(place);
    }
    if (state.sort) order();
    if (fromStart) state.page = 0;
    show();
    if (api.onupdate) api.onupdate();
  }

  function order() {
    const {place, down} = state.sort, key = columns[place].sort;
    const keys = new Map(state.found.map(row => [row, key(rows[row])]));
    const absent = value => value === null || value === undefined;
    state.found.sort((one, other) => {
      const a = keys.get(one), b = keys.get(other);
      if (absent(a) || absent(b)) return absent(a) - absent(b) || one - other; // nothing comes last
      const way = typeof a === "string" ? String(a).localeCompare(b) : a - b;
      return (down ? -way : way) || one - other;
    });
  }

  function sortBy(place) {
    const same = state.sort && state.sort.place === place;
    if (same && state.sort.down) state.sort = null;
    else state.sort = {place, down: Boolean(same)};
    update(true);
  }

  function show() {
    const pages = Math.max(1, Math.ceil(state.found.length / state.size));
    state.page = Math.min(state.page, pages - 1);
    const start = state.page * state.size;
    const visible = state.found.slice(start, start + state.size);
    body.replaceChildren(...visible.map(line));
    if (!visible.length)
      body.append(make("tr", {}, make("td", {class: "empty", colspan: columns.length}, "No row is like that.")));
    for (const [place, cell] of [...head.children].entries()) {
      const sorted = state.sort && state.sort.place === place;
      if (sorted) cell.setAttribute("aria-sort", state.sort.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    said.textContent = state.found.length === rows.length
      ? `${rows.length.toLocaleString("en")} rows`
      : `${state.found.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
    if (body.firstChild.dataset.place) body.firstChild.tabIndex = 0;
    turn(pages, start, visible.length);
  }

  function line(place) {
    const tr = make("tr", {"data-place": place, tabindex: -1, "aria-label": `Row ${place + 1}`});
    if (place === state.current) tr.classList.add("open");
    for (const column of columns) tr.append(column.cell(rows[place]));
    return tr;
  }

  function turn(pages, start, count) {
    const go = step => () => { state.page += step; show(); root.scrollIntoView({block: "start"}); };
    const size = make("select", {"aria-label": "Rows on a page"},
      SIZES.map(n => make("option", {value: n, selected: n === state.size}, `${n} a page`)));
    size.addEventListener("change", () => { state.size = Number(size.value); show(); });
    pager.replaceChildren(
      make("button", {type: "button", class: "before", disabled: !state.page, onclick: go(-1)}, "Previous"),
      make("button", {type: "button", class: "after", disabled: state.page >= pages - 1, onclick: go(1)}, "Next"),
      make("span", {}, count ? `${start + 1} to ${start + count} of ${state.found.length}` : ""), size);
    pager.hidden = state.found.length <= SIZES[0];
  }

  function reset() {
    search.value = "";
    for (const select of selects) select.value = "0";
    void update(true);
    search.focus();
  }

  /** Open a row; the one before or after it with `step`. */
  function choose(place, step) {
    if (step) {
      const at = state.found.indexOf(place) + step;
      if (at < 0 || at >= state.found.length) return;
      place = state.found[at];
      state.page = Math.floor(at / state.size);
    }
    state.current = place;
    show();
    open(place);
  }

  function focus(tr) {
    if (!tr || !tr.dataset.place) return;
    for (const other of body.children) other.tabIndex = -1;
    tr.tabIndex = 0;
    tr.focus();
  }

  body.addEventListener("click", event => {
    const tr = event.target.closest("tr");
    if (tr && tr.dataset.place && !String(getSelection())) choose(Number(tr.dataset.place));
  });
  body.addEventListener("keydown", event => {
    const tr = event.target.closest("tr");
    if (event.key === "Enter") choose(Number(tr.dataset.place));
    else if (event.key === "ArrowDown") focus(tr.nextElementSibling);
    else if (event.key === "ArrowUp") focus(tr.previousElementSibling);
    else if (event.key === "Home") focus(body.firstElementChild);
    else if (event.key === "End") focus(body.lastElementChild);
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", event => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); }
    else if (event.key === "Escape" && panel.isOpen()) panel.close();
    else if (event.key === "Escape" && event.target === search) reset();
    else if (panel.isOpen() && !typing && event.key === "ArrowRight") choose(state.current, 1);
    else if (panel.isOpen() && !typing && event.key === "ArrowLeft") choose(state.current, -1);
    else if (event.key === "ArrowDown" && event.target === search) { event.preventDefault(); focus(body.firstElementChild); }
  });
  panel.onclose = () => {
    const tr = body.querySelector(`[data-place="${state.current}"]`);
    state.current = null;
    for (const other of body.querySelectorAll(".open")) other.classList.remove("open");
    focus(tr);
    if (api.onclose) api.onclose();
  };

  const api = {
    update, choose,
    steps: () => [
      make("button", {type: "button", class: "before", title: "Left arrow", onclick: () => choose(state.current, -1)}, "Previous"),
      make("button", {type: "button", class: "after", title: "Right arrow", onclick: () => choose(state.current, 1)}, "Next"),
    ],
    set(filter, option) { selects[filter].value = String(option); update(true); },
    get: filter => Number(selects[filter].value),
  };
  update(true);
  return api;
}

/** Blocks of rows in the page: packed, and unpacked when one of their rows is needed. */
function blocks(size) {
  const found = [...document.querySelectorAll("script.rows")], kept = new Map();
  let reading = null;
  function block(number) {
    if (!kept.has(number)) {
      if (kept.size >= 8) kept.delete(kept.keys().next().value);
      kept.set(number, unpacked(found[number].textContent));
    }
    return kept.get(number);
  }
  async function read(strings) {
    const lower = [];
    for (const part of found) for (const row of await unpacked(part.textContent))
      lower.push(strings(row).join("\n").toLowerCase());
    return lower;
  }
  return {
    at: async place => (await block(Math.floor(place / size)))[place % size],
    /** Every row's own text in lower case. It is read once, at best before it is asked for. */
    texts: strings => reading ??= read(strings),
    prepare(strings) {
      if (window.requestIdleCallback) requestIdleCallback(() => this.texts(strings));
    },
  };
}

async function unpacked(text) {
  const signs = atob(text), bytes = new Uint8Array(signs.length);
  for (let place = 0; place < signs.length; place++) bytes[place] = signs.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** Every text in a value, however deep. */
function textsIn(value, into) {
  if (typeof value === "string") into.push(value);
  else if (typeof value === "number") into.push(String(value));
  else if (value && typeof value === "object") for (const item of Object.values(value)) textsIn(item, into);
  return into;
}
