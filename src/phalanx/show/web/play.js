/* A game: the viewer shows it and hears the moves, the server plays them; hints and the truth if asked for. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el } = phalanx;

  phalanx.openGame = (main, id) => {
    document.title = 'Play \u00b7 phalanx';
    const url = `/api/games/${encodeURIComponent(id)}`;
    const stage = el('div');
    const said = el('div', { 'aria-live': 'assertive' });
    const end = el('div');
    let [game, viewer, advice, ended] = [null, null, null, false];
    const cards = el('button', {
      type: 'button',
      text: 'Open cards',
      title: 'show what is true from now on; your score is marked',
      on: { click: openCards },
    });
    const belief = toggle('Belief', true, (shown) => stage.classList.toggle('without-belief', !shown));
    const hints = toggle('Hints', false, (shown) => advice.show(shown));
    const tools = el(
      'div',
      { class: 'tools' },
      belief,
      hints,
      cards,
      el('a', { class: 'button', href: '#/play', text: 'New game' }),
    );
    const head = el('header', { class: 'page-head' }, el('h1', { text: 'Your game' }), tools);
    advice = phalanx.advicePanel(url, act);
    main.append(head, said, end, stage);
    stage.append(phalanx.says.loading());
    phalanx
      .get(url)
      .then(begin, (error) =>
        stage.replaceChildren(
          phalanx.says.error(error),
          el('p', {}, el('a', { href: '#/play', text: 'Begin another game' })),
        ),
      );

    function begin(told) {
      if (ended) return;
      take(told);
    }

    function take(told) {
      game = told;
      if (!viewer || game.is_over) {
        const board = el('div'); // of its own: keys go to the viewer that is in the page
        stage.replaceChildren(board);
        viewer = phalanx.replay(
          board,
          game.trajectory,
          game.is_over
            ? { turn: game.turn }
            : { onAction: act, offer, truth: game.opened !== null, aside: advice.element },
        );
      } else viewer.update(game.trajectory, { truth: game.opened !== null });
      stage.classList.toggle('playing', !game.is_over);
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
    const button = el(
      'button',
      {
        type: 'button',
        class: 'toggle',
        'aria-pressed': String(on),
        on: {
          click: () => {
            const pressed = button.getAttribute('aria-pressed') !== 'true';
            button.setAttribute('aria-pressed', String(pressed));
            heard(pressed);
          },
        },
      },
      el('span', { class: 'switch', 'aria-hidden': 'true' }),
      label,
    );
    return button;
  }
})();
