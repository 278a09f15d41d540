// SPDX-License-Identifier: Apache-2.0
// Sorts tables and names the node under the pointer. The report says everything without it.
"use strict";
(() => {
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  const keyOf = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = Number.parseFloat(text);
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    const numbers = typeof a === "number" && typeof b === "number";
    return numbers ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sortBy = (table, head) => {
    const ascending = head.getAttribute("aria-sort") !== "ascending";
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row, order) => ({ row, order, key: keyOf(row, head.cellIndex) }));
    rows.sort((a, b) => (ascending ? 1 : -1) * compare(a.key, b.key) || a.order - b.order);
    for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    for (const { row } of rows) body.append(row);
  };
  for (const table of all("table.sortable")) {
    for (const head of all("thead th", table)) {
      head.tabIndex = 0;
      head.addEventListener("click", () => sortBy(table, head));
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          sortBy(table, head);
        }
      });
    }
  }

  // --- which node is under the pointer ---------------------------------------------------------------------------
  const source = document.getElementById("hover");
  const tip = document.getElementById("tip");
  const columns = Number(source.dataset.columns);
  const cell = Number(source.dataset.cell);
  let lines = null;
  for (const map of all(".node-map")) {
    map.addEventListener("pointermove", (event) => {
      lines = lines || source.textContent.split("\n");
      const box = map.getBoundingClientRect();
      const scale = map.viewBox.baseVal.width / box.width;
      const column = Math.floor((event.clientX - box.left) * scale / cell);
      const row = Math.floor((event.clientY - box.top) * scale / cell);
      const line = lines[row * columns + column];
      tip.hidden = !line;
      if (!line) return;
      tip.textContent = line;
      tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${event.clientY + 14}px`;
    });
    map.addEventListener("pointerleave", () => {
      tip.hidden = true;
    });
  }
})();
