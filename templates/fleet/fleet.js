// SPDX-License-Identifier: Apache-2.0
// Names the node under the pointer. The report says everything without it. common/page.js stands before it.
"use strict";
(() => {
  const source = document.getElementById("hover");
  const columns = Number(source.dataset.columns);
  const cell = Number(source.dataset.cell);
  let lines = null;
  for (const map of page.all(".node-map")) {
    map.addEventListener("pointermove", (event) => {
      lines = lines || source.textContent.split("\n");
      const box = map.getBoundingClientRect();
      const scale = map.viewBox.baseVal.width / box.width;
      const column = Math.floor((event.clientX - box.left) * scale / cell);
      const row = Math.floor((event.clientY - box.top) * scale / cell);
      const line = lines[row * columns + column];
      if (line) page.showTip(event, line);
      else page.hideTip();
    });
    map.addEventListener("pointerleave", page.hideTip);
  }
})();
