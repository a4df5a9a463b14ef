/* Work that takes a while: a tray at the edge of every page tells how far each is, and leads to what came of it. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, write } = phalanx;
  const ASK_S = 0.5;

  /** What came of a job, however long it takes; heard is told how far it is. */
  phalanx.whenReady = async (job, heard = () => {}) => {
    let told = job;
    while (told.state === 'waiting' || told.state === 'working') {
      heard(told);
      await new Promise((done) => setTimeout(done, 1000 * ASK_S));
      told = await phalanx.get('/api/jobs/' + encodeURIComponent(job.id));
    }
    heard(told);
    if (told.state !== 'ready') throw Object.assign(new Error(told.error || 'It was given up.'), { state: told.state });
    return told;
  };

  phalanx.resultOf = (job) => phalanx.get(`/api/jobs/${encodeURIComponent(job.id)}/result`);

  const tray = el('aside', { class: 'tray', 'aria-label': 'Work' });

  /** Begin a piece of work and show it in the tray: link(job) is where its result is. */
  phalanx.beginWork = async (path, sent, link) => {
    let job;
    const name = el('span', { class: 'job-name' });
    const note = el('span', { class: 'small quiet' });
    const meter = phalanx.meter(0);
    const acts = el('span', { class: 'job-acts' });
    const card = el('section', { class: 'job', role: 'status' }, name, acts, meter, note);
    const close = el('button', {
      type: 'button',
      class: 'close',
      'aria-label': 'Put away',
      text: '\u00d7',
      on: { click: () => card.remove() },
    });
    if (!tray.isConnected) document.body.append(tray);
    tray.append(card);
    try {
      write(name, 'Asking \u2026');
      job = await phalanx.post(path, sent);
      write(name, job.what.charAt(0).toUpperCase() + job.what.slice(1));
      acts.replaceChildren(
        el('button', {
          type: 'button',
          text: 'Give up',
          on: { click: () => phalanx.post(`/api/jobs/${encodeURIComponent(job.id)}/give-up`) },
        }),
      );
      await phalanx.whenReady(job, (told) => {
        meter.firstChild.style.width = 100 * told.share + '%';
        write(note, told.state === 'waiting' ? 'waits for other work to end' : told.note);
      });
      write(note, 'ready');
      acts.replaceChildren(link(job), close);
      acts.firstChild.focus({ preventScroll: true });
    } catch (error) {
      write(name, job ? name.textContent : 'It could not begin');
      note.className = 'small note';
      write(note, error.message);
      meter.remove();
      acts.replaceChildren(close);
      if (error.state === 'given up') card.remove();
    }
  };

  const opener = (job) =>
    el('a', {
      class: 'button',
      href: '/pages/' + encodeURIComponent(job.id),
      target: '_blank',
      rel: 'noopener',
      text: 'Open',
    });

  /** What can be done with chosen runs. */
  phalanx.runActs = (names, rows) => {
    const one = rows.length === 1 ? rows[0] : null;
    const button = (text, act, why = '') =>
      el('button', { type: 'button', text, disabled: Boolean(why), title: why, on: { click: act } });
    const playable = one && one.is_playable;
    const acts = [
      button(names.length > 1 ? `Report of ${names.length}` : 'Report', () =>
        phalanx.beginWork('/api/reports', { runs: names }, opener),
      ),
    ];
    if (names.length > 1)
      acts.push(
        button(`Compare ${names.length}`, () => phalanx.beginWork('/api/comparisons', { runs: names }, opener)),
      );
    if (one && one.kind === 'run') {
      const why = playable ? '' : 'it has no policy that plays CAGE-2 yet';
      acts.push(
        button('Replay …', () => phalanx.goTo('replay', 'run/' + one.name), why),
        button(
          'Score it',
          () =>
            phalanx.beginWork('/api/scores', { run: one.name }, (job) =>
              el('a', { class: 'button', href: phalanx.place('scores', job.id, one.name), text: 'See' }),
            ),
          why,
        ),
      );
    }
    return acts;
  };

  /* The nine cells of the leaderboard, beside the published scores. */
  phalanx.addPage(
    'scores',
    null,
    (main, [id, name]) => {
      document.title = `Scores of ${name} \u00b7 phalanx`;
      main.append(phalanx.says.loading());
      phalanx.resultOf({ id }).then(
        (told) => main.replaceChildren(...scoresOf(told, name)),
        (error) => main.replaceChildren(phalanx.says.error(error)),
      );
      return null;
    },
    'runs',
  );

  function scoresOf(told, name) {
    const { number } = phalanx;
    const best = (cell) => Math.max(cell.mean, ...cell.published);
    const value = (score, most) =>
      el('td', { class: 'number' + (score === most ? ' best' : ''), text: number(score, 2) });
    const rows = told.cells.map((cell) =>
      el(
        'tr',
        {},
        el('th', { scope: 'row', text: cell.red_agent }),
        el('td', { class: 'number', text: String(cell.horizon) }),
        el('td', {
          class: 'number' + (cell.mean === best(cell) ? ' best' : ''),
          title: `${number(cell.low, 3)} to ${number(cell.high, 3)}`,
          text: `${number(cell.mean, 2)} \u00b1 ${number(cell.high - cell.mean, 2)}`,
        }),
        ...cell.published.map((score) => value(score, best(cell))),
      ),
    );
    const most = Math.max(told.total, ...told.totals);
    const sums = el(
      'tr',
      { class: 'sums' },
      el('th', { scope: 'row', text: 'all nine' }),
      el('td'),
      value(told.total, most),
      ...told.totals.map((sum) => value(sum, most)),
    );
    return [
      el(
        'header',
        { class: 'page-head' },
        el(
          'p',
          { class: 'crumbs' },
          el('a', { href: '#/', text: 'Runs' }),
          ' / ',
          el('a', { href: phalanx.place('run', name), text: name }),
        ),
        el('h1', { text: `Scores of ${name}` }),
      ),
      el('p', {
        class: 'quiet',
        text:
          `Mean return and its 95 % interval, ${told.episodes.toLocaleString('en')} games in each cell, rules ` +
          `${told.rules}; beside it the challenge\u2019s best, as published.`,
      }),
      el(
        'div',
        { class: 'scroll' },
        el(
          'table',
          {},
          el(
            'thead',
            {},
            el(
              'tr',
              {},
              ...['attacker', 'turns', 'this run', ...told.names].map((text, index) =>
                el('th', { scope: 'col', class: index ? 'number' : null, text }),
              ),
            ),
          ),
          el('tbody', {}, ...rows, sums),
        ),
      ),
    ];
  }
})();
