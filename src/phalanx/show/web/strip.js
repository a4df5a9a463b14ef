/* The whole game at a glance, host by turn, and the handle to move in it. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, svg, write } = phalanx;
  const [ROW, GAP, AXIS, HEAD] = [12, 5, 26, 18];
  const LEAST = 8; // pixels a turn takes at least; a longer game scrolls sideways
  const ACCESS = ['none', 'user', 'root'];

  /** The strip of one or two plays: {element, show(turn), arrange()}. onTurn hears where one wants to be. */
  phalanx.drawStrip = (episode, turns, onTurn) => {
    const { plays, scenario } = episode;
    const groups = phalanx.hostOrder(scenario, plays[0].begun);
    const tracks = phalanx.tracksOf(plays);
    const bands = layOut(plays, groups, tracks);
    const height = bands.at(-1).bottom + AXIS;
    const labels = svg('svg', { class: 'strip-labels', height, 'aria-hidden': 'true' });
    const plot = svg('svg', { class: 'strip-plot', height, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    const slider = el(
      'div',
      {
        class: 'strip-slider',
        role: 'slider',
        tabindex: 0,
        'aria-label': 'Turn',
        'aria-valuemin': 0,
        'aria-valuemax': turns,
      },
      plot,
    );
    const scroller = el('div', { class: 'strip-scroll' }, slider);
    const tip = el('div', { class: 'strip-tip', hidden: true });
    const element = el('div', { class: 'strip' }, labels, scroller, tip);
    let [cell, shown, cursor] = [LEAST, 0, null];
    const x = (turn) => turn * cell;

    function arrange() {
      const room = scroller.clientWidth;
      if (!room) return;
      cell = Math.max(LEAST, room / (turns + 1));
      plot.setAttribute('width', cell * (turns + 1));
      plot.setAttribute('viewBox', `0 0 ${cell * (turns + 1)} ${height}`);
      cursor = drawCursor(height);
      plot.replaceChildren(...backdrop(), ...bands.flatMap(drawBand), ...axis(), cursor.element);
      labels.replaceChildren(...bands.flatMap((band) => labelsOf(band, scenario)));
      move();
    }

    function backdrop() {
      const lines = [];
      for (let turn = 10; turn <= turns; turn += 10)
        lines.push(svg('path', { class: 'grid', d: `M${x(turn) + cell / 2} 0 V${height - AXIS}` }));
      const parts = episode.differences[0];
      if (parts) lines.push(svg('path', { class: 'parts', d: `M${x(parts)} 0 V${height - AXIS}` }));
      return lines;
    }

    function drawBand(band) {
      const { play } = band;
      const drawn = [];
      for (const { host, top } of band.rows) {
        drawn.push(svg('path', { class: 'row', d: `M0 ${top + ROW} H${x(turns + 1)}` }));
        if (host >= 0) drawn.push(...runs(play, host, top));
      }
      const rowOf = new Map(band.rows.map(({ host, top }) => [host, top]));
      for (let turn = 1; turn <= play.length; turn++) drawn.push(...moves(play.turn(turn), turn, rowOf));
      for (const { track, top } of band.tracks) {
        drawn.push(
          svg('path', { class: 'row', d: `M0 ${top + track.height} H${x(turns + 1)}` }),
          svg(
            'g',
            { transform: `translate(0 ${top})`, class: 'track track-' + track.name },
            ...track.draw(play, x, cell),
          ),
        );
      }
      return drawn;
    }

    /** Red's access to a host, as one box per stretch of turns. */
    function runs(play, host, top) {
      const boxes = [];
      for (let turn = 0, begun = 0; turn <= play.length; turn++) {
        const access = play.state(turn).access[host];
        if (turn === play.length || play.state(turn + 1).access[host] !== access) {
          if (access) {
            boxes.push(
              svg('rect', {
                class: 'access access-' + ACCESS[access],
                x: x(begun),
                y: top + 1.5,
                width: x(turn + 1) - x(begun),
                height: ROW - 3,
              }),
            );
          }
          begun = turn + 1;
        }
      }
      return boxes;
    }

    function moves(moved, turn, rowOf) {
      const drawn = [];
      const blueTop = rowOf.get(moved.blueHost);
      const redTop = rowOf.get(moved.redHost);
      if (blueTop !== undefined && !moved.idle) {
        drawn.push(
          svg('rect', { class: 'blue-move', x: x(turn) + cell * 0.3 - 1.5, y: blueTop + 1, width: 3, height: ROW - 2 }),
        );
      }
      const greenTop = rowOf.get(moved.greenHost);
      if (moved.greenHost >= 0 && greenTop !== undefined) {
        drawn.push(
          svg('rect', {
            class: 'green-move',
            x: x(turn) + cell * 0.2,
            y: greenTop + ROW - 4,
            width: cell * 0.6,
            height: 2.5,
          }),
        );
      }
      if (redTop !== undefined && moved.redKind !== 'sleep') {
        drawn.push(
          svg('circle', {
            class: 'red-move' + (moved.redSuccess ? '' : ' missed'),
            cx: x(turn) + cell * 0.68,
            cy: redTop + ROW / 2,
            r: 2.5,
          }),
        );
      }
      return drawn;
    }

    function axis() {
      const every = cell * 10 < 32 ? 50 : 10;
      const marks = [];
      for (let turn = 0; turn <= turns; turn += every) {
        const edge = turn === 0 ? 'start' : x(turn) + cell + 12 > x(turns + 1) ? 'end' : 'middle';
        const at = edge === 'start' ? 0 : edge === 'end' ? x(turns + 1) : x(turn) + cell / 2;
        marks.push(svg('text', { class: 'axis', x: at, y: height - 6, 'text-anchor': edge, text: String(turn) }));
      }
      return marks;
    }

    function drawCursor() {
      const label = svg('text', { class: 'cursor-label', y: height - 6, 'text-anchor': 'middle' });
      const box = svg('rect', { class: 'cursor-flag', y: height - AXIS + 6, height: AXIS - 8, rx: 4, width: 34 });
      const beam = svg('rect', { class: 'cursor-beam', y: 0.5, height: height - AXIS + 5, rx: 2 });
      return { element: svg('g', { class: 'cursor' }, beam, box, label), beam, box, label };
    }

    function move() {
      if (!cursor) return;
      const middle = x(shown) + cell / 2;
      const flag = Math.min(Math.max(middle, 17), x(turns + 1) - 17);
      cursor.beam.setAttribute('x', x(shown) - 0.5);
      cursor.beam.setAttribute('width', cell + 1);
      cursor.box.setAttribute('x', flag - 17);
      cursor.label.setAttribute('x', flag);
      write(cursor.label, String(shown));
      for (const mark of plot.querySelectorAll('.axis')) {
        // no number half behind the handle
        mark.classList.toggle('covered', Math.abs(Number(mark.getAttribute('x')) - flag) < 32);
      }
      const [left, room] = [scroller.scrollLeft, scroller.clientWidth];
      if (middle < left + 24 || middle > left + room - 24) scroller.scrollLeft = middle - room / 2;
    }

    function show(turn) {
      shown = turn;
      slider.setAttribute('aria-valuenow', turn);
      slider.setAttribute('aria-valuetext', phalanx.turnWords(episode, turn));
      move();
    }

    const turnAt = (event) => {
      const at = Math.floor((event.clientX - plot.getBoundingClientRect().left) / cell);
      return Math.max(0, Math.min(episode.length, at));
    };
    const inAxis = (event) => event.clientY > plot.getBoundingClientRect().bottom - AXIS;
    let held = false;
    slider.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      // A finger on the rows scrolls them; on the axis, like a mouse anywhere, it moves the turn.
      held = event.pointerType === 'mouse' || inAxis(event);
      if (held) slider.setPointerCapture(event.pointerId);
      if (held) onTurn(turnAt(event));
    });
    slider.addEventListener('pointermove', (event) => {
      if (held) onTurn(turnAt(event));
      else if (event.pointerType === 'mouse') point(event);
    });
    const release = () => (held = false);
    slider.addEventListener('pointerup', release);
    slider.addEventListener('pointercancel', release);
    slider.addEventListener('click', (event) => onTurn(turnAt(event)));
    slider.addEventListener('pointerleave', () => (tip.hidden = true));
    slider.addEventListener(
      'touchstart',
      (event) => {
        if (inAxis(event.touches[0])) event.preventDefault(); // else the finger would scroll
      },
      { passive: false },
    );

    /** What lies under the pointer, in words. */
    function point(event) {
      const box = plot.getBoundingClientRect();
      const y = event.clientY - box.top;
      const turn = turnAt(event);
      const band = bands.find((each) => y >= each.top && y < each.bottom);
      const words = band ? phalanx.pointWords(band, y, turn, scenario) : '';
      tip.hidden = !words;
      if (!words) return;
      write(tip, `Turn ${turn} \u00b7 ${words}`);
      const outer = element.getBoundingClientRect();
      const left = Math.min(event.clientX - outer.left + 12, outer.width - tip.offsetWidth - 4);
      tip.style.left = Math.max(0, left) + 'px';
      tip.style.top = event.clientY - outer.top - tip.offsetHeight - 8 + 'px';
    }
    return { element, slider, show, arrange };
  };

  /** What stands where: for each play its rows of hosts, a row for moves on no host, its tracks. */
  function layOut(plays, groups, tracks) {
    let top = 0;
    return plays.map((play) => {
      const band = { play, top, rows: [], tracks: [], titled: plays.length > 1 };
      if (band.titled) top += HEAD;
      groups.forEach((hosts) => {
        hosts.forEach((host) => {
          band.rows.push({ host, top, bottom: top + ROW });
          top += ROW;
        });
        top += GAP;
      });
      const homeless = play
        .turns()
        .some((turn) => (turn.blueHost < 0 && !turn.idle) || (turn.redHost < 0 && turn.redKind !== 'sleep'));
      if (homeless) {
        band.rows.push({ host: -1, top, bottom: top + ROW });
        top += ROW + GAP;
      }
      tracks
        .filter((track) => track.of(play))
        .forEach((track) => {
          band.tracks.push({ track, top, bottom: top + track.height });
          top += track.height + GAP;
        });
      band.bottom = top;
      top += plays.length > 1 ? GAP : 0;
      return band;
    });
  }

  function labelsOf(band, scenario) {
    const label = (text, y, kind) => svg('text', { class: kind, x: 0, y, text });
    const named = band.rows.map(({ host, top }) =>
      svg(
        'text',
        {
          class: host < 0 ? 'label quiet' : 'label',
          x: 0,
          y: top + ROW - 2,
          text: host < 0 ? 'no host' : clipped(scenario.names[host], 15),
        },
        svg('title', { text: host < 0 ? 'Moves that name no host' : scenario.names[host] }),
      ),
    );
    const tracked = band.tracks.flatMap(({ track, top }) => [
      label(track.name, top + 11, 'label'),
      label(track.note, top + 24, 'label note'),
    ]);
    const title = band.titled ? [label(clipped(band.play.title.policy, 14), band.top + 13, 'label title')] : [];
    return [...title, ...named, ...tracked];
  }

  const clipped = (name, most) => (name.length > most ? name.slice(0, most - 1) + '\u2026' : name);
})();
