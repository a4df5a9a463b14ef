/* Exact values at the pointer (or by the arrow keys) over charts that were drawn when the page was written. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const SVG = 'http://www.w3.org/2000/svg';

  /** Let the charts inside `root` tell their numbers; charts: what each was drawn from, by its key. */
  phalanx.charts = (root, charts) => {
    for (const drawn of root.querySelectorAll('.drawn')) {
      const told = charts[drawn.dataset.chart];
      if (told) attach(drawn, told);
    }
  };

  /** A number as people read it: thousands apart, as many digits as it was given. */
  phalanx.asText = (value, isShare) => {
    if (value === null || value === undefined) return 'unknown';
    if (isShare) return `${(100 * value).toFixed(1)} %`.replace('-', '−');
    const size = Math.abs(value);
    if (size > 0 && size < 0.1) return String(Number(value.toPrecision(3))).replaceAll('-', '−');
    const digits = size >= 1000 ? 0 : size >= 1 ? 2 : 3;
    return value.toLocaleString('en', { maximumFractionDigits: digits }).replace('-', '−');
  };

  function attach(drawn, told) {
    const svg = drawn.querySelector('svg');
    const marks = document.createElementNS(SVG, 'g');
    svg.append(marks);
    const tip = document.createElement('div');
    tip.className = 'tip hidden';
    tip.setAttribute('role', 'status');
    drawn.append(tip);
    const stops = [...new Set(told.series.flatMap((one) => one.x.filter((x, i) => x !== null && one.mean[i] !== null)))].sort((a, b) => a - b);
    if (!stops.length) return;
    let at = stops.length - 1;

    const across = (x) => told.plot.left + ((x - told.x[0]) / (told.x[1] - told.x[0])) * told.plot.width;
    const down = (y) => told.plot.top + (1 - (y - told.y[0]) / (told.y[1] - told.y[0])) * told.plot.height;

    function show(index) {
      at = Math.max(0, Math.min(stops.length - 1, index));
      const x = stops[at];
      marks.replaceChildren(line(across(x)));
      tip.replaceChildren(heading(x), values(x));
      tip.classList.remove('hidden');
      place(across(x));
    }

    function hide() {
      marks.replaceChildren();
      tip.classList.add('hidden');
    }

    function line(x) {
      const rule = document.createElementNS(SVG, 'line');
      const ends = { x1: x, x2: x, y1: told.plot.top, y2: told.plot.top + told.plot.height, stroke: 'var(--quiet)' };
      for (const [name, value] of Object.entries(ends)) rule.setAttribute(name, value);
      return rule;
    }

    function dot(x, y, colour) {
      if (y < told.y[0] || y > told.y[1]) return;
      const circle = document.createElementNS(SVG, 'circle');
      const shape = { cx: across(x), cy: down(y), r: 3.5, fill: colour, stroke: 'var(--page)' };
      for (const [name, value] of Object.entries(shape)) circle.setAttribute(name, value);
      marks.append(circle);
    }

    function heading(x) {
      const title = document.createElement('div');
      title.className = 'quiet';
      const named = told.series.find((one) => one.labels.length && one.x.includes(x));
      title.textContent = named ? named.labels[named.x.indexOf(x)] : `${phalanx.asText(x, false)} ${told.xTitle}`;
      return title;
    }

    function values(x) {
      const table = document.createElement('table');
      let floor = 0;
      for (const one of told.series) {
        const i = nearest(one, x);
        const mean = i < 0 ? null : one.mean[i];
        if (mean === null) continue;
        const row = table.insertRow();
        const name = row.insertCell();
        const colour = document.createElement('i');
        colour.style.background = one.colour;
        name.append(colour, one.name);
        cell(row, phalanx.asText(mean, told.isShare));
        const known = one.low[i] !== null && one.high[i] !== null;
        const apart = known && (one.low[i] !== mean || one.high[i] !== mean);
        cell(row, apart ? `${phalanx.asText(one.low[i], told.isShare)} to ${phalanx.asText(one.high[i], told.isShare)}` : '').classList.add('quiet');
        dot(one.x[i], told.isStack ? floor + mean : mean, one.colour);
        floor += mean;
      }
      return table;
    }

    function cell(row, text) {
      const made = row.insertCell();
      made.className = 'number';
      made.textContent = text;
      return made;
    }

    /** The point of a curve at x; another's points may lie elsewhere, but not far away. */
    function nearest(one, x) {
      let best = -1;
      one.x.forEach((value, i) => {
        if (value !== null && one.mean[i] !== null && (best < 0 || Math.abs(value - x) < Math.abs(one.x[best] - x))) best = i;
      });
      const near = (told.x[1] - told.x[0]) / 40;
      return best >= 0 && (Math.abs(one.x[best] - x) <= near || one.x.length === 1) ? best : -1;
    }

    function place(x) {
      const scale = svg.clientWidth / told.size[0];
      const room = drawn.clientWidth - tip.offsetWidth;
      const beside = x * scale + 12;
      const left = beside <= room ? beside : x * scale - tip.offsetWidth - 12;
      tip.style.left = `${Math.max(0, Math.min(room, left))}px`;
      tip.style.top = `${told.plot.top * scale}px`;
    }

    function point(event) {
      const box = svg.getBoundingClientRect();
      const inside = ((event.clientX - box.left) / box.width) * told.size[0];
      const x = told.x[0] + ((inside - told.plot.left) / told.plot.width) * (told.x[1] - told.x[0]);
      let best = 0;
      stops.forEach((stop, i) => { if (Math.abs(stop - x) < Math.abs(stops[best] - x)) best = i; });
      show(best);
    }

    drawn.addEventListener('pointermove', point);
    drawn.addEventListener('pointerdown', point);
    drawn.addEventListener('pointerleave', hide);
    drawn.addEventListener('blur', hide);
    drawn.addEventListener('keydown', (event) => {
      const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: stops.length - 1 };
      if (event.key === 'Escape') hide();
      if (!(event.key in moves)) return;
      event.preventDefault();
      show(moves[event.key]);
    });
  }

  const data = document.getElementById('charts');
  if (data) phalanx.charts(document, JSON.parse(data.textContent));
})();
