/* Curves under the strip: loss by cause, regret with its interval, and value, one place per turn. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { svg, number } = phalanx;
  const HEIGHT = 26;

  /** Where a scale ends: the 95th percentile of what is not zero. */
  phalanx.reach = (values) => {
    const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(0.95 * sorted.length))] : 0;
  };

  /** The tracks that plays have, with scales shared between them: [{name, height, note, draw}]. */
  phalanx.tracksOf = (plays) => {
    const turns = plays.map((play) => play.turns());
    const all = turns.flat();
    const tracks = [];
    const losses = all.map((turn) => -turn.reward);
    tracks.push(bars('loss', losses, (turn) => lossParts(turn)));
    if (plays.some((play) => play.has.regret)) {
      const regrets = all.map((turn) => (turn.regret ? turn.regret[0] : 0));
      tracks.push(bars('regret', regrets, (turn) => regretParts(turn)));
    }
    if (plays.some((play) => play.has.value)) tracks.push(line(all));
    return tracks;
  };

  function bars(name, values, partsOf) {
    const reach = phalanx.reach(values) || 1;
    const most = Math.max(0, ...values);
    const digits = most < 1 ? 2 : 1;
    const note =
      most > reach
        ? `to ${number(reach, digits)}, max ${number(most, digits)}`
        : most > 0
          ? `max ${number(most, digits)}`
          : 'none';
    const draw = (play, x, cell) => {
      const parts = [];
      for (let turn = 1; turn <= play.length; turn++) {
        const left = x(turn) + Math.max(0.5, cell * 0.15);
        const width = Math.max(1, cell * 0.7);
        parts.push(
          ...partsOf(play.turn(turn)).map((part) =>
            part(left, width, (value) => Math.min(1, value / reach) * (HEIGHT - 3)),
          ),
        );
        if (valueOf(name, play.turn(turn)) > reach) parts.push(cut(left, width));
      }
      return parts;
    };
    return { name, height: HEIGHT, note, draw, of: (play) => name === 'loss' || play.has[name] };
  }

  const valueOf = (name, turn) => (name === 'loss' ? -turn.reward : turn.regret ? turn.regret[0] : 0);

  /** A notch in a bar that is higher than the scale. */
  const cut = (left, width) =>
    svg('path', { class: 'cut', d: `M${left - 1} 8 l${width / 2 + 1} -3 l${width / 2 + 1} 3` });

  function lossParts(turn) {
    let sum = 0;
    return turn.costs
      .filter((cost) => cost[2] < 0)
      .map(([cause, , amount]) => {
        const [from, to] = [sum, sum - amount];
        sum = to;
        return (left, width, high) =>
          svg('rect', {
            class: phalanx.causeClass(cause),
            x: left,
            width,
            y: HEIGHT - high(to),
            height: Math.max(0, high(to) - high(from)),
          });
      });
  }

  function regretParts(turn) {
    if (!turn.regret) return [];
    const [mean, low, up] = turn.regret;
    return [
      (left, width, high) =>
        svg('rect', {
          class: 'regret' + (low > 0 ? ' sure' : ''),
          x: left,
          width,
          y: HEIGHT - high(mean),
          height: high(mean),
        }),
      (left, width, high) =>
        svg('path', {
          class: 'regret-range',
          d: `M${left + width / 2} ${HEIGHT - high(Math.max(0, low))} V${HEIGHT - high(Math.max(0, up))}`,
        }),
    ];
  }

  function line(all) {
    const values = all.filter((turn) => turn.value !== null).map((turn) => turn.value);
    const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
    const y = (value) => 3 + ((most - value) / (most - least || 1)) * (HEIGHT - 6);
    const draw = (play, x, cell) => {
      const points = [];
      for (let turn = 1; turn <= play.length; turn++) {
        const { value } = play.turn(turn);
        if (value !== null) points.push(`${x(turn) + cell / 2} ${y(value)}`);
      }
      if (!points.length) return [];
      return [
        svg('path', { class: 'zero', d: `M${x(0)} ${y(0)} H${x(play.length) + cell}` }),
        svg('path', { class: 'value', d: 'M' + points.join(' L') }),
      ];
    };
    return {
      name: 'value',
      height: HEIGHT,
      note: `${number(least)} to ${number(most)}`,
      draw,
      of: (play) => play.has.value,
    };
  }
})();
