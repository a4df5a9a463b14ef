/* A game: the viewer shows it and hears the moves, the server plays them; hints and the truth where they are asked for. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, number } = phalanx;

  phalanx.openGame = (main, id) => {
    document.title = 'Play \u00b7 phalanx';
    const url = `/api/games/${encodeURIComponent(id)}`;
    const stage = el('div');
    const said = el('div', { 'aria-live': 'assertive' });
    const end = el('div');
    let [game, viewer, advice, ended] = [null, null, null, false];
    const cards = el('button', { type: 'button', text: 'Open cards', title: 'show what is true from now on; your score is marked', on: { click: openCards } });
    const belief = toggle('Belief', true, (shown) => stage.classList.toggle('without-belief', !shown));
    const hints = toggle('Hints', false, (shown) => advice.show(shown));
    const tools = el('div', { class: 'tools' }, belief, hints, cards, el('a', { class: 'button', href: '#/play', text: 'New game' }));
    const head = el('header', { class: 'page-head' }, el('h1', { text: 'Your game' }), tools);
    advice = phalanx.advicePanel(url, act);
    main.append(head, said, end, stage);
    stage.append(phalanx.says.loading());
    phalanx.get(url).then(begin, (error) => stage.replaceChildren(phalanx.says.error(error), el('p', {}, el('a', { href: '#/play', text: 'Begin another game' }))));

    function begin(told) {
      if (ended) return;
      take(told);
    }

    function take(told) {
      game = told;
      if (!viewer || game.is_over) {
        const board = el('div'); // of its own: keys go to the viewer that is in the page
        stage.replaceChildren(board);
        viewer = phalanx.replay(board, game.trajectory, game.is_over ? { turn: game.turn } : { onAction: act, offer, truth: game.opened !== null, aside: advice.element });
      } else viewer.update(game.trajectory, { truth: game.opened !== null });
      cards.classList.toggle('hidden', game.is_over || game.opened !== null);
      hints.classList.toggle('hidden', game.is_over);
      advice.follow(game);
      if (game.is_over) end.replaceChildren(phalanx.resultPanel(url, game, (trajectory) => viewer.update(trajectory)));
    }

    /** Decoys that cannot be placed are not offered; what is thought of a move stands beside it. */
    function offer(action) {
      return { disabled: game.mask[action] === '0', note: advice.note(action) };
    }

    async function act(action) {
      said.replaceChildren();
      try {
        await advice.judge(action);
        take(await phalanx.post(url + '/turns', { turn: game.turn + 1, action }));
      } catch (error) {
        if (error.status === 409) take(await phalanx.get(url));
        else said.replaceChildren(phalanx.says.error(error));
      }
    }

    async function openCards() {
      try {
        take(await phalanx.post(url + '/open'));
      } catch (error) {
        said.replaceChildren(phalanx.says.error(error));
      }
    }

    return () => {
      ended = true;
      advice.end();
    };
  };

  function toggle(label, on, heard) {
    const button = el('button', { type: 'button', class: 'toggle', 'aria-pressed': String(on), on: { click: () => {
      const pressed = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(pressed));
      heard(pressed);
    } } }, el('span', { class: 'switch', 'aria-hidden': 'true' }), label);
    return button;
  }

  /** The end: the score beside others, and what the champion makes of the game. */
  phalanx.resultPanel = (url, game, showLookedBack) => {
    const place = el('div', {}, el('p', { class: 'quiet', text: 'The champion plays the same …' }));
    const back = el('div', {});
    const element = el('section', { class: 'panel result', 'aria-label': 'Result' },
      el('h2', { text: 'The end' }),
      el('p', {}, 'Your return: ', el('strong', { class: 'score', 'data-name': 'your-return', text: number(game.return, 1) }),
        game.opened === null ? '' : el('span', { class: 'note', text: ` with open cards from turn ${game.opened + 1}` })),
      place, back);
    phalanx.post(url + '/beside').then(async ({ published, job }) => {
      draw(published, null);
      await phalanx.whenReady(job, ({ note }) => draw(published, null, note || 'the champion plays the same'));
      draw(published, await phalanx.resultOf(job));
    }).catch((error) => place.replaceChildren(phalanx.says.error(error)));

    function draw(published, champion, note = '') {
      const rows = [{ name: 'you', value: game.return, kind: 'you' }];
      if (champion) {
        rows.push({ name: `${champion.champion}, same dice`, value: champion.same_dice, kind: 'champion' },
          { name: `${champion.champion}, mean of ${champion.episodes} games`, value: champion.mean, low: champion.low, high: champion.high, kind: 'champion' });
      }
      rows.push(...published.map((one) => ({ name: one.name, value: one.return, kind: 'published' })));
      const reach = Math.max(0.1, ...rows.map((row) => -(row.low ?? row.value)));
      const lines = rows.sort((one, two) => two.value - one.value).map((row) => {
        const bar = el('span', { class: 'score-bar' });
        bar.style.width = (100 * -row.value) / reach + '%';
        return el('tr', { 'data-kind': row.kind }, el('th', { scope: 'row', text: row.name }), el('td', { class: 'number', text: number(row.value, row.kind === 'you' || row.low === undefined && row.kind === 'champion' ? 1 : 2) }), el('td', { class: 'bars' }, bar));
      });
      place.replaceChildren(
        el('div', { class: 'scroll' }, el('table', { class: 'scores' }, el('tbody', {}, ...lines))),
        el('p', { class: 'small quiet', text: champion ? `Better than ${Math.round(100 * champion.better_than)} % of the champion\u2019s games; nine of ten of those lie between ${number(champion.low, 1)} and ${number(champion.high, 1)}. ${published.length ? 'Published scores are means of many games, from the challenge\u2019s leaderboard.' : 'The leaderboard has no such game.'}` : note ? note.charAt(0).toUpperCase() + note.slice(1) + ' …' : '' }));
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
        back.replaceChildren(el('p', { text: costly ? `In ${costly} of ${game.horizon} turns another move would surely have been better, had you known the truth: see \u201cNext costly decision\u201d below.` : 'In no turn another move would surely have been better.' }));
      } catch (error) {
        back.replaceChildren(phalanx.says.error(error));
      }
    }
    return element;
  };
})();
