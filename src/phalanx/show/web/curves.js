/* Curves of numbers over a run: a line each, its name at its end, its values under the pointer.
   The scale ends at the 1st and 99th percentile, so that one odd update does not flatten all others; what lies beyond
   is said. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, svg } = phalanx;
  const [LEFT, TOP, BOTTOM, NAMES, NARROW] = [48, 10, 24, 112, 16];
  const MOST_POINTS = 400;
  let made = 0;

  /** A chart: {element, draw({x: [...], lines: [{name, y: [...]}], unit})}. */
  phalanx.curves = (title, height = 184) => {
    const drawing = svg('svg', { class: 'curves', height, role: 'img', 'aria-label': title });
    const values = el('p', { class: 'values small quiet' });
    const element = el('figure', { class: 'chart' }, el('figcaption', { text: title }), drawing, values);
    const clip = `curves-${made++}`;
    let [given, shown] = [null, null];

    function draw(next = given) {
      given = next;
      const width = drawing.clientWidth;
      if (!given || !width) return;
      const lines = given.lines.filter((line) => line.y.some((value) => value !== null));
      if (!lines.length || !given.x.length) {
        drawing.replaceChildren(
          svg('text', { x: width / 2, y: height / 2, class: 'nothing-yet', 'text-anchor': 'middle' }, 'nothing yet'),
        );
        return;
      }
      const right = width - (lines.length > 1 ? NAMES : NARROW);
      shown = { ...thinned({ ...given, lines }), right };
      const { x } = shown;
      const beyond = rangeOf(shown.lines.flatMap((line) => line.y.filter((value) => value !== null)));
      const ticks = ticksOf(beyond.low, beyond.high);
      shown.toX = scale(x[0], x.at(-1), LEFT, right);
      shown.toY = scale(ticks[0], ticks.at(-1), height - BOTTOM, TOP);
      shown.idle = [
        beyond.lowest < ticks[0] ? `lowest ${precise(beyond.lowest)}` : '',
        beyond.highest > ticks.at(-1) ? `highest ${precise(beyond.highest)}` : '',
      ]
        .filter(Boolean)
        .join(' \u00b7 ');
      const last = shown.lines
        .map((line) => `${line.name ? line.name + ' ' : ''}${precise(line.y.findLast((value) => value !== null))}`)
        .join(', ');
      drawing.setAttribute('aria-label', `${title}, last: ${last}`);
      drawing.replaceChildren(
        svg(
          'clipPath',
          { id: clip },
          svg('rect', { x: LEFT, y: TOP - 2, width: Math.max(0, right - LEFT), height: height - TOP - BOTTOM + 4 }),
        ),
        ...ticks.flatMap((tick) => [
          svg('path', { class: 'grid', d: `M${LEFT} ${shown.toY(tick)} H${right}` }),
          svg('text', { class: 'tick', x: LEFT - 6, y: shown.toY(tick) + 4, 'text-anchor': 'end' }, compact(tick)),
        ]),
        ...alongTicks(x[0], x.at(-1), right - LEFT).map((tick) =>
          svg('text', { class: 'tick', x: shown.toX(tick), y: height - 6, 'text-anchor': 'middle' }, compact(tick)),
        ),
        svg('text', { class: 'tick', x: right, y: height - 6, 'text-anchor': 'end' }, given.unit || ''),
        svg(
          'g',
          { 'clip-path': `url(#${clip})` },
          ...shown.lines.map((line, index) => svg('path', { class: 'line', 'data-line': index % 7, d: pathOf(line) })),
        ),
        ...(lines.length > 1 ? endNames(shown.lines) : []),
        svg('path', { class: 'cursor' }),
      );
      values.textContent = shown.idle;
    }

    const pathOf = (line) => {
      let pen = 'M';
      return line.y
        .map((value, index) => {
          if (value === null) {
            pen = 'M';
            return '';
          }
          const step = `${pen}${shown.toX(shown.x[index]).toFixed(1)} ${shown.toY(value).toFixed(1)}`;
          pen = 'L';
          return step;
        })
        .join('');
    };

    /** Names at the ends of their lines, moved apart where they would overlap. */
    function endNames(lines) {
      const [top, bottom, gap] = [TOP + 4, height - BOTTOM, 14];
      const ends = lines
        .map((line, index) => ({ index, name: line.name, value: line.y.findLast((value) => value !== null) }))
        .map((end) => ({ ...end, at: Math.max(top, Math.min(bottom, shown.toY(end.value))) }))
        .sort((one, two) => one.at - two.at);
      for (let k = 1; k < ends.length; k++) ends[k].at = Math.max(ends[k].at, ends[k - 1].at + gap);
      ends.reduceRight((limit, end) => {
        end.at = Math.min(end.at, limit);
        return end.at - gap;
      }, bottom);
      return ends.map(({ index, name, at }) =>
        svg('text', { class: 'line-name', 'data-line': index % 7, x: shown.right + 6, y: at + 4 }, name),
      );
    }

    function point(event) {
      if (!shown) return;
      const at = event.clientX - drawing.getBoundingClientRect().left;
      const nearest = shown.x.reduce(
        (best, value, index) =>
          Math.abs(shown.toX(value) - at) < Math.abs(shown.toX(shown.x[best]) - at) ? index : best,
        0,
      );
      drawing.querySelector('.cursor')?.setAttribute('d', `M${shown.toX(shown.x[nearest])} ${TOP} V${height - BOTTOM}`);
      const told = shown.lines
        .filter((line) => line.y[nearest] !== null)
        .map((line) => `${line.name ? line.name + ' ' : ''}${precise(line.y[nearest])}`);
      const where = `${Math.round(shown.x[nearest]).toLocaleString('en')} ${given.unit || ''}`;
      values.textContent = `${where}: ${told.join(' \u00b7 ')}`;
    }
    for (const event of ['pointermove', 'pointerdown']) drawing.addEventListener(event, point);
    drawing.addEventListener('pointerleave', () => {
      drawing.querySelector('.cursor')?.removeAttribute('d');
      values.textContent = shown ? shown.idle : '';
    });
    new ResizeObserver(() => draw()).observe(drawing);
    return { element, draw };
  };

  const scale = (low, high, from, to) => (value) =>
    high === low ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from);

  /** Of many points, the means of as many as can be seen. */
  function thinned({ x, lines }) {
    const step = Math.ceil(x.length / MOST_POINTS);
    if (step <= 1) return { x, lines };
    const parts = Array.from({ length: Math.ceil(x.length / step) }, (_, k) => [
      k * step,
      Math.min(x.length, (k + 1) * step),
    ]);
    const mean = (values) => {
      const known = values.filter((value) => value !== null);
      return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
    };
    return {
      x: parts.map(([, end]) => x[end - 1]),
      lines: lines.map((line) => ({ ...line, y: parts.map(([begin, end]) => mean(line.y.slice(begin, end))) })),
    };
  }

  /** Where nearly all values lie, and where all do. */
  function rangeOf(values) {
    const sorted = [...values].sort((one, two) => one - two);
    const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
    return { low: at(0.01), high: at(0.99), lowest: sorted[0], highest: sorted.at(-1) };
  }

  function stepOf(low, high, parts) {
    const rough = (high - low) / parts;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
  }

  /** Round numbers around a range: three to six of them. */
  function ticksOf(low, high) {
    if (low === high)
      [low, high] = [low - Math.max(1e-6, Math.abs(low) * 0.1), high + Math.max(1e-6, Math.abs(high) * 0.1)];
    const step = stepOf(low, high, 4);
    const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
    return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
  }

  /** Round numbers within a range, but for its end, where the unit stands. */
  function alongTicks(low, high, width) {
    if (low === high) return [low];
    const step = stepOf(low, high, Math.max(2, width / 96));
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, k) => (first + k) * step).filter(
      (tick) => ((high - tick) / (high - low)) * width > 80,
    );
  }

  function compact(value) {
    const size = Math.abs(value);
    if (size >= 1e6) return trim((value / 1e6).toFixed(1)) + ' M';
    if (size >= 1e4) return trim((value / 1e3).toFixed(0)) + ' k';
    if (size >= 100 || size < 1e-12) return trim(value.toFixed(0));
    if (size >= 1e-3) return trim(value.toPrecision(3));
    return value.toExponential(1).replace('.0e', 'e').replace(/-/g, '\u2212');
  }
  const trim = (written) =>
    (written.includes('.') && !written.includes('e') ? written.replace(/0+$/, '').replace(/\.$/, '') : written)
      .replace('-', '\u2212')
      .replace(/^\u22120$/, '0');
  const precise = (value) =>
    Math.abs(value) >= 1e-3 || value === 0
      ? trim(value.toFixed(Math.abs(value) < 1 ? 4 : 2))
      : value.toExponential(2).replace('-', '\u2212');
})();
