"use strict";
// What the pages of the dashboard do beside their charts: load the chart library, filter by themselves, follow runs, answer the keyboard.
(() => {
  const { byId, once } = assayPage;
  const vega = document.currentScript.dataset.vega;

  const specs = once(async () => JSON.parse(byId("specs").textContent));
  const runtime = once(
    () =>
      new Promise((loaded, failed) => {
        const script = document.createElement("script");
        script.src = vega;
        script.onload = loaded;
        script.onerror = () => failed(new Error("the chart library could not be loaded"));
        document.head.append(script);
      }),
  );

  // Headings of tables become buttons that sort; without scripts the tables are in their own order.
  function addSorting(part) {
    for (const heading of part.querySelectorAll("table thead th")) {
      if (heading.querySelector("button") || heading.closest("[data-unsorted]")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
    }
  }

  // A case in the matrix of a contest leads to what every agent answered to it.
  function openCase(element, id) {
    const url = element.closest("[data-cases-url]")?.dataset.casesUrl;
    if (url && id) location.assign(url + encodeURIComponent(id));
  }

  const onDraw = (figure, view) => view.addEventListener("click", (_, item) => openCase(figure, item?.datum?.case));

  addSorting(byId("main"));
  assayPage.start({ specs, runtime, onDraw });
  addEventListener("change", ({ target }) => {
    if (target.dataset.cases) openCase(target, target.value);
  });

  // The analysis of a run takes a while, so it has a page of its own, whose content comes here when it is made.
  async function fillIn(place) {
    const told = place.querySelector("[data-waiting]");
    told.hidden = false;
    const answer = await fetch(place.dataset.fragment);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = found.querySelector("[data-analysis]");
    if (!part) {
      told.textContent = found.querySelector(".empty p")?.textContent ?? `The server answered ${answer.status}.`;
      return;
    }
    Object.assign(await specs(), JSON.parse(found.getElementById("specs").textContent));
    place.replaceChildren(document.importNode(part, true));
    addSorting(place);
    assayPage.equip(place);
  }

  for (const place of document.querySelectorAll("[data-fragment]")) {
    const fill = () => fillIn(place).catch((error) => (place.querySelector("[data-waiting]").textContent = error.message));
    if (place.dataset.when === "asked") {
      place.querySelector("[data-ask]").addEventListener("click", (event) => {
        event.preventDefault();
        fill();
      });
    } else fill();
  }

  // Figures that a process is working out: the page is loaded anew as soon as it would say something else.
  const computing = document.querySelector("[data-computing]");
  async function lookAgain(pause) {
    await new Promise((over) => setTimeout(over, pause));
    const answer = await fetch(location.href).catch(() => null);
    const told = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-computing]");
    if (told === null) location.reload();
    else lookAgain(Math.min(30000, 1.5 * pause));
  }
  if (computing) lookAgain(1000);

  // Forms that only filter are sent as soon as something is chosen; empty fields stay out of the address.
  for (const form of document.querySelectorAll("form[data-auto]")) {
    form.addEventListener("change", (event) => {
      if (event.target.type !== "checkbox") form.requestSubmit();
    });
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && !field.value) field.disabled = true;
    });
  }

  // What cannot be undone is asked about once more.
  for (const form of document.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (event) => {
      if (!confirm(form.dataset.confirm)) event.preventDefault();
    });
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(byId(button.dataset.copy).textContent);
      button.textContent = "Copied";
    });
  }

  const isTyping = (target) => target.closest("input, select, textarea, [contenteditable]");

  // "/" searches; "g" and a letter goes to a page; a letter alone does what the page offers for it; "j" and "k" go through the rows of a list.
  const pages = { d: "/", l: "/ui/leaderboard", r: "/ui/runs", a: "/ui/agents", s: "/ui/suites", c: "/ui/compare" };
  let hasPrefix = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "/" && byId("search")) {
      event.preventDefault();
      byId("search").focus();
    } else if (!hasPrefix && document.querySelector(`[data-key="${CSS.escape(event.key)}"]`)) {
      event.preventDefault();
      document.querySelector(`[data-key="${CSS.escape(event.key)}"]`).click();
    } else if (hasPrefix && pages[event.key]) {
      location.assign(pages[event.key]);
    } else if (event.key === "j" || event.key === "k") {
      moveAlong(event.key === "j" ? 1 : -1);
    }
    hasPrefix = event.key === "g";
  });

  function moveAlong(step) {
    const links = [...document.querySelectorAll("main tbody td:first-child a")];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
  }

  // A run that goes on tells how far it is; when it is over, the page is loaded anew with its results.
  const live = byId("live");
  if (live) {
    const events = new EventSource(live.dataset.events);
    events.addEventListener("status", (event) => {
      const status = JSON.parse(event.data);
      const { done, planned } = status.progress;
      const share = planned ? Math.min(1, done / planned) : 0;
      live.querySelector("progress").value = share;
      live.querySelector("[data-status]").textContent = status.position ? `${status.status}, place ${status.position}` : status.status;
      live.querySelector("[data-done]").textContent = `${done.toLocaleString("en")} of ${planned.toLocaleString("en")} executions`;
      document.title = `${Math.round(share * 100)} % · ${document.title.replace(/^\d+ % · /, "")}`;
      if (status.is_over) {
        events.close();
        location.reload();
      }
    });
  }
})();
