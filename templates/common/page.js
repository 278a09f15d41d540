// SPDX-License-Identifier: Apache-2.0
// What every page can do: sorts tables, and shows a text beside the pointer. Pages say everything without it.
"use strict";
const page = (() => {
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  // --- sorting ---------------------------------------------------------------------------------------------------
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort || cell.textContent.trim();
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

  // --- a text beside the pointer ---------------------------------------------------------------------------------
  const tip = document.getElementById("tip");
  const showTip = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const top = event.clientY + 18 + box.height > window.innerHeight ? event.clientY - box.height - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  const hideTip = () => { tip.hidden = true; };

  return { all, showTip, hideTip };
})();
