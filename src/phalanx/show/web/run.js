/* One run: what it is, how far, its curves while they grow, its settings, and what can be done with it. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, number } = phalanx;
  const [ROWS_S, FACTS_S] = [2, 4];
  const MOST_ROWS = 20000; // kept in the page; of more, every other one goes
  const CHARTS = [
    { title: 'Episodes per second', line: speeds },
    { title: 'Entropy', column: 'entropy' },
    { title: 'KL divergence of an update', column: 'kl' },
    { title: 'Value loss', column: 'value_loss' },
    { title: 'Explained variance', column: 'explained_variance' },
    { title: 'Learning rate', column: 'learning_rate' },
    { title: 'Lag of rollouts, in updates', column: 'lag', unless: (values) => values.every((value) => !value) },
  ];

  phalanx.addPage(
    'run',
    null,
    (main, [name]) => {
      document.title = `${name} \u00b7 phalanx`;
      const head = el(
        'header',
        { class: 'page-head' },
        el('p', { class: 'crumbs' }, el('a', { href: '#/', text: 'Runs' })),
        el('h1', { text: name }),
      );
      const facts = el('div', { class: 'facts-place' }, phalanx.says.loading());
      const acts = el('div', { class: 'acts shown' });
      const charts = el('div', { class: 'charts' });
      const [trials, settings] = [el('div'), el('div')];
      main.append(head, facts, acts, charts, trials, settings);
      const table = { names: [], rows: [], at: '' };
      const drawn = new Map();
      let [state, key] = [null, ''];

      async function renewFacts() {
        let told;
        try {
          told = await phalanx.get('/api/run', { run: name });
        } catch (error) {
          facts.replaceChildren(phalanx.says.error(error));
          acts.replaceChildren();
          return error.status === 404 ? 0 : FACTS_S;
        }
        state = told.row.state;
        const now = JSON.stringify(told);
        if (now !== key) {
          key = now;
          facts.replaceChildren(...factsOf(told));
          acts.replaceChildren(...phalanx.runActs([name], [told.row]));
          settings.replaceChildren(...settingsOf(told.settings));
          if (told.row.kind === 'sweep') drawTrials();
        }
        return state === 'running' ? FACTS_S : 5 * FACTS_S;
      }

      /** The runs of a sweep, best first. */
      async function drawTrials() {
        const { runs } = await phalanx.get('/api/runs');
        const mine = runs
          .filter((row) => row.name.startsWith(name + '/'))
          .sort((one, two) => (two.mean ?? -Infinity) - (one.mean ?? -Infinity));
        trials.replaceChildren(
          el('h2', { text: `Trials: ${mine.length}` }),
          el(
            'div',
            { class: 'scroll' },
            el(
              'table',
              {},
              el(
                'tbody',
                {},
                ...mine.map((row) =>
                  el(
                    'tr',
                    {},
                    el(
                      'th',
                      { scope: 'row', class: 'run-name' },
                      el('a', { href: phalanx.place('run', row.name), text: row.name.slice(name.length + 1) }),
                    ),
                    el('td', {}, phalanx.stateBadge(row.state)),
                    el('td', { class: 'number', text: phalanx.returnOf(row) }),
                  ),
                ),
              ),
            ),
          ),
        );
      }

      async function renewRows() {
        let more = true;
        while (more) {
          let told;
          try {
            told = await phalanx.get('/api/run/rows', { run: name, at: table.at });
          } catch (error) {
            return error.status === 404 ? 0 : 2 * ROWS_S;
          }
          if (told.anew) table.rows = [];
          table.names = told.names;
          for (const row of told.rows) table.rows.push(row);
          while (table.rows.length > MOST_ROWS) table.rows = table.rows.filter((_, index) => index % 2 === 0);
          [table.at, more] = [told.at, told.more];
          if (told.rows.length || told.anew) drawCharts();
        }
        return state === null || state === 'running' ? ROWS_S : 5 * ROWS_S;
      }

      function drawCharts() {
        const column = (wanted) => {
          const at = table.names.indexOf(wanted);
          return at < 0 ? null : table.rows.map((row) => row[at]);
        };
        const x = column('episodes') || column('update') || [];
        if (!x.length) return;
        const unit = column('episodes') ? 'episodes' : 'updates';
        const returns = table.names
          .filter((one) => one === 'return' || one.startsWith('return_'))
          .map((one) => ({ name: one === 'return' ? 'all' : one.slice('return_'.length), y: column(one) }))
          .filter((line) => line.y.some((value) => value !== null));
        put('Return of an update\u2019s episodes', 'wide', {
          x,
          unit,
          lines: returns.length === 2 ? returns.slice(1) : returns,
        });
        const compliance = table.names
          .filter((one) => one.startsWith('compliance'))
          .map((one) => ({ name: one, y: column(one) }));
        if (compliance.length) put('Compliance', '', { x, unit, lines: compliance });
        for (const { title, column: wanted, line, unless } of CHARTS) {
          const y = wanted ? column(wanted) : line(column);
          if (y && y.some((value) => value !== null) && !(unless && unless(y)))
            put(title, '', { x, unit, lines: [{ name: '', y }] });
        }
      }

      function put(title, kind, given) {
        if (!drawn.has(title)) {
          drawn.set(title, phalanx.curves(title, kind === 'wide' ? 240 : 184));
          drawn.get(title).element.classList.toggle('wide', kind === 'wide');
          charts.append(drawn.get(title).element);
        }
        drawn.get(title).draw(given);
      }

      const ends = [phalanx.every(FACTS_S, renewFacts), phalanx.every(ROWS_S, renewRows)];
      return () => ends.forEach((end) => end());
    },
    'runs',
  );

  /** Between one update and the next. */
  function speeds(column) {
    const [episodes, times] = [column('episodes'), column('elapsed_s')];
    if (!episodes || !times) return null;
    return episodes.map((value, index) => {
      const [before, then] = index ? [episodes[index - 1], times[index - 1]] : [0, 0];
      return times[index] > then && value !== null ? (value - before) / (times[index] - then) : null;
    });
  }

  function factsOf({ row, summary }) {
    const tile = (label, value, more = '') =>
      el(
        'div',
        { class: 'fact' },
        el('span', { class: 'small quiet', text: label }),
        el('span', { class: 'fact-value', text: value || '\u2013' }),
        el('span', { class: 'small quiet', text: more }),
      );
    const mean = row.mean === null ? '' : number(row.mean, 2);
    const between = row.low === null || row.high === null ? '' : `${number(row.low, 2)} to ${number(row.high, 2)}`;
    const what =
      { search: 'search: return of its winner', sweep: 'sweep: return of the best combination' }[row.kind] ||
      'return, last 2,000 episodes';
    const split = Object.entries(summary.time_split || {})
      .map(([part, share]) => `${part} ${Math.round(100 * share)} %`)
      .join(' \u00b7 ');
    return [
      el(
        'p',
        { class: 'line' },
        phalanx.stateBadge(row.state),
        row.kind === 'run' ? null : el('span', { class: 'kind', text: row.kind }),
        el('span', {
          class: 'quiet',
          text: [row.env, row.algo, row.red_agent, row.seed === null ? '' : `seed ${row.seed}`]
            .filter(Boolean)
            .join(' \u00b7 '),
        }),
      ),
      summary.order ? el('p', { class: 'line', text: `The best order of repair: ${summary.order}` }) : '',
      row.note ? el('p', { class: 'note', text: row.note.charAt(0).toUpperCase() + row.note.slice(1) + '.' }) : '',
      el(
        'div',
        { class: 'fact-tiles' },
        tile(what, mean, between),
        tile(
          'leaderboard, sum of nine cells',
          row.score === null ? '' : number(row.score, 2),
          row.score === null ? 'not played' : '',
        ),
        tile(
          'done',
          row.progress === null ? '' : Math.floor(100 * row.progress) + ' %',
          row.episodes === null ? '' : row.episodes.toLocaleString('en') + ' episodes',
        ),
        tile(
          'speed',
          row.episodes_per_s === null ? '' : Math.round(row.episodes_per_s).toLocaleString('en') + '/s',
          split,
        ),
        tile('time', phalanx.span(row.seconds), 'changed ' + phalanx.ago(row.changed)),
      ),
    ];
  }

  function settingsOf(all) {
    const changed = all.filter((one) => one.changed);
    if (!all.length) return [];
    const rows = (list) =>
      el(
        'div',
        { class: 'scroll' },
        el(
          'table',
          { class: 'settings' },
          el(
            'tbody',
            {},
            ...list.map(({ name, value, usual, changed: differs }) =>
              el(
                'tr',
                {},
                el('th', { scope: 'row' }, el('code', { text: name })),
                el('td', {}, el('code', { text: value })),
                el('td', { class: 'quiet small', text: differs ? `instead of ${usual || 'nothing'}` : '' }),
              ),
            ),
          ),
        ),
      );
    return [
      el('h2', { text: 'Settings' }),
      changed.length ? rows(changed) : el('p', { class: 'quiet', text: 'All as they are if nothing is said.' }),
      el('details', {}, el('summary', { text: `All ${all.length} settings` }), rows(all)),
    ];
  }
})();
