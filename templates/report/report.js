// SPDX-License-Identifier: Apache-2.0
// Filters tables and shows values on hover. The report says everything without it. common/page.js stands before it.
"use strict";
(() => {
  const { all, showTip, hideTip } = page;

  // --- filtering -------------------------------------------------------------------------------------------------
  const controls = document.getElementById("controls");
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Filter measurements ( / )";
  search.setAttribute("aria-label", "Filter measurements");
  const onlyDeviations = document.createElement("input");
  onlyDeviations.type = "checkbox";
  const label = document.createElement("label");
  label.append(onlyDeviations, " findings only");
  const shown = document.createElement("span");
  shown.setAttribute("role", "status");
  const rows = all("table.heat tbody tr");
  const isMatch = (row, wanted) => (!onlyDeviations.checked || row.dataset.outcome !== "pass") &&
    (wanted === "" || row.textContent.toLowerCase().includes(wanted));
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    const active = wanted !== "" || onlyDeviations.checked;
    for (const row of rows) row.classList.toggle("filtered", active && !isMatch(row, wanted));
    for (const stage of all("details.stage")) {
      const found = all("table.heat tbody tr:not(.filtered)", stage).length > 0;
      stage.classList.toggle("filtered", active && !found);
      if (active && found) stage.open = true;
    }
    const count = rows.filter((row) => !row.classList.contains("filtered")).length;
    shown.textContent = active ? `${count} of ${rows.length} rows` : "";
  };
  const filterByHand = () => {
    filter();
    history.replaceState(null, "", search.value === "" ? "#stages" : `#q=${encodeURIComponent(search.value)}`);
  };
  search.addEventListener("input", filterByHand);
  onlyDeviations.addEventListener("change", filter);
  if (rows.length > 0) {
    controls.append(search, label, shown);
    controls.hidden = false;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    search.focus();
  });

  // --- addresses: #q=TEXT filters, any other opens what it names -------------------------------------------------
  const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ""; } };
  const follow = () => {
    const hash = location.hash;
    if (hash.startsWith("#q=")) {
      search.value = decoded(hash.slice(3));
      filter();
      controls.scrollIntoView();
      return;
    }
    const target = document.getElementById(decoded(hash.slice(1)));
    if (target === null) return;
    for (let part = target; part !== null; part = part.parentElement)
      if (part instanceof HTMLDetailsElement) part.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", follow);
  follow();

  // --- values on hover -------------------------------------------------------------------------------------------
  for (const bar of all(".plot [data-tip]")) {
    bar.querySelector("title").remove();
    bar.addEventListener("mousemove", (event) => showTip(event, bar.dataset.tip));
    bar.addEventListener("mouseleave", hideTip);
  }

  const short = (number) => String(Number(number.toPrecision(3)));
  const readLine = (path) => {
    path.querySelector("title").remove();
    const points = path.getAttribute("d").split(/[ML]/).slice(1).map((pair) => pair.split(" ").map(Number));
    return { name: path.dataset.name, points };
  };
  const nearest = (points, x) => points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
  for (const plot of all("svg.plot.lines")) {
    const [left, right, low, high, scale] = plot.dataset.x.split(" ").map((part) => (part === "log" || part === "linear" ? part : Number(part)));
    const [bottom, top, yLow, yHigh] = plot.dataset.y.split(" ").slice(0, 4).map(Number);
    const yLog = plot.dataset.y.endsWith("log");
    const area = plot.querySelector("g.area");
    const lines = all("path.line", plot).map(readLine).filter((line) => line.points.length > 0);
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor");
    const xValue = (x) => {
      const share = (x - left) / (right - left);
      return scale === "log" ? low * (high / low) ** share : low + (high - low) * share;
    };
    const yValue = (y) => {
      const share = (bottom - y) / (bottom - top);
      return yLog ? yLow * (yHigh / yLow) ** share : yLow + (yHigh - yLow) * share;
    };
    plot.addEventListener("mousemove", (event) => {
      const box = plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * plot.viewBox.baseVal.width;
      if (lines.length === 0 || x < left || x > right) return;
      const at = nearest(lines[0].points, x)[0];
      for (const [name, value] of [["x1", at], ["x2", at], ["y1", top], ["y2", bottom]]) cursor.setAttribute(name, value);
      area.append(cursor);
      const rows = lines.map((line) => `${line.name}  ≈ ${short(yValue(nearest(line.points, at)[1]))} ${plot.dataset.yUnit}`);
      showTip(event, [`at ${short(xValue(at))} ${plot.dataset.xUnit}`, ...rows].join("\n"));
    });
    plot.addEventListener("mouseleave", () => { cursor.remove(); hideTip(); });
  }
})();
