// SPDX-License-Identifier: Apache-2.0
// Searches the nodes and keeps the search in the address. The report says everything without it. common/page.js stands before it.
"use strict";
(() => {
  const field = document.getElementById("q");
  const hits = document.getElementById("hits");
  const rows = page.all(".all-nodes tbody tr");
  const texts = [];
  field.closest(".search").hidden = false;
  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, i) => {
      if (words.length > 0 && texts[i] === undefined) texts[i] = row.textContent.toLowerCase();
      const found = words.every((word) => texts[i].includes(word));
      row.classList.toggle("filtered", !found);
      if (found) count += 1;
    });
    hits.textContent = words.length > 0 ? `${count} of ${rows.length}` : "";
  };
  const read = () => {
    const match = /^#q=(.*)$/.exec(window.location.hash);
    if (match === null) return;
    try {
      field.value = decodeURIComponent(match[1]);
    } catch {
      field.value = match[1];
    }
    show();
    document.getElementById("nodes").scrollIntoView();
  };
  field.addEventListener("input", () => {
    show();
    const hash = field.value === "" ? " " : `#q=${encodeURIComponent(field.value)}`;
    try {
      window.history.replaceState(null, "", hash === " " ? window.location.pathname : hash);
    } catch {
      // A page without an address of its own keeps no search.
    }
  });
  window.addEventListener("hashchange", read);
  read();
})();
