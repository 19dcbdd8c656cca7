(() => {
  const { byId, once } = assayPage;

  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(byId(id).textContent.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  const specs = once(async () => JSON.parse(await unpacked("specs")));
  const raw = once(async () => JSON.parse(await unpacked("raw")));
  const details = once(async () => JSON.parse(await unpacked("details")));
  const runtime = once(async () => {
    const script = document.createElement("script");
    script.textContent = await unpacked("runtime");
    document.head.append(script);
  });

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

  // A reader may select a case in the matrix of a contest.
  const onDraw = (figure, view) => {
    if (figure.dataset.contest) view.addEventListener("click", (_, item) => pick(figure.dataset.contest, item?.datum?.case));
  };

  assayPage.start({ specs, runtime, onDraw });
  byId("csv")?.addEventListener("click", async () => save("executions.csv", "text/csv", csv(await raw())));
  byId("json")?.addEventListener("click", async () => save("result.json", "application/json", json(await raw())));
  for (const select of document.querySelectorAll("[data-cases]")) select.addEventListener("change", () => pick(select.dataset.cases, select.value));
})();
