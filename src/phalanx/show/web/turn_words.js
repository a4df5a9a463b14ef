/* Turns in words: for ears, and for what lies under the pointer. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { number, interval } = phalanx;
  const ACCESS = ['no access', 'user', 'root'];
  const DOT = ' \u00b7 ';

  /** A turn in a sentence or two. */
  phalanx.turnWords = (episode, turn) => {
    const said = episode.plays.map((play) => {
      const moved = play.turn(turn);
      const who = episode.plays.length > 1 ? play.title.policy + ': ' : '';
      if (!moved) return who + (turn === 0 ? 'The beginning.' : 'The game is over.');
      const cost = number(-moved.reward, play.digits);
      const sum = number(play.soFar(turn), play.digits);
      const green = moved.greenWords ? `Green ${moved.greenWords}. ` : '';
      return `${who}Blue ${moved.blueWords}. ${green}${moved.redWords}. Cost ${cost}, return so far ${sum}.`;
    });
    return `Turn ${turn} of ${episode.length}. ` + said.join(' ');
  };

  /** What a band of the strip holds at a height, in a turn. */
  phalanx.pointWords = (band, y, turn, scenario) => {
    const { play } = band;
    const moved = play.turn(turn);
    const row = band.rows.find(({ top, bottom }) => y >= top && y < bottom);
    if (row && row.host >= 0) {
      const words = [`${scenario.names[row.host]}: ${ACCESS[play.state(turn).access[row.host]]}`];
      if (moved && moved.blueHost === row.host) words.push('blue ' + moved.blueWords);
      if (moved && moved.greenHost === row.host) words.push('green ' + moved.greenWords);
      if (moved && moved.redHost === row.host) words.push(moved.redWords);
      return words.join(DOT);
    }
    if (!moved) return '';
    const met = band.tracks.find(({ top, bottom }) => y >= top && y < bottom);
    if (met) return trackWords[met.track.name](play, moved);
    const homeless = [moved.blueHost < 0 ? 'blue ' + moved.blueWords : '', moved.redHost < 0 ? moved.redWords : ''];
    return homeless.filter(Boolean).join(DOT);
  };

  const trackWords = {
    loss: (play, moved) => {
      const parts = [`loss ${number(-moved.reward, play.digits)}`];
      for (const cause of play.causes) {
        const mine = moved.costs.filter((cost) => cost[0] === cause);
        if (mine.length) parts.push(`${cause} ${number(-mine.reduce((sum, cost) => sum + cost[2], 0), play.digits)}`);
      }
      return parts.join(DOT);
    },
    regret: (play, { regret }) => {
      if (!regret) return 'no regret estimated';
      return `regret ${number(regret[0], 3)}, ${interval(regret[1], regret[2], 3)}`;
    },
    value: (play, { value }) => (value === null ? '' : `value ${number(value, 2)}`),
  };
})();
