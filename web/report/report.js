// Makes the report's drawings answer: a cursor that all charts of an axis share, zoom, lines that can be hidden,
// a button that copies the command, a filter for the facts. The page is whole without it.
(() => {
  'use strict';
  const block = document.getElementById('data');
  if (!block) return;
  const data = JSON.parse(block.textContent);
  const SVG = 'http://www.w3.org/2000/svg';
  const WIDE = 10000, TALL = 1000;

  // Figures, as the page writes them.
  const three = v => {
    const m = Math.abs(v);
    return String(Number(v.toFixed(m >= 99.95 ? 0 : m >= 9.995 ? 1 : 2)));
  };
  const number = v => Math.abs(v) >= 999.5
    ? String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ',')
    : three(v);
  const us = v => {
    const m = Math.abs(v);
    if (m === 0) return '0 µs';
    if (m < 0.9995) return three(v * 1e3) + ' ns';
    if (m < 999.5) return three(v) + ' µs';
    if (m < 999500) return three(v / 1e3) + ' ms';
    return three(v / 1e6) + ' s';
  };
  const bytes = v => {
    for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
      if (v < 1024) return three(v) + ' ' + unit;
      v /= 1024;
    }
    return three(v) + ' TiB';
  };
  const show = {
    ps: v => number(v) + '/s', us, cpu: v => three(v) + ' CPUs', bps: v => bytes(v) + '/s', pc: v => three(v * 100) + ' %', n: number,
  };
  const fixed = v => Number(v.toFixed(2));
  const pad = n => String(n).padStart(2, '0');
  const clock = (s, whole, fine) => {
    if (whole <= 120) return (fine ? Number(s.toFixed(2)) : Math.round(s)) + ' s';
    const t = Math.round(s), h = Math.floor(t / 3600), m = Math.floor(t / 60) % 60;
    return whole < 3600 ? m + ':' + pad(t % 60) : h + ':' + pad(m) + ':' + pad(t % 60);
  };
  const share = q => Number((q * 100).toFixed(5)) + ' %';

  // Where a value lies on an axis, 0 to 1, and back.
  const axes = {
    linear: {
      to: (c, v) => (v - c.lo) / (c.hi - c.lo),
      from: (c, p) => c.lo + p * (c.hi - c.lo),
      name: (c, v) => clock(v, c.hi, true),
      ticks: (c, low, high) => {
        const steps = [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
        const step = steps.find(s => (high - low) / s <= 8) || 86400;
        const ticks = [];
        for (let n = Math.ceil(low / step); n * step <= high + 1e-9; n++) {
          ticks.push([n * step, clock(n * step, c.hi, step < 1)]);
        }
        return ticks;
      },
    },
    nines: {
      to: (c, v) => -Math.log10(Math.max(1 - v, 1e-12)) / c.hi,
      from: (c, p) => 1 - 10 ** (-p * c.hi),
      name: (c, v) => share(v),
      ticks: (c, low, high) => [0, .5, .75, .9, .95, .99, .995, .999, .9995, .9999, .99999, .999999]
        .filter(v => v >= low && v <= high).map(v => [v, share(v)]),
    },
    log: {
      to: (c, v) => Math.log(v / c.lo) / Math.log(c.hi / c.lo),
      from: (c, p) => c.lo * (c.hi / c.lo) ** p,
      name: (c, v) => number(v) + ' ' + c.xl,
      ticks: () => [],
    },
  };

  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const draw = (parent, name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const said = make('div', { class: 'said', 'aria-live': 'polite', id: 'said' });
  document.body.append(said);

  class Group {
    constructor(key) {
      this.key = key;
      this.charts = [];
      this.bars = [];
      this.view = null;   // [from, to] in values; null is everything
      this.cursor = null; // value
    }

    see(low, high) {
      const chart = this.charts[0];
      const [a, b] = [chart.at(low), chart.at(high)];
      // Nearer than a thousandth there is nothing to see; wider than everything is everything.
      this.view = b - a < 0.001 || (a <= 0.0005 && b >= 0.9995) ? (b - a < 0.001 ? this.view : null)
        : [Math.max(a, 0), Math.min(b, 1)].map(p => chart.value(p));
      for (const each of this.charts) each.show();
      for (const bar of this.bars) bar.reset.disabled = !this.view;
    }

    reset() {
      this.view = null;
      for (const each of this.charts) each.show();
      for (const bar of this.bars) bar.reset.disabled = true;
    }

    zoom(factor) {
      const chart = this.charts[0];
      const [low, high] = chart.range();
      const middle = this.cursor !== null && chart.at(this.cursor) >= low && chart.at(this.cursor) <= high
        ? chart.at(this.cursor) : (low + high) / 2;
      const from = middle - (middle - low) * factor, to = middle + (high - middle) * factor;
      this.see(chart.value(Math.max(from, 0)), chart.value(Math.min(to, 1)));
    }

    point(value, speaker) {
      this.cursor = value;
      for (const chart of this.charts) chart.point(value);
      const name = value === null ? '' : this.charts[0].name(value);
      for (const bar of this.bars) bar.at.textContent = name;
      if (speaker && value !== null) said.textContent = name + ': ' + speaker.words(value);
    }
  }

  class Chart {
    constructor(info, figure, group) {
      this.info = info;
      this.axis = axes[info.kind];
      this.group = group;
      this.figure = figure;
      this.frame = figure.querySelector('.frame');
      this.plot = figure.querySelector('svg.plot');
      this.inner = figure.querySelector('svg.in');
      this.ticks = figure.querySelector('.xt');
      this.allTicks = [...this.ticks.children];
      this.labels = [...figure.querySelectorAll('.st')];
      this.xs = info.s.map(s => data.xs[s.x]);
      // Places with a value; a gap in a line is no place to stop at.
      // Of a fitted curve only what was measured counts.
      const known = info.s.flatMap((s, n) => (info.kind === 'log' && !s.d ? [] : this.xs[n].filter((x, i) => s.v[i] !== null)));
      this.stops = [...new Set(known)].sort((a, b) => a - b);
      this.line = draw(this.inner, 'path', { class: 'cur', d: '' });
      this.legend();
      this.listen();
    }

    at(value) { return this.axis.to(this.info, value); }
    value(p) { return this.axis.from(this.info, p); }
    name(value) { return this.axis.name(this.info, value); }
    range() { return this.group.view ? this.group.view.map(v => this.at(v)) : [0, 1]; }

    show() {
      const [low, high] = this.range();
      const width = high - low;
      this.inner.setAttribute('viewBox', [fixed(low * WIDE), 0, fixed(width * WIDE), TALL].join(' '));
      this.ticks.replaceChildren();
      if (!this.group.view) {
        this.ticks.append(...this.allTicks);
      } else {
        for (const [value, label] of this.axis.ticks(this.info, this.value(low), this.value(high))) {
          const x = (this.at(value) - low) / width * 100 + '%';
          const tick = draw(this.ticks, 'g', (this.at(value) - low) / width > 0.96 ? { class: 'e' } : {});
          draw(tick, 'line', { x1: x, x2: x, y2: '100%' });
          draw(tick, 'text', { x, y: '100%', dy: '1.5em' }, label);
        }
      }
      for (const label of this.labels) {
        const x = (label.dataset.x - low) / width;
        label.setAttribute('visibility', x < 0.02 || x > 0.98 ? 'hidden' : 'visible');
        for (const text of label.children) text.setAttribute('x', x * 100 + '%');
      }
    }

    // Index of the value nearest to a place, or -1 where the line has none near it.
    nearest(n, value) {
      const xs = this.xs[n];
      if (!xs.length) return -1;
      let low = 0, high = xs.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (xs[middle] <= value) low = middle; else high = middle;
      }
      const best = Math.abs(xs[low] - value) <= Math.abs(xs[high] - value) ? low : high;
      const gap = xs.length > 1 ? (xs[xs.length - 1] - xs[0]) / (xs.length - 1) : Infinity;
      if (this.info.kind === 'linear' && Math.abs(xs[best] - value) > 1.01 * gap) return -1;
      if (this.info.kind === 'nines' && value > xs[xs.length - 1] + 1e-9) return -1;
      if (this.info.kind === 'log' && xs[best] !== value) return -1;
      return best;
    }

    text(n, value) {
      const series = this.info.s[n];
      const i = this.nearest(n, value);
      if (i < 0 || series.v[i] === null) return '–';
      const range = series.l && series.l[i] !== null && series.l[i] !== series.h[i];
      return show[this.info.u](series.v[i])
        + (range ? ' (' + show[this.info.u](series.l[i]) + ' – ' + show[this.info.u](series.h[i]) + ')' : '');
    }

    words(value) {
      return this.info.s.map((s, n) => s.n + ' ' + this.text(n, value)).join(', ');
    }

    point(value) {
      this.line.setAttribute('d', value === null ? '' : 'M' + fixed(this.at(value) * WIDE) + ' 0V' + TALL);
      this.outputs.forEach((output, n) => { output.textContent = value === null ? '' : this.text(n, value); });
    }

    snap(value) {
      return this.stops.reduce((best, x) =>
        Math.abs(this.at(x) - this.at(value)) < Math.abs(this.at(best) - this.at(value)) ? x : best, this.stops[0]);
    }

    step(by) {
      const [low, high] = this.range();
      const seen = this.stops.filter(x => this.at(x) >= low - 1e-9 && this.at(x) <= high + 1e-9);
      if (!seen.length) return;
      let i = seen.indexOf(this.group.cursor === null ? NaN : this.snap(this.group.cursor));
      i = by === -Infinity ? 0 : by === Infinity ? seen.length - 1 : i < 0 ? (by > 0 ? 0 : seen.length - 1) : i + by;
      this.group.point(seen[Math.min(Math.max(i, 0), seen.length - 1)], this);
    }

    legend() {
      this.outputs = [];
      [...this.figure.querySelectorAll('.legend li')].forEach((item, n) => {
        const key = item.querySelector('.key');
        const button = make('button', { type: 'button', class: 'key', 'aria-pressed': 'true', title: 'Show or hide this line' });
        button.append(...key.childNodes);
        key.replaceWith(button);
        button.addEventListener('click', () => {
          const on = button.getAttribute('aria-pressed') !== 'true';
          button.setAttribute('aria-pressed', String(on));
          this.inner.querySelector('[data-s="' + n + '"]').classList.toggle('off', !on);
        });
        const output = make('output', { 'aria-live': 'off' });
        item.append(output);
        this.outputs.push(output);
      });
    }

    listen() {
      const { frame, group } = this;
      frame.tabIndex = 0;
      frame.setAttribute('role', 'group');
      frame.setAttribute('aria-label', this.figure.querySelector('h3').textContent
        + ': left and right arrow keys read values, plus and minus zoom, Escape resets');
      const place = event => {
        const box = this.plot.getBoundingClientRect();
        const p = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
        const [low, high] = this.range();
        return low + p * (high - low);
      };
      let from = null, mark = null;
      frame.addEventListener('pointerdown', event => {
        if (event.pointerType !== 'touch' && event.button === 0 && this.info.kind !== 'log') {
          from = place(event);
          frame.setPointerCapture(event.pointerId);
          event.preventDefault();
          frame.focus({ preventScroll: true });
        } else {
          group.point(this.snap(this.value(place(event))));
        }
      });
      frame.addEventListener('pointermove', event => {
        const p = place(event);
        group.point(this.snap(this.value(p)));
        if (from === null) return;
        const [low, high] = this.range();
        if (!mark && Math.abs(p - from) > (high - low) * 0.008) {
          mark = draw(this.inner, 'rect', { class: 'zoom', y: 0, height: TALL });
        }
        if (mark) {
          mark.setAttribute('x', Math.min(from, p) * WIDE);
          mark.setAttribute('width', Math.abs(p - from) * WIDE);
        }
      });
      const end = event => {
        const drawn = mark !== null;
        const start = from;
        if (mark) mark.remove();
        from = mark = null;
        if (drawn && event.type === 'pointerup') {
          const to = place(event);
          group.see(this.value(Math.min(start, to)), this.value(Math.max(start, to)));
        }
      };
      frame.addEventListener('pointerup', end);
      frame.addEventListener('pointercancel', end);
      frame.addEventListener('pointerleave', event => {
        if (from === null && event.pointerType === 'mouse') group.point(null);
      });
      frame.addEventListener('dblclick', () => group.reset());
      frame.addEventListener('keydown', event => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const far = event.shiftKey ? 10 : 1;
        const keys = {
          ArrowLeft: () => this.step(-far), ArrowRight: () => this.step(far),
          Home: () => this.step(-Infinity), End: () => this.step(Infinity),
          '+': () => group.zoom(0.5), '=': () => group.zoom(0.5), '-': () => group.zoom(2),
          '0': () => group.reset(), Escape: () => { group.reset(); group.point(null); },
        };
        if (keys[event.key]) {
          keys[event.key]();
          event.preventDefault();
        }
      });
    }
  }

  const groups = new Map();
  for (const info of data.charts) {
    const figure = document.getElementById(info.id);
    if (!figure) continue;
    const key = figure.dataset.group;
    if (!groups.has(key)) groups.set(key, new Group(key));
    const group = groups.get(key);
    group.charts.push(new Chart(info, figure, group));
  }

  // One row of tools above each block of charts.
  for (const container of document.querySelectorAll('.charts')) {
    const group = groups.get(container.querySelector('.chart').dataset.group);
    if (!group) continue;
    const at = make('span', { class: 'at' });
    const button = (label, title, action) => {
      const element = make('button', { type: 'button', 'aria-label': title, title }, label);
      element.addEventListener('click', action);
      return element;
    };
    const reset = button('Whole range', 'Show the whole range', () => group.reset());
    reset.disabled = true;
    group.bars.push({ at, reset });
    const zoom = group.key === 'load' ? [] : [
      button('+', 'Zoom in', () => group.zoom(0.5)), button('−', 'Zoom out', () => group.zoom(2)), reset,
      make('span', { class: 'hint' }, 'Drag over a chart to zoom.'),
    ];
    container.before(make('div', { class: zoom.length ? 'tools' : 'tools bare' }, ...zoom, at));
  }

  for (const command of document.querySelectorAll('.command')) {
    const code = command.querySelector('code');
    const button = make('button', { type: 'button', class: 'copy' }, 'Copy');
    const done = () => { button.textContent = said.textContent = 'Copied'; };
    const select = () => {
      getSelection().selectAllChildren(code);
      button.textContent = 'Selected: press Ctrl+C';
    };
    button.addEventListener('click', () => {
      if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
      else select();
    });
    command.append(button);
  }

  for (const details of document.querySelectorAll('.all-facts')) {
    const groups = [...details.querySelectorAll('tbody')];
    const input = make('input', { type: 'search', class: 'filter', placeholder: 'Filter facts', 'aria-label': 'Filter facts' });
    input.addEventListener('input', () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const group of groups) {
        const [source, ...rows] = group.rows;
        for (const row of rows) {
          const text = (source.textContent + ' ' + row.textContent).toLowerCase();
          row.hidden = !words.every(word => text.includes(word));
        }
        group.hidden = rows.every(row => row.hidden);
      }
    });
    details.querySelector('summary').after(input);
  }
})();
