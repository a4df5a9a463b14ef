/* The list of runs: sorted by any column, filtered by words and states, renewed while somebody looks. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, write, number } = phalanx;
  const RENEW_S = 3;
  const STATES = ['running', 'finished', 'stopped', 'failed', 'crashed', 'damaged'];

  const count = (value) => (value === null ? '' : Math.round(value).toLocaleString('en'));
  const COLUMNS = [
    { key: 'name', title: 'run', words: (row) => row.name },
    { key: 'state', title: 'state', words: (row) => row.state },
    { key: 'red_agent', title: 'game', words: gameOf },
    {
      key: 'progress',
      title: 'done',
      most: true,
      words: (row) => (row.progress === null ? '' : Math.floor(100 * row.progress) + ' %'),
    },
    { key: 'episodes', title: 'episodes', most: true, words: (row) => count(row.episodes) },
    { key: 'mean', title: 'return', most: true, words: returnOf },
    {
      key: 'score',
      title: 'score',
      most: true,
      words: (row) => (row.score === null ? '' : number(row.score, 2)),
      about: 'sum of the leaderboard\u2019s nine cells',
    },
    { key: 'episodes_per_s', title: 'episodes/s', most: true, words: (row) => count(row.episodes_per_s) },
    { key: 'seconds', title: 'time', most: true, words: (row) => phalanx.span(row.seconds) },
    { key: 'changed', title: 'changed', most: true, words: (row) => phalanx.ago(row.changed) },
  ];

  /** "3:07 min", "1:02 h"; nothing for what is not known. */
  phalanx.span = (seconds) => {
    if (seconds === null || seconds === undefined) return '';
    if (seconds < 60) return Math.round(seconds) + ' s';
    const [all, unit] = seconds < 3600 ? [seconds, 'min'] : [seconds / 60, 'h'];
    return Math.floor(all / 60) + ':' + String(Math.floor(all % 60)).padStart(2, '0') + ' ' + unit;
  };

  phalanx.ago = (time) => {
    if (time === null) return '';
    const passed = Math.max(0, Date.now() / 1000 - time);
    if (passed < 60) return 'just now';
    if (passed < 3600) return Math.floor(passed / 60) + ' min ago';
    if (passed < 86400) return Math.floor(passed / 3600) + ' h ago';
    return new Date(1000 * time).toISOString().slice(0, 10);
  };

  /** What was played, and against whom; a mixture by its first parts. */
  function gameOf(row) {
    const agents = (row.red_agent || '')
      .split(',')
      .map((part) => part.split('=')[0])
      .filter(Boolean);
    const shown = agents.slice(0, 2).join(', ') + (agents.length > 2 ? ` +${agents.length - 2}` : '');
    return [row.env === 'cage2' ? '' : row.env, shown].filter(Boolean).join(' ');
  }

  phalanx.returnOf = returnOf;

  function returnOf(row) {
    if (row.mean === null) return '';
    return number(row.mean, 2) + (row.high === null ? '' : ' \u00b1 ' + number(row.high - row.mean, 2));
  }

  phalanx.stateBadge = (state) =>
    el('span', { class: 'badge', 'data-state': state }, el('span', { class: 'dot', 'aria-hidden': 'true' }), state);

  phalanx.addPage('runs', 'Runs', (main) => {
    document.title = 'Runs \u00b7 phalanx';
    let [rows, sort, wanted, state, folder] = [null, { key: 'changed', best: true }, '', 'all', ''];
    const lines = new Map(); // by name: rows stay the same elements, so that focus and selection do
    const chosen = new Set();
    const found = el('p', { class: 'quiet small', role: 'status' });
    const filter = el('input', {
      type: 'search',
      placeholder: 'Filter by name, game, state …',
      'aria-label': 'Filter',
      autocomplete: 'off',
      spellcheck: 'false',
      on: {
        input: () => {
          wanted = filter.value.trim().toLowerCase();
          draw();
        },
      },
    });
    const choice = el(
      'select',
      {
        'aria-label': 'State',
        on: {
          change: () => {
            state = choice.value;
            draw();
          },
        },
      },
      el('option', { value: 'all', text: 'all states' }),
      ...STATES.map((one) => el('option', { value: one, text: one })),
    );
    const order = el(
      'select',
      { class: 'order', 'aria-label': 'Sort by', on: { change: () => sortBy(order.value, true) } },
      ...COLUMNS.map(({ key, title }) => el('option', { value: key, text: 'by ' + title })),
    );
    order.value = sort.key;
    const acts = el('div', { class: 'acts' });
    const heads = COLUMNS.map((column) => {
      const button = el('button', {
        type: 'button',
        class: 'sorter',
        title: column.about,
        text: column.title,
        on: { click: () => sortBy(column.key, sort.key === column.key ? !sort.best : true) },
      });
      return el('th', { scope: 'col', class: column.most ? 'number' : null, 'data-column': column.key }, button);
    });
    const body = el('tbody');
    const table = el(
      'table',
      { class: 'runs' },
      el(
        'thead',
        {},
        el('tr', {}, el('th', { class: 'pick' }, el('span', { class: 'unseen', text: 'choose' })), ...heads),
      ),
      body,
    );
    const place = el('div', { class: 'scroll' }, phalanx.says.loading());
    main.append(
      el(
        'header',
        { class: 'page-head' },
        el('h1', { text: 'Runs' }),
        el('div', { class: 'tools' }, filter, choice, order),
      ),
      acts,
      place,
      found,
    );

    function sortBy(key, best) {
      sort = { key, best };
      order.value = key;
      draw();
    }

    /** Best first: the most of numbers, words by the alphabet; what is not known comes last either way. */
    function compare(one, two) {
      const [a, b] = [one[sort.key], two[sort.key]];
      if (a === null || b === null)
        return (a === null) - (b === null) || one.name.localeCompare(two.name, 'en', { numeric: true });
      const up = typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : b - a;
      return (sort.best ? up : -up) || one.name.localeCompare(two.name, 'en', { numeric: true });
    }

    function draw() {
      if (rows === null) return;
      heads.forEach((head, index) => {
        const column = COLUMNS[index];
        if (column.key !== sort.key) head.removeAttribute('aria-sort');
        else head.setAttribute('aria-sort', Boolean(column.most) === sort.best ? 'descending' : 'ascending');
      });
      const shown = rows
        .filter((row) => state === 'all' || row.state === state)
        .filter((row) =>
          [row.name, row.kind, row.state, row.env, row.red_agent, row.algo].some((word) =>
            (word || '').toLowerCase().includes(wanted),
          ),
        )
        .sort(compare);
      const names = new Set(rows.map((row) => row.name));
      for (const name of lines.keys())
        if (!names.has(name)) {
          lines.delete(name);
          chosen.delete(name);
        }
      const drawn = shown.map(lineOf);
      if (drawn.length !== body.children.length || drawn.some((line, index) => body.children[index] !== line))
        body.replaceChildren(...drawn);
      if (!rows.length) {
        place.replaceChildren(
          phalanx.says.empty(
            `There are no runs in ${folder} yet.`,
            el(
              'p',
              { class: 'quiet' },
              'Train one: ',
              el('code', { text: 'phalanx train --config quick' }),
              ' \u2013 it appears here while it runs.',
            ),
          ),
        );
      } else if (!shown.length) {
        place.replaceChildren(
          phalanx.says.empty(
            'No run is like that.',
            el('button', { type: 'button', text: 'Show all', on: { click: clear } }),
          ),
        );
      } else if (table.parentNode !== place) place.replaceChildren(table);
      write(
        found,
        rows.length ? `${shown.length === rows.length ? '' : shown.length + ' of '}${rows.length} in ${folder}` : '',
      );
      drawActs();
    }

    function clear() {
      [filter.value, wanted, choice.value, state] = ['', '', 'all', 'all'];
      draw();
      filter.focus();
    }

    function lineOf(row) {
      let line = lines.get(row.name);
      if (!line) {
        const pick = el('input', {
          type: 'checkbox',
          'aria-label': 'Choose ' + row.name,
          on: {
            change: () => {
              if (pick.checked) chosen.add(row.name);
              else chosen.delete(row.name);
              drawActs();
            },
          },
        });
        const link = el('a', { href: phalanx.place('run', row.name), text: row.name });
        const cells = COLUMNS.map((column) =>
          el(column.key === 'name' ? 'th' : 'td', {
            class: column.most ? 'number' : column.key === 'name' ? 'run-name' : null,
            'data-title': column.title,
            scope: column.key === 'name' ? 'row' : null,
          }),
        );
        cells[0].append(link);
        line = el('tr', { 'data-run': row.name }, el('td', { class: 'pick' }, pick), ...cells);
        Object.assign(line, { cells0: cells, key: '' });
        lines.set(row.name, line);
      }
      const key = JSON.stringify([row, phalanx.ago(row.changed)]);
      if (line.key !== key) {
        line.key = key;
        COLUMNS.forEach((column, index) => {
          const cell = line.cells0[index];
          if (column.key === 'name') {
            cell.replaceChildren(
              cell.firstChild,
              row.kind === 'run' ? '' : el('span', { class: 'kind', text: row.kind }),
              row.note ? el('span', { class: 'note', text: row.note }) : '',
            );
          } else if (column.key === 'state') cell.replaceChildren(phalanx.stateBadge(row.state));
          else if (column.key === 'progress' && row.progress !== null)
            cell.replaceChildren(phalanx.meter(row.progress), column.words(row));
          else write(cell, column.words(row));
          cell.classList.toggle('nothing', !cell.textContent);
        });
      }
      return line;
    }

    function drawActs() {
      const names = [...chosen];
      acts.replaceChildren(
        ...(names.length
          ? phalanx.runActs(
              names,
              rows.filter((row) => chosen.has(row.name)),
            )
          : []),
      );
      acts.classList.toggle('shown', names.length > 0);
    }

    return phalanx.every(RENEW_S, async () => {
      try {
        const told = await phalanx.get('/api/runs');
        if (rows === null) place.replaceChildren();
        [rows, folder] = [told.runs, told.folder];
        draw();
      } catch (error) {
        rows = null;
        place.replaceChildren(phalanx.says.error(error));
      }
    });
  });

  phalanx.meter = (share) => {
    const bar = el('span', { class: 'meter', 'aria-hidden': 'true' }, el('span'));
    bar.firstChild.style.width = 100 * Math.min(1, Math.max(0, share)) + '%';
    return bar;
  };
})();
