"use strict";
(() => {
  const NARROW = 560;
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const configs = JSON.parse(byId("configs").textContent);
  const system = matchMedia("(prefers-color-scheme: dark)");

  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(byId(id).textContent.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  function once(make) {
    let made;
    return () => (made ??= make());
  }

  const specs = once(async () => JSON.parse(await unpacked("specs")));
  const raw = once(async () => JSON.parse(await unpacked("raw")));
  const details = once(async () => JSON.parse(await unpacked("details")));
  const runtime = once(async () => {
    const script = document.createElement("script");
    script.textContent = await unpacked("runtime");
    document.head.append(script);
  });

  // Charts are drawn when they come near the window: a sweep of hundreds opens as fast as one trial.
  const drawn = new Map();

  async function draw(figure) {
    const [all] = await Promise.all([specs(), runtime()]);
    const dark = root.dataset.theme === "dark";
    const width = figure.clientWidth;
    const config = structuredClone(configs[dark ? "dark" : "light"]);
    config.background = "transparent";
    if (width < NARROW) config.legend.columns = 3;
    config.axis.labelLimit = Math.max(80, Math.min(240, width * 0.36));
    config.title.limit = config.title.subtitleLimit = width - 8;
    config.padding = { left: 0, right: 8, top: 4, bottom: 4 };
    const { $schema, ...chart } = all[figure.dataset.chart];
    const spec = fitted(chart, width);
    drawn.get(figure)?.finalize();
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config, tooltip: { theme: dark ? "dark" : "light" } };
    const result = await window.vegaEmbed(figure, spec, options);
    drawn.set(figure, result);
    if (figure.dataset.contest) result.view.addEventListener("click", (_, item) => pick(figure.dataset.contest, item?.datum?.case));
    figure.dataset.drawn = root.dataset.theme;
  }

  // A chart of fixed shape only shrinks; all others take the width that there is.
  function fitted(chart, width) {
    if (chart.usermeta?.labels === "wide" && width < NARROW) chart = withoutLabels(chart);
    if (!chart.usermeta?.fixed) return { ...chart, width: "container", autosize: { type: "fit-x", contains: "padding" } };
    const scale = Math.min(1, (width - 24) / chart.width);
    return { ...chart, width: chart.width * scale, height: chart.height * scale };
  }

  function withoutLabels(chart) {
    const layers = structuredClone(chart.layer);
    for (const layer of layers) layer.encoding.x.axis.labels = false;
    return { ...chart, layer: layers };
  }

  // Texts come from agents and cases: they are only ever set as text.
  function element(tag, text = "", parts = []) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    made.append(...parts);
    return made;
  }

  function sheet(rows) {
    const said = rows.filter(([, text]) => text);
    return element("dl", "", said.flatMap(([name, text]) => [element("dt", name), element("dd", text)]));
  }

  async function pick(contest, id) {
    const found = id !== undefined && (await details())[contest]?.[id];
    if (!found) return;
    const told = (answer) => Object.entries(answer.outcomes).map(([name, number]) => `${number} ${name.replace("_", " ")}`).join(", ");
    const shown = ({ repetitions, output, why }) => [["output" + (repetitions ? ", " + repetitions : ""), output || "–"], ["why", why]];
    const rows = found.answers.flatMap((answer) => [
      element("h3", `${answer.agent}: ${answer.score === null ? "not scored" : "score " + answer.score.toFixed(2)} (${told(answer)})`),
      sheet([...answer.outputs.flatMap(shown), ["left out", answer.unkept ? `${answer.unkept} more repetitions` : ""]]),
    ]);
    const place = [...document.querySelectorAll("[data-picked]")].find((item) => item.dataset.picked === contest);
    const select = [...document.querySelectorAll("[data-cases]")].find((item) => item.dataset.cases === contest);
    if (select) select.value = id;
    place.replaceChildren(element("h3", found.title ? `${id} · ${found.title}` : id), sheet([["input", found.input], ["expected", found.expected]]), ...rows);
    place.hidden = false;
  }

  function drawOrSay(figure) {
    return draw(figure).catch((error) => {
      console.error(error);
      figure.textContent = "This chart cannot be drawn here: " + error.message;
      figure.dataset.drawn = "failed";
    });
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      watcher.unobserve(target);
      drawOrSay(target);
    }
  }, { rootMargin: "400px" });

  function setTheme(theme) {
    root.dataset.theme = theme;
    byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
    byId("theme").setAttribute("aria-label", `Use ${theme === "dark" ? "light" : "dark"} colours`);
    for (const figure of drawn.keys()) drawOrSay(figure);
  }

  function remembered(choice) {
    // A page opened from a file may be denied its storage.
    try {
      if (choice) localStorage.setItem("assay-theme", choice);
      return localStorage.getItem("assay-theme");
    } catch {
      return null;
    }
  }

  function cell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return String(value);
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const inert = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(inert) ? '"' + inert.replaceAll('"', '""') + '"' : inert;
  }

  const unprefixed = (name) => name.replace(/^metrics\./, "");
  const union = (lists) => [...new Set(lists.flat())];

  function csv({ document: run, columns }) {
    const params = union(run.trials.map((trial) => Object.keys(trial.parameters)));
    const names = union(columns.map((table) => Object.keys(table)));
    const fixed = ["run_id", "trial", "name", "agent", "version", "benchmark", "experiment"];
    const lines = [[...fixed, ...params.map((name) => "params." + name), ...names.map(unprefixed)].map(cell).join(",")];
    run.trials.forEach((trial, number) => {
      const table = columns[number];
      const head = [run.run_id, trial.id, trial.name, trial.agent.name, trial.agent.version, trial.benchmark, trial.experiment];
      const start = [...head, ...params.map((name) => trial.parameters[name])].map(cell).join(",");
      for (let row = 0; row < table.process.length; row++) {
        lines.push(start + "," + names.map((name) => cell(table[name]?.[row])).join(","));
      }
    });
    return lines.join("\r\n") + "\r\n";
  }

  function executions(table) {
    const metrics = Object.keys(table).filter((name) => name.startsWith("metrics.") && name !== "metrics.seconds");
    return table.process.map((process, row) => {
      const values = metrics.filter((name) => table[name][row] !== null).map((name) => [unprefixed(name), table[name][row]]);
      const entry = {
        index: table.repetition[row], process, phase: table.phase[row], status: table.status[row], started: table.started[row],
        duration_s: table["metrics.seconds"]?.[row] ?? null, loops: table.loops[row], metrics: Object.fromEntries(values),
      };
      if (table.case[row]) withScores(Object.assign(entry, { case: table.case[row] }));
      if (table.error[row]) entry.error = table.error[row];
      return entry;
    });
  }

  function withScores(entry) {
    const { score, ...metrics } = entry.metrics;
    if (score !== undefined) entry.score = score;
    const named = Object.keys(metrics).filter((name) => name.startsWith("score."));
    if (named.length) entry.scores = Object.fromEntries(named.map((name) => [name.slice(6), metrics[name]]));
    for (const name of named) delete metrics[name];
    entry.metrics = metrics;
  }

  function json({ document: run, columns }) {
    const trials = run.trials.map((trial, number) => ({ ...trial, iteration_metrics: executions(columns[number]) }));
    return JSON.stringify({ ...run, trials }, null, 1);
  }

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function sortBy(button) {
    const heading = button.closest("th");
    const body = button.closest("table").tBodies[0];
    const upward = heading.getAttribute("aria-sort") !== "ascending";
    const key = (row) => row.cells[heading.cellIndex].dataset.sort;
    const order = (a, b) => (isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b), undefined, { numeric: true }) : key(a) - key(b));
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", upward ? "ascending" : "descending");
    body.append(...[...body.rows].sort((a, b) => (upward ? order(a, b) : order(b, a))));
  }

  function filter(words) {
    const wanted = words.toLowerCase().split(/\s+/);
    for (const item of document.querySelectorAll("[data-trial]")) {
      const name = item.dataset.trial.toLowerCase();
      item.hidden = !wanted.every((word) => name.includes(word));
    }
  }

  // A link to a trial opens its section.
  function openTarget() {
    const target = location.hash && byId(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  }

  setTheme(remembered() ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", () => remembered() ?? setTheme(system.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => setTheme(remembered(root.dataset.theme === "dark" ? "light" : "dark") ?? (root.dataset.theme === "dark" ? "light" : "dark")));
  byId("csv")?.addEventListener("click", async () => save("executions.csv", "text/csv", csv(await raw())));
  byId("json")?.addEventListener("click", async () => save("result.json", "application/json", json(await raw())));
  byId("filter")?.addEventListener("input", (event) => filter(event.target.value));
  byId("unfold")?.addEventListener("click", () => document.querySelectorAll("details.trial").forEach((part) => (part.open = true)));
  for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => sortBy(button));
  for (const select of document.querySelectorAll("[data-cases]")) select.addEventListener("change", () => pick(select.dataset.cases, select.value));
  addEventListener("hashchange", openTarget);
  addEventListener("beforeprint", () => document.querySelectorAll("details.more").forEach((part) => (part.open = true)));
  openTarget();
  for (const figure of document.querySelectorAll(".chart")) watcher.observe(figure);
})();
