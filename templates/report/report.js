// SPDX-License-Identifier: Apache-2.0
// Filters tables and shows values on hover. The report says everything without it. common/page.js stands before it.
"use strict";
(() => {
  const { all, showTip, hideTip } = page;

  // --- filtering -------------------------------------------------------------------------------------------------
  const controls = document.getElementById("controls");
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Filter measurements";
  search.setAttribute("aria-label", "Filter measurements");
  const onlyDeviations = document.createElement("input");
  onlyDeviations.type = "checkbox";
  const label = document.createElement("label");
  label.append(onlyDeviations, " deviations only");
  const shown = document.createElement("span");
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    const rows = all("table.heat tbody tr");
    for (const row of rows) {
      const hidden = (onlyDeviations.checked && row.dataset.outcome === "pass") ||
        (wanted !== "" && !row.textContent.toLowerCase().includes(wanted));
      row.classList.toggle("filtered", hidden);
      if (!hidden) count += 1;
    }
    shown.textContent = count === rows.length ? "" : `${count} of ${rows.length} rows`;
  };
  search.addEventListener("input", filter);
  onlyDeviations.addEventListener("change", filter);
  if (document.querySelector("table.heat")) {
    controls.append(search, label, shown);
    controls.hidden = false;
  }

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
    const [bottom, top, yLow, yHigh] = plot.dataset.y.split(" ").map(Number);
    const lines = all("path.line", plot).map(readLine).filter((line) => line.points.length > 0);
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor");
    const xValue = (x) => {
      const share = (x - left) / (right - left);
      return scale === "log" ? low * (high / low) ** share : low + (high - low) * share;
    };
    const yValue = (y) => yLow + ((yHigh - yLow) * (bottom - y)) / (bottom - top);
    plot.addEventListener("mousemove", (event) => {
      const box = plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * plot.viewBox.baseVal.width;
      if (lines.length === 0 || x < left || x > right) return;
      const at = nearest(lines[0].points, x)[0];
      for (const [name, value] of [["x1", at], ["x2", at], ["y1", top], ["y2", bottom]]) cursor.setAttribute(name, value);
      plot.append(cursor);
      const rows = lines.map((line) => `${line.name}  ≈ ${short(yValue(nearest(line.points, at)[1]))} ${plot.dataset.yUnit}`);
      showTip(event, [`at ${short(xValue(at))} ${plot.dataset.xUnit}`, ...rows].join("\n"));
    });
    plot.addEventListener("mouseleave", () => { cursor.remove(); hideTip(); });
  }
})();
