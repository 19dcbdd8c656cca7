"use strict";
// What every page of Assay does, in a report and on the dashboard: draws its charts, changes colours, sorts its tables.
const assayPage = (() => {
  const NARROW = 560;
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const configs = JSON.parse(byId("configs").textContent);
  const system = matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();
  let sources;

  function once(make) {
    let made;
    return () => (made ??= make());
  }

  // Charts are drawn when they come near the window: a sweep of hundreds opens as fast as one trial.
  async function draw(figure) {
    const [all] = await Promise.all([sources.specs(), sources.runtime()]);
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
    const tooltip = { theme: dark ? "dark" : "light", disableDefaultStyle: true };
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config, tooltip };
    const result = await window.vegaEmbed(figure, spec, options);
    drawn.set(figure, result);
    sources.onDraw?.(figure, result.view);
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

  function sortBy(button) {
    const heading = button.closest("th");
    const body = button.closest("table").tBodies[0];
    const upward = heading.getAttribute("aria-sort") !== "ascending";
    const key = (row) => row.cells[heading.cellIndex].dataset.sort ?? row.cells[heading.cellIndex].textContent.trim();
    const order = (a, b) => (isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b), undefined, { numeric: true }) : key(a) - key(b));
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", upward ? "ascending" : "descending");
    body.append(...[...body.rows].sort((a, b) => (upward ? order(a, b) : order(b, a))));
  }

  function start(given) {
    sources = given;
    setTheme(remembered() ?? (system.matches ? "dark" : "light"));
    system.addEventListener("change", () => remembered() ?? setTheme(system.matches ? "dark" : "light"));
    byId("theme").addEventListener("click", () => {
      const theme = root.dataset.theme === "dark" ? "light" : "dark";
      remembered(theme);
      setTheme(theme);
    });
    equip(document);
    addEventListener("hashchange", openTarget);
    addEventListener("beforeprint", () => document.querySelectorAll("details.more").forEach((part) => (part.open = true)));
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

  // Makes what is within a part of the page work: charts, tables that sort, and the tools of a report.
  function equip(part) {
    for (const button of part.querySelectorAll("th button")) button.addEventListener("click", () => sortBy(button));
    for (const figure of part.querySelectorAll(".chart")) watcher.observe(figure);
    part.querySelector("#filter")?.addEventListener("input", (event) => filter(event.target.value));
    part.querySelector("#unfold")?.addEventListener("click", () => document.querySelectorAll("details.trial").forEach((item) => (item.open = true)));
    openTarget();
  }

  return { start, equip, once, byId };
})();
