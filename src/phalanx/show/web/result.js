/* The end of a game: the score beside others, and what the champion makes of it. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, number } = phalanx;

  function comparison(champion, published) {
    const between = `${number(champion.low, 1)} and ${number(champion.high, 1)}`;
    return (
      `Better than ${Math.round(100 * champion.better_than)} % of the champion\u2019s games; nine of ten of those ` +
      `lie between ${between}. ` +
      (published.length
        ? 'Published scores are means of many games, from the challenge\u2019s leaderboard.'
        : 'The leaderboard has no such game.')
    );
  }

  /** The panel; showLookedBack hears the game as the champion sees it, if that is asked for. */
  phalanx.resultPanel = (url, game, showLookedBack) => {
    const place = el('div', {}, el('p', { class: 'quiet', text: 'The champion plays the same …' }));
    const back = el('div', {});
    const element = el(
      'section',
      { class: 'panel result', 'aria-label': 'Result' },
      el('h2', { text: 'The end' }),
      el(
        'p',
        {},
        'Your return: ',
        el('strong', { class: 'score', 'data-name': 'your-return', text: number(game.return, 1) }),
        game.opened === null
          ? ''
          : el('span', { class: 'note', text: ` with open cards from turn ${game.opened + 1}` }),
      ),
      place,
      back,
    );
    phalanx
      .post(url + '/beside')
      .then(async ({ published, job }) => {
        draw(published, null);
        await phalanx.whenReady(job, ({ note }) => draw(published, null, note || 'the champion plays the same'));
        draw(published, await phalanx.resultOf(job));
      })
      .catch((error) => place.replaceChildren(phalanx.says.error(error)));

    function draw(published, champion, note = '') {
      const rows = [{ name: 'you', value: game.return, kind: 'you', digits: 1 }];
      if (champion) {
        rows.push(
          { name: `${champion.champion}, same dice`, value: champion.same_dice, kind: 'champion', digits: 1 },
          {
            name: `${champion.champion}, mean of ${champion.episodes} games`,
            value: champion.mean,
            kind: 'champion',
            digits: 2,
          },
        );
      }
      rows.push(...published.map((one) => ({ name: one.name, value: one.return, kind: 'published', digits: 2 })));
      const reach = Math.max(0.1, ...rows.map((row) => -row.value));
      const lines = rows
        .sort((one, two) => two.value - one.value)
        .map((row) => {
          const bar = el('span', { class: 'score-bar' });
          bar.style.width = (100 * -row.value) / reach + '%';
          return el(
            'tr',
            { 'data-kind': row.kind },
            el('th', { scope: 'row', text: row.name }),
            el('td', { class: 'number', text: number(row.value, row.digits) }),
            el('td', { class: 'bars' }, bar),
          );
        });
      place.replaceChildren(
        el('div', { class: 'scroll' }, el('table', { class: 'scores' }, el('tbody', {}, ...lines))),
        el('p', {
          class: 'small quiet',
          text: champion
            ? comparison(champion, published)
            : note
              ? note.charAt(0).toUpperCase() + note.slice(1) + ' …'
              : '',
        }),
      );
    }
    const ask = el('button', { type: 'button', text: 'What would the champion have done?', on: { click: lookBack } });
    back.append(ask);

    /** Its view of every turn, and what each move cost: the replay below shows it. */
    async function lookBack() {
      const note = el('span', { class: 'quiet small', role: 'status' });
      const meter = phalanx.meter(0);
      back.replaceChildren(el('p', {}, meter, note));
      try {
        const job = await phalanx.post(url + '/look-back');
        await phalanx.whenReady(job, (told) => {
          meter.firstChild.style.width = 100 * told.share + '%';
          phalanx.write(note, told.note);
        });
        const trajectory = await phalanx.resultOf(job);
        showLookedBack(trajectory);
        const costly = (trajectory.plays[0].turns.regret || []).filter((regret) => regret && regret[1] > 0).length;
        back.replaceChildren(
          el('p', {
            text: costly
              ? `In ${costly} of ${game.horizon} turns another move would surely have been better, had you known the ` +
                'truth: see \u201cNext costly decision\u201d below.'
              : 'In no turn another move would surely have been better.',
          }),
        );
      } catch (error) {
        back.replaceChildren(phalanx.says.error(error));
      }
    }
    return element;
  };
})();
