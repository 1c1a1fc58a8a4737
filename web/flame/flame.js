"use strict";
// Draws the stacks of the page's data as flame graphs: width is weight, callers stand below what they call.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 17;
  const data = JSON.parse(document.getElementById("flame-data").textContent);
  const search = document.getElementById("search");
  const draws = [];

  function percent(share) {
    return (100 * share).toFixed(share < 0.0995 ? 2 : 1) + " %";
  }

  function kind(part, node) {
    if (part.baseline > 0) {
      const change = node.v / part.total - node.b / part.baseline;
      // Two standard errors of the difference of two shares of samples.
      const both = (node.v + node.b) / (part.total + part.baseline);
      const noise = 2 * Math.sqrt(both * (1 - both) * (1 / part.total + 1 / part.baseline));
      if (Math.abs(change) >= Math.max(0.005, noise)) return change > 0 ? "more" : "less";
      return "hidden";
    }
    if (node.n.endsWith("_[k]") || node.n === "[kernel]") return "kernel";
    return node.n.startsWith("[") ? "hidden" : "user";
  }

  function told(part, node) {
    let text = node.n + ": " + percent(node.v / part.total) + " (" + node.v.toPrecision(4) + " " + part.unit + ")";
    if (part.baseline > 0) text += ", before " + percent(node.b / part.baseline);
    return text;
  }

  function depth(node) {
    return 1 + node.c.reduce((most, child) => Math.max(most, depth(child)), 0);
  }

  function graph(part, svg, line, reset) {
    let top = part.tree;
    function matches(node) {
      const word = search.value.trim().toLowerCase();
      return word !== "" && node.n.toLowerCase().includes(word);
    }
    function found(node) {
      return matches(node) ? node.v : node.c.reduce((sum, child) => sum + found(child), 0);
    }
    function draw() {
      const width = Math.max(svg.clientWidth, 200);
      const rows = depth(top);
      svg.replaceChildren();
      svg.setAttribute("viewBox", "0 0 " + width + " " + rows * ROW);
      svg.setAttribute("height", String(rows * ROW));
      const add = (node, x, row, wide) => {
        if (wide < 0.4) return;
        const group = document.createElementNS(SVG, "g");
        const rect = document.createElementNS(SVG, "rect");
        rect.setAttribute("x", x.toFixed(2));
        rect.setAttribute("y", String((rows - row - 1) * ROW));
        rect.setAttribute("width", wide.toFixed(2));
        rect.setAttribute("height", String(ROW));
        rect.setAttribute("class", matches(node) ? "hit" : kind(part, node));
        const title = document.createElementNS(SVG, "title");
        title.textContent = told(part, node);
        group.append(rect, title);
        const letters = Math.floor((wide - 6) / 7.3);
        if (letters >= 3) {
          const text = document.createElementNS(SVG, "text");
          text.setAttribute("x", (x + 3).toFixed(2));
          text.setAttribute("y", String((rows - row - 1) * ROW + 12.5));
          text.textContent = node.n.length > letters ? node.n.slice(0, letters - 1) + "…" : node.n;
          group.append(text);
        }
        group.addEventListener("click", () => {
          top = node;
          redraw();
        });
        group.addEventListener("mouseenter", () => {
          line.textContent = told(part, node);
        });
        svg.append(group);
        let at = x;
        for (const child of node.c) {
          const part = (child.v / node.v) * wide;
          add(child, at, row + 1, part);
          at += part;
        }
      };
      if (top.v > 0) add(top, 0, 0, width);
      const hit = search.value.trim() === "" ? "" : "found: " + percent(found(part.tree) / part.total);
      line.textContent = hit;
    }
    function redraw() {
      reset.hidden = top === part.tree;
      draw();
    }
    reset.addEventListener("click", () => {
      top = part.tree;
      redraw();
    });
    draws.push(draw);
    redraw();
  }

  data.parts.forEach((part, nth) => {
    graph(part, document.getElementById("graph-" + nth), document.getElementById("told-" + nth), document.getElementById("reset-" + nth));
  });
  search.addEventListener("input", () => draws.forEach((draw) => draw()));
  search.form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("resize", () => draws.forEach((draw) => draw()));
})();
