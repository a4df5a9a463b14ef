/* The turn in words and numbers: both moves, what they cost, what the policy thought, what if. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, write, shape, number, percent } = phalanx;
  const CAUSES = {
    root: 'Red is root',
    restore: 'Restored',
    service: 'The service stopped',
    remove: 'Removed',
    analyse: 'Analysed',
    decoy: 'A decoy',
    shuffle: 'Shuffled',
  };

  /** The panel of a play: {element, show(turn)}. Its height is that of its fullest turn. */
  phalanx.turnPanel = (play, horizon) => {
    const { scenario, has } = play;
    const turns = play.turns();
    const named = (name, tag = 'span', attributes = {}) => el(tag, { 'data-name': name, ...attributes });
    const turnNumber = named('turn');
    const service = named('service', 'span', { class: 'service' });
    const heading = el(
      'h3',
      { class: 'turn-head' },
      el('span', {}, 'Turn ', turnNumber, el('span', { class: 'quiet', text: ` of ${horizon}` })),
      service,
    );
    const blue = sentence('blue', longest(turns.map((turn) => turn.blueWords)));
    const red = sentence('red', longest(turns.map((turn) => turn.redWords)));
    const green = has.green ? sentence('green', longest(turns.map((turn) => turn.greenWords))) : null;
    const tiles = { cost: tile('cost'), 'return-so-far': tile('return so far') };
    if (has.value) tiles.value = tile('value', 'what the critic expects from here on');
    const causes = play.causes.map((cause) => {
      const amount = el('span', { class: 'number', 'data-name': 'cost-' + cause });
      const row = el(
        'span',
        { class: 'cause', 'data-cause': cause },
        el('span', { class: 'swatch cause-' + key(cause) }),
        cause,
        amount,
      );
      return { cause, amount, row };
    });
    const belief = named('belief-words', 'p', { class: 'belief-words quiet small' });
    const choices = has.likely || has.whatIf ? phalanx.choiceTable(play, turns) : null;
    const element = el(
      'section',
      { class: 'turn-panel', 'aria-label': 'Turn' },
      heading,
      el('dl', { class: 'moves' }, ...blue.parts, ...(green ? green.parts : []), ...red.parts),
      el(
        'div',
        { class: 'tiles' },
        ...Object.entries(tiles).map(([name, each]) => {
          each.value.dataset.name = name;
          return each.element;
        }),
      ),
      el('p', { class: 'causes', 'aria-label': 'Cost by cause' }, ...causes.map((each) => each.row)),
      has.belief ? belief : null,
      choices ? choices.element : null,
    );

    function show(turn) {
      const state = play.state(turn);
      const moved = play.turn(turn);
      write(turnNumber, String(turn));
      write(service, state.service === null ? '' : state.service ? 'service runs' : 'service stopped');
      service.classList.toggle('stopped', state.service === false);
      const idle = turn === 0 ? 'has not moved yet' : 'the game is over';
      write(blue.words, moved ? moved.blueWords : idle);
      write(red.words, moved ? moved.redWords : idle);
      if (green) write(green.words, moved ? moved.greenWords : idle);
      write(tiles.cost.value, moved ? number(moved.reward, play.digits) : '\u2013');
      write(tiles['return-so-far'].value, number(play.soFar(turn), play.digits));
      if (tiles.value) write(tiles.value.value, moved && moved.value !== null ? number(moved.value) : '\u2013');
      for (const { cause, amount, row } of causes) {
        const mine = moved ? moved.costs.filter((cost) => cost[0] === cause) : [];
        const hosts = mine.filter((cost) => cost[1] >= 0).map((cost) => scenario.names[cost[1]]);
        row.classList.toggle('nothing', !mine.length);
        row.title = (CAUSES[cause] || cause) + (hosts.length ? ': ' + hosts.join(', ') : '');
        write(
          amount,
          number(
            mine.reduce((sum, cost) => sum + cost[2], 0),
            play.digits,
          ),
        );
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
    if (typeof state.possible === 'number') {
      const states = state.possible.toLocaleString('en') + (state.possible === 1 ? ' state' : ' states');
      parts.push(states + (state.exact ? ' possible' : ' followed')); // the least likely ones were left out
    }
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

  const longest = (sentences) =>
    sentences.reduce((most, each) => (each && each.length > most.length ? each : most), '');

  function tile(label, title = null) {
    const value = el('span', { class: 'tile-value' });
    return {
      element: el('div', { class: 'tile', title }, el('span', { class: 'tile-label quiet', text: label }), value),
      value,
    };
  }
})();
