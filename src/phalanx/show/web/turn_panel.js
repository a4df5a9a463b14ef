/* The turn in words and numbers: both moves, what they cost, what the policy thought, what if. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, svg, write, shape, number, signed, percent, interval } = phalanx;
  const CAUSES = { root: 'Red is root', restore: 'Restored', service: 'The service stopped' };

  /** The panel of a play: {element, show(turn)}. Its height is that of its fullest turn. */
  phalanx.turnPanel = (play, horizon) => {
    const { scenario, has } = play;
    const turns = play.turns();
    const named = (name, tag = 'span', attributes = {}) => el(tag, { 'data-name': name, ...attributes });
    const turnNumber = named('turn');
    const service = named('service', 'span', { class: 'service' });
    const heading = el('h3', { class: 'turn-head' }, el('span', {}, 'Turn ', turnNumber, el('span', { class: 'quiet', text: ` of ${horizon}` })), service);
    const blue = sentence('blue', longest(turns.map((turn) => turn.blueWords)));
    const red = sentence('red', longest(turns.map((turn) => turn.redWords)));
    const tiles = { cost: tile('cost'), 'return-so-far': tile('return so far') };
    if (has.value) tiles.value = tile('value', 'what the critic expects from here on');
    const causes = play.causes.map((cause) => {
      const amount = el('span', { class: 'number', 'data-name': 'cost-' + cause });
      const row = el('span', { class: 'cause', 'data-cause': cause }, el('span', { class: 'swatch cause-' + key(cause) }), cause, amount);
      return { cause, amount, row };
    });
    const belief = named('belief-words', 'p', { class: 'belief-words quiet small' });
    const choices = has.likely || has.whatIf ? choiceTable(play, turns) : null;
    const element = el('section', { class: 'turn-panel', 'aria-label': 'Turn' },
      heading,
      el('dl', { class: 'moves' }, ...blue.parts, ...red.parts),
      el('div', { class: 'tiles' }, ...Object.entries(tiles).map(([name, each]) => {
        each.value.dataset.name = name;
        return each.element;
      })),
      el('p', { class: 'causes', 'aria-label': 'Cost by cause' }, ...causes.map((each) => each.row)),
      has.belief ? belief : null,
      choices ? choices.element : null);

    function show(turn) {
      const state = play.state(turn);
      const moved = play.turn(turn);
      write(turnNumber, String(turn));
      write(service, state.service === null ? '' : state.service ? 'service runs' : 'service stopped');
      service.classList.toggle('stopped', state.service === false);
      const idle = turn === 0 ? 'has not moved yet' : 'the game is over';
      write(blue.words, moved ? moved.blueWords : idle);
      write(red.words, moved ? moved.redWords : idle);
      write(tiles.cost.value, moved ? number(moved.reward, play.digits) : '\u2013');
      write(tiles['return-so-far'].value, number(play.soFar(turn), play.digits));
      if (tiles.value) write(tiles.value.value, moved && moved.value !== null ? number(moved.value) : '\u2013');
      for (const { cause, amount, row } of causes) {
        const mine = moved ? moved.costs.filter((cost) => cost[0] === cause) : [];
        const hosts = mine.filter((cost) => cost[1] >= 0).map((cost) => scenario.names[cost[1]]);
        row.classList.toggle('nothing', !mine.length);
        row.title = (CAUSES[cause] || cause) + (hosts.length ? ': ' + hosts.join(', ') : '');
        write(amount, number(mine.reduce((sum, cost) => sum + cost[2], 0), play.digits));
      }
      if (has.belief) write(belief, beliefWords(state));
      if (choices) choices.show(moved);
    }
    return { element, show };
  };

  const key = (cause) => (cause in CAUSES ? cause : 'other');
  phalanx.causeClass = (cause) => 'cause-' + key(cause);

  function beliefWords(state) {
    const who = Object.entries(state.attackers || {}).map(([name, chance]) => `${name} ${percent(chance)}`);
    const parts = [];
    if (state.possible !== null && state.possible !== undefined) parts.push(state.possible.toLocaleString('en') + (state.possible === 1 ? ' state' : ' states') + (state.exact ? ' possible' : ' followed'));
    if (who.length) parts.push(who.join(', '));
    return parts.length ? 'belief: ' + parts.join(' \u00b7 ') : '';
  }

  /** A side and its move; the longest sentence of the game keeps the room, unseen. */
  function sentence(side, ghost) {
    const words = el('span', { 'data-name': side + '-words' });
    const parts = [
      el('dt', { class: 'side side-' + side }, shape(side), side),
      el('dd', { class: 'kept' }, words, el('span', { class: 'ghost', 'aria-hidden': 'true', 'data-ghost': ghost })),
    ];
    return { words, parts };
  }

  const longest = (sentences) => sentences.reduce((most, each) => (each && each.length > most.length ? each : most), '');

  function tile(label, title = null) {
    const value = el('span', { class: 'tile-value' });
    return { element: el('div', { class: 'tile', title }, el('span', { class: 'tile-label quiet', text: label }), value), value };
  }

  /** The policy's likely actions and, where games were played on, what each would have given. */
  function choiceTable(play, turns) {
    const { scenario, has } = play;
    const listOf = (turn) => [...new Set([...(turn.likely || []).map(([action]) => action), ...(turn.whatIf ? turn.whatIf.actions.map(([action]) => action) : [])])];
    const rows = Math.max(1, ...turns.map((turn) => listOf(turn).length));
    const scale = el('span', { class: 'quiet' });
    const games = el('span', { class: 'quiet', 'data-name': 'games' });
    const regret = el('span', { class: 'regret-words', 'data-name': 'regret', title: 'what the best other action would have given more' });
    const body = el('tbody');
    const head = el('tr', {}, el('th', { scope: 'col', text: 'action' }));
    if (has.likely) head.append(el('th', { scope: 'col', text: 'policy' }));
    if (has.whatIf) {
      head.append(el('th', { scope: 'col', class: 'number', text: 'to come', title: 'mean return from here to the end' }),
        el('th', { scope: 'col', class: 'number', text: 'gain', title: 'over the action that was played' }),
        el('th', { scope: 'col', class: 'drawn', 'aria-label': 'gain, drawn' }, scale));
    }
    const element = el('div', { class: 'choices' },
      el('header', { class: 'choices-head' }, el('h4', { text: has.whatIf ? 'What if' : 'Likely actions' }), has.whatIf ? games : null, has.regret ? regret : null),
      el('table', {}, el('thead', {}, head), body));

    function show(moved) {
      const shown = moved ? listOf(moved) : [];
      const ran = moved && moved.whatIf;
      write(games, ran ? `${ran.games.toLocaleString('en')} games each` : moved ? 'not asked here' : '');
      const reach = ran ? scaleOf(ran) : 1;
      write(scale, ran ? '\u00b1' + Number(reach.toPrecision(1)) : '');
      const found = moved && moved.regret;
      write(regret, found ? `regret ${number(found[0], 2)} (${interval(found[1], found[2], 2)})` : '');
      regret.classList.toggle('sure', Boolean(found) && found[1] > 0);
      body.replaceChildren(...Array.from({ length: rows }, (_, index) => rowOf(moved, shown[index], reach)));
    }

    function rowOf(moved, action, reach) {
      const width = 1 + (has.likely ? 1 : 0) + (has.whatIf ? 3 : 0);
      if (action === undefined) return el('tr', { class: 'empty', 'aria-hidden': 'true' }, ...Array.from({ length: width }, () => el('td', { text: '\u00a0' })));
      const played = action === moved.blue;
      const name = scenario.actionName(action);
      const cells = [el('th', { scope: 'row', class: 'action', title: name + (played ? ' (played)' : '') }, ...actionWords(name))];
      if (has.likely) {
        const chance = (moved.likely || []).find(([likely]) => likely === action);
        cells.push(el('td', { class: 'chance', 'data-name': 'probability', style: `--part: ${chance ? chance[1] / 10 : 0}%` },
          el('span', { text: chance ? percent(chance[1]) : '' })));
      }
      if (has.whatIf) cells.push(...whatIfCells(moved.whatIf, action, played, reach));
      return el('tr', { class: played ? 'played' : null, 'data-action': action }, ...cells);
    }
    return { element, show };
  }

  function whatIfCells(whatIf, action, played, reach) {
    const found = whatIf && whatIf.actions.find(([each]) => each === action);
    if (!found) return [el('td'), el('td'), el('td', { class: 'drawn' })];
    const [, mean, low, high, gain, gainLow, gainHigh] = found;
    const gainWords = played ? 'played' : signed(gain, 2);
    const title = played ? 'this was played' : `gain ${signed(gain, 3)}, ${interval(gainLow, gainHigh, 3)}`;
    return [
      el('td', { class: 'number', 'data-name': 'to-come', title: `${number(mean, 3)}, ${interval(low, high, 3)}` },
        number(mean, 1), el('span', { class: 'quiet', text: ' \u00b1' + number((high - low) / 2, 1) })),
      el('td', { class: 'number', 'data-name': 'gain', title, text: gainWords }),
      el('td', { class: 'drawn', title }, played ? null : whisker(gain, gainLow, gainHigh, reach)),
    ];
  }

  /** A gain on the scale of the turn: dot and interval, with zero in the middle. */
  function whisker(gain, low, high, reach) {
    const x = (value) => 32 + 29 * Math.max(-1, Math.min(1, value / reach));
    const sure = low > 0 ? 'better' : high < 0 ? 'worse' : 'open';
    return svg('svg', { class: 'whisker ' + sure, viewBox: '0 0 64 12', width: 64, height: 12, 'aria-hidden': 'true' },
      svg('path', { class: 'zero', d: 'M32 0 V12' }),
      svg('path', { class: 'range', d: `M${x(low)} 6 H${x(high)}` }),
      svg('circle', { class: 'mark', cx: x(gain), cy: 6, r: 3 }));
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
