/* Hints in a game: what the champion would do, and what it thinks other moves cost. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, number, signed, percent } = phalanx;

  /** {element, show(on), follow(game), judge(action), note(action), end()}; play hears a move taken from here. */
  phalanx.advicePanel = (url, play) => {
    const verdict = el('p', { class: 'verdict', role: 'status' });
    const body = el('tbody');
    const about = el('p', { class: 'quiet small' });
    const table = el(
      'table',
      { class: 'advice-table' },
      el(
        'thead',
        { class: 'unseen' },
        el(
          'tr',
          {},
          ...['action', 'chance', 'gain over its choice', 'play'].map((text) => el('th', { scope: 'col', text })),
        ),
      ),
      body,
    );
    const element = el(
      'section',
      { class: 'panel advice hidden', 'aria-label': 'Hints' },
      el('h3', { text: 'The champion would' }),
      table,
      about,
      verdict,
    );
    let [on, game, hint, rows, round] = [false, null, null, new Map(), 0];
    const names = () => game.trajectory.scenario.actions;
    const named = (action) => names()[action].replace(/\bDecoy(?=[A-Z])/, 'Decoy ');

    function show(shown) {
      on = shown;
      element.classList.toggle('hidden', !on || game.is_over);
      if (on) ask();
      else round++;
    }

    function follow(told) {
      const moved = !game || told.turn !== game.turn;
      game = told;
      if (moved) [hint, rows] = [null, new Map()];
      element.classList.toggle('hidden', !on || game.is_over);
      if (on && moved && !game.is_over) ask();
    }

    /** Ask for the turn's hint, then again and again for surer answers, until the game goes on. */
    async function ask() {
      const mine = ++round;
      if (!hint) body.replaceChildren(el('tr', {}, el('td', { colspan: 4, class: 'quiet', text: 'It thinks …' })));
      try {
        if (!hint) {
          const told = await phalanx.get(url + '/hint', { turn: game.turn });
          if (mine !== round || told.stale) return;
          hint = told;
          draw();
        }
        let settled = false;
        while (!settled && mine === round) {
          const told = await phalanx.post(url + '/what-if', {
            turn: game.turn,
            actions: hint.likely.map(([action]) => action),
          });
          if (mine !== round || told.stale) return;
          take(told);
          settled = told.is_settled;
        }
      } catch (error) {
        if (mine === round) body.replaceChildren(el('tr', {}, el('td', { colspan: 4 }, phalanx.says.error(error))));
      }
    }

    function take(told) {
      for (const row of told.actions) rows.set(row[0], { games: told.games, row });
      draw();
    }

    function draw() {
      if (!hint) return;
      const own = hint.likely[0][0];
      body.replaceChildren(
        ...hint.likely.map(([action, chance]) => {
          const known = rows.get(action);
          const gain = known ? worth(known.row) : '\u2026';
          return el(
            'tr',
            { 'data-action': action },
            el('th', { scope: 'row', text: named(action) }),
            el('td', { class: 'number', text: percent(chance) }),
            el('td', {
              class: 'number gain',
              'data-sure': known ? sureness(known.row) : null,
              text: action === own ? '' : gain,
            }),
            el(
              'td',
              {},
              el('button', {
                type: 'button',
                text: 'Play',
                'aria-label': 'Play ' + named(action),
                on: { click: () => play(action) },
              }),
            ),
          );
        }),
      );
      const first = rows.get(own);
      about.textContent =
        (first
          ? `It expects ${number(first.row[1], 1)} ${reach(first.row[2], first.row[3], 1)} from here on; gains are ` +
            `over its first choice, from ${first.games} games each, begun in states that are possible by what you ` +
            'have seen.'
          : 'It plays some games \u2026') +
        (hint.is_exact ? '' : ' Something was seen that no attacker it expects would do: take this with care.');
    }

    const reach = (low, high, digits = 2) => `\u00b1 ${number((high - low) / 2, digits)}`;
    const sureness = ([, , , , , low, high]) => (low > 0 ? 'better' : high < 0 ? 'worse' : null);
    const worth = ([, , , , gain, low, high]) => `${signed(gain, 2)} \u00b1 ${number((high - low) / 2, 2)}`;

    /** Before a move is played: what the champion thinks it costs; said when it is done. */
    async function judge(action) {
      if (!on || game.is_over) return;
      const turn = game.turn;
      if (!rows.has(action)) {
        try {
          const told = await phalanx.post(url + '/what-if', { turn, actions: [action] });
          if (!told.stale) take(told);
        } catch {
          return; // a move is not held up by what is thought of it
        }
      }
      round++;
      const own = hint ? hint.likely[0][0] : null;
      const { row } = rows.get(action) || {};
      if (!row) return;
      const [, , , , gain, low, high] = row;
      const sure = sureness(row) || '';
      const choice = own === null ? 'its choice' : named(own);
      verdict.dataset.verdict = sure || 'open';
      verdict.textContent =
        `Turn ${turn + 1}, ${named(action)}: ` +
        (action === own
          ? 'as the champion would.'
          : sure
            ? `${number(Math.abs(gain), 2)} ${reach(low, high)} ${sure} than ${choice}, it thinks.`
            : `about as good as ${choice}, it thinks (${signed(gain, 2)} ${reach(low, high)}).`);
    }

    /** A few words for a menu. */
    function note(action) {
      if (!on || !hint) return '';
      const likely = hint.likely.find(([one]) => one === action);
      return likely ? percent(likely[1]) : '';
    }
    return {
      element,
      show,
      follow,
      judge,
      note,
      end: () => {
        on = false;
        round++;
      },
    };
  };
})();
