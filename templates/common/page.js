// SPDX-License-Identifier: Apache-2.0
// What every page can do: sorts tables, and shows a text beside the pointer. Pages say everything without it.
"use strict";
const page = (() => {
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  // --- sorting ---------------------------------------------------------------------------------------------------
  // Values in different units are compared as quantities: 2 GB/s lies above 900 MB/s, and 1m30s above 45s.
  const prefixes = { n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };
  const seconds = { d: 86400, h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9 };
  const quantity = (text) => {
    if (/^(\d+(\.\d+)?(d|h|ms|us|ns|m|s))+$/.test(text))
      return Array.from(text.matchAll(/(\d+(?:\.\d+)?)(d|h|ms|us|ns|m|s)/g)).reduce((sum, part) => sum + part[1] * seconds[part[2]], 0);
    const match = /^(-?\d+(?:\.\d+)?) ([KMGT]i|[kMGTP])(?:B|B\/s|b\/s|FLOP\/s|OP\/s|Hz|W)\b/.exec(text);
    return match === null ? Number.parseFloat(text) : match[1] * prefixes[match[2]];
  };
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort || cell.textContent.trim();
    const number = quantity(text);
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
