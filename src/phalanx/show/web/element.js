/* Elements of a page and how numbers are written in it. Text goes in as text, never as markup. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const SVG = 'http://www.w3.org/2000/svg';
  const MINUS = '\u2212';

  /** An HTML element: attributes, `text`, `on` for what it listens to, then what is inside. */
  phalanx.el = (tag, attributes = {}, ...inside) => furnish(document.createElement(tag), attributes, inside);

  /** The same of a drawing. */
  phalanx.svg = (tag, attributes = {}, ...inside) => furnish(document.createElementNS(SVG, tag), attributes, inside);

  function furnish(element, attributes, inside) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === 'text') element.textContent = value;
      else if (name === 'style')
        element.style.cssText = value; // as an attribute it may be forbidden
      else if (name === 'on') {
        for (const [event, heard] of Object.entries(value)) element.addEventListener(event, heard);
      } else element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...inside.filter((part) => part !== null && part !== undefined));
    return element;
  }

  /** Change text only where it differs, so that nothing is laid out in vain. */
  phalanx.write = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  /** A number with a true minus sign; nothing is ever "−0.0". */
  phalanx.number = (value, digits = 1) => {
    const rounded = Math.abs(value).toFixed(digits);
    return value < 0 && Number(rounded) !== 0 ? MINUS + rounded : rounded;
  };

  phalanx.signed = (value, digits = 1) => {
    const written = phalanx.number(value, digits);
    return value > 0 && Number(written) !== 0 ? '+' + written : written;
  };

  /** A chance given in thousandths; what is not quite sure is not written as 0 or 100 %. */
  phalanx.percent = (thousandths) => {
    if (thousandths > 0 && thousandths < 10) return '<1 %';
    if (thousandths > 990 && thousandths < 1000) return '>99 %';
    return Math.round(thousandths / 10) + ' %';
  };

  phalanx.interval = (low, high, digits = 1) => phalanx.number(low, digits) + ' to ' + phalanx.number(high, digits);

  /** "User1, User2 and 3 more" */
  phalanx.listed = (names, most = 3) => {
    if (names.length <= most) {
      return names.length < 2 ? names.join('') : names.slice(0, -1).join(', ') + ' and ' + names.at(-1);
    }
    return names.slice(0, most - 1).join(', ') + ' and ' + (names.length - most + 1) + ' more';
  };

  /* Shapes stand for access, sides and things, beside their colours. */
  const full = { fill: 'currentColor' };
  const line = { fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 };
  const edged = { ...line, ...full };
  const SHAPES = {
    none: ['circle', { cx: 8, cy: 8, r: 4.5, ...line }],
    user: ['circle', { cx: 8, cy: 8, r: 5, ...full }],
    root: ['path', { d: 'M8 2 L14.5 13.5 H1.5 Z', ...full }],
    decoy: ['path', { d: 'M8 2.5 L13 8 L8 13.5 L3 8 Z', ...line }],
    file: ['path', { d: 'M4 2 H9.5 L12.5 5 V14 H4 Z M9.5 2 V5 H12.5', ...line }],
    blue: ['rect', { x: 3, y: 3, width: 10, height: 10, rx: 1.5, ...full }],
    red: ['path', { d: 'M8 1.5 L14.5 8 L8 14.5 L1.5 8 Z', ...full }],
    green: ['path', { d: 'M2 8 A6 6 0 0 1 14 8 L14 13 H2 Z', ...full }],
    missed: ['path', { d: 'M8 2.5 L13.5 8 L8 13.5 L2.5 8 Z', ...line }],
    first: ['path', { d: 'M3 3 V13 M13 3 L6 8 L13 13 Z', ...edged }],
    back: ['path', { d: 'M12 3 L4 8 L12 13 Z', ...full }],
    forth: ['path', { d: 'M4 3 L12 8 L4 13 Z', ...full }],
    last: ['path', { d: 'M13 3 V13 M3 3 L10 8 L3 13 Z', ...edged }],
    play: ['path', { d: 'M4 2 L14 8 L4 14 Z', ...full }],
    pause: ['path', { d: 'M4 2.5 H7 V13.5 H4 Z M9.5 2.5 H12.5 V13.5 H9.5 Z', ...full }],
  };

  phalanx.shape = (name) =>
    phalanx.svg(
      'svg',
      { class: 'shape', viewBox: '0 0 16 16', 'aria-hidden': 'true', 'data-shape': name },
      phalanx.svg(...SHAPES[name]),
    );
})();
