/* What blue could have done: the policy's likely actions, and what each would have given. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, svg, write, shape, number, signed, percent, interval } = phalanx;

  /** The policy's likely actions and, where games were played on, what each would have given. */
  phalanx.choiceTable = (play, turns) => {
    const { scenario, has } = play;
    const listOf = ({ likely, whatIf }) => {
      const rows = [...(likely || []), ...(whatIf ? whatIf.actions : [])];
      return [...new Set(rows.map(([action]) => action))];
    };
    const rows = Math.max(1, ...turns.map((turn) => listOf(turn).length));
    const scale = el('span', { class: 'quiet' });
    const games = el('span', { class: 'quiet', 'data-name': 'games' });
    const regret = el('span', {
      class: 'regret-words',
      'data-name': 'regret',
      title: 'what the best other action would have given more',
    });
    const body = el('tbody');
    const head = el('tr', {}, el('th', { scope: 'col', text: 'action' }));
    if (has.likely) head.append(el('th', { scope: 'col', text: 'policy' }));
    if (has.whatIf) {
      head.append(
        el('th', { scope: 'col', class: 'number', text: 'to come', title: 'mean return from here to the end' }),
        el('th', { scope: 'col', class: 'number', text: 'gain', title: 'over the action that was played' }),
        el('th', { scope: 'col', class: 'drawn', 'aria-label': 'gain, drawn' }, scale),
      );
    }
    const element = el(
      'div',
      { class: 'choices' },
      el(
        'header',
        { class: 'choices-head' },
        el('h4', { text: has.whatIf ? 'What if' : 'Likely actions' }),
        has.whatIf ? games : null,
        has.regret ? regret : null,
      ),
      el('table', {}, el('thead', {}, head), body),
    );

    function show(moved) {
      const shown = moved ? listOf(moved) : [];
      const ran = moved && moved.whatIf;
      write(games, ran ? gamesWords(ran) : moved ? 'not asked here' : '');
      const reach = ran ? scaleOf(ran) : 1;
      write(scale, ran ? '\u00b1' + Number(reach.toPrecision(1)) : '');
      const found = moved && moved.regret;
      write(regret, found ? `regret ${number(found[0], 2)} (${interval(found[1], found[2], 2)})` : '');
      regret.classList.toggle('sure', Boolean(found) && found[1] > 0);
      body.replaceChildren(...Array.from({ length: rows }, (_, index) => rowOf(moved, shown[index], reach)));
    }

    function rowOf(moved, action, reach) {
      const width = 1 + (has.likely ? 1 : 0) + (has.whatIf ? 3 : 0);
      if (action === undefined)
        return el(
          'tr',
          { class: 'empty', 'aria-hidden': 'true' },
          ...Array.from({ length: width }, () => el('td', { text: '\u00a0' })),
        );
      const played = action === moved.blue;
      const name = scenario.actionName(action);
      const cells = [
        el('th', { scope: 'row', class: 'action', title: name + (played ? ' (played)' : '') }, ...actionWords(name)),
      ];
      if (has.likely) {
        const chance = (moved.likely || []).find(([likely]) => likely === action);
        cells.push(
          el(
            'td',
            { class: 'chance', 'data-name': 'probability', style: `--part: ${chance ? chance[1] / 10 : 0}%` },
            el('span', { text: chance ? percent(chance[1]) : '' }),
          ),
        );
      }
      if (has.whatIf) cells.push(...whatIfCells(moved.whatIf, action, played, reach));
      return el('tr', { class: played ? 'played' : null, 'data-action': action }, ...cells);
    }
    return { element, show };
  };

  function whatIfCells(whatIf, action, played, reach) {
    const found = whatIf && whatIf.actions.find(([each]) => each === action);
    if (!found) return [el('td'), el('td'), el('td', { class: 'drawn' })];
    const [, mean, low, high, gain, gainLow, gainHigh, games = whatIf.games] = found;
    const gainWords = played ? 'played' : signed(gain, 2);
    const title = played
      ? 'this was played'
      : `gain ${signed(gain, 3)}, ${interval(gainLow, gainHigh, 3)}, ${games} games`;
    return [
      el(
        'td',
        {
          class: 'number',
          'data-name': 'to-come',
          title: `${number(mean, 3)}, ${interval(low, high, 3)}, ${games} games`,
        },
        number(mean, 1),
        el('span', { class: 'quiet', text: ' \u00b1' + number((high - low) / 2, 1) }),
      ),
      el('td', { class: 'number', 'data-name': 'gain', title, text: gainWords }),
      el('td', { class: 'drawn', title }, played ? null : whisker(gain, gainLow, gainHigh, reach)),
    ];
  }

  /** How many games stand behind the table; an action that soon looked worse may have had fewer. */
  function gamesWords(whatIf) {
    const alike = whatIf.actions.every((each) => (each[7] ?? whatIf.games) === whatIf.games);
    return `${alike ? '' : 'up to '}${whatIf.games.toLocaleString('en')} games each`;
  }

  /** A gain on the scale of the turn: dot and interval, with zero in the middle. */
  function whisker(gain, low, high, reach) {
    const x = (value) => 32 + 29 * Math.max(-1, Math.min(1, value / reach));
    const sure = low > 0 ? 'better' : high < 0 ? 'worse' : 'open';
    return svg(
      'svg',
      { class: 'whisker ' + sure, viewBox: '0 0 64 12', width: 64, height: 12, 'aria-hidden': 'true' },
      svg('path', { class: 'zero', d: 'M32 0 V12' }),
      svg('path', { class: 'range', d: `M${x(low)} 6 H${x(high)}` }),
      svg('circle', { class: 'mark', cx: x(gain), cy: 6, r: 3 }),
    );
  }

  /** Half the width of the drawn scale: a round number that holds all gains of the turn. */
  function scaleOf(whatIf) {
    const ends = whatIf.actions.flatMap((each) => [Math.abs(each[5]), Math.abs(each[6])]);
    const most = Math.max(0.1, ...ends);
    const ten = 10 ** Math.floor(Math.log10(most));
    return [1, 2, 5, 10].map((step) => step * ten).find((round) => round >= most * 0.999);
  }

  /** An action, a decoy by its sign. */
  function actionWords(name) {
    const decoy = /^Decoy(?=[A-Z])/;
    return decoy.test(name) ? [shape('decoy'), ' ' + name.replace(decoy, '')] : [name];
  }
})();
