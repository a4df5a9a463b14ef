/* Buttons and keys to move through a game: a turn, to the ends, by itself, or to what matters. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, shape } = phalanx;
  const SPEEDS = [1, 4, 16]; // turns a second

  /** Controls of an episode: {element, key(event), refresh(turn), stop()}. */
  phalanx.makeControls = (viewer) => {
    let timer = null;
    let speed = SPEEDS[0];
    const buttons = {};
    const make = (name, label, act, { icon = null, keys = null } = {}) => {
      buttons[name] = el(
        'button',
        {
          type: 'button',
          class: icon ? 'icon' : 'jump',
          'data-control': name,
          'aria-label': label,
          'aria-keyshortcuts': keys,
          title: icon && keys ? `${label} (${keys})` : icon ? label : null,
          on: {
            click: () => {
              if (buttons[name].getAttribute('aria-disabled') !== 'true') act();
            },
          },
        },
        icon ? shape(icon) : el('span', { text: label }),
      );
      return buttons[name];
    };
    const step = (by) => {
      stop();
      viewer.go(viewer.turn() + by);
    };
    const jump = (turn) => {
      stop();
      if (turn !== null) viewer.go(turn);
    };
    const choices = SPEEDS.map((each) =>
      el(
        'button',
        {
          type: 'button',
          class: 'speed',
          'data-speed': each,
          'aria-pressed': String(each === speed),
          'aria-label': `${each} turns a second`,
          on: { click: () => setSpeed(each) },
        },
        `${each}\u00d7`,
      ),
    );
    const plays = viewer.episode().plays;
    // Where the strip is out of sight (a phone, two plays), the same handle at the thumb.
    const overview = el('input', {
      type: 'range',
      class: 'overview',
      min: 0,
      max: viewer.episode().length,
      step: 1,
      'aria-label': 'Turn',
      on: {
        input: () => {
          stop();
          viewer.go(Number(overview.value));
        },
      },
    });
    const element = el(
      'div',
      { class: 'controls', role: 'toolbar', 'aria-label': 'Move through the game' },
      overview,
      el(
        'div',
        { class: 'control-group steps' },
        make('first', 'First turn', () => jump(0), { icon: 'first', keys: 'Home' }),
        make('back', 'Turn back', () => step(-1), { icon: 'back', keys: 'ArrowLeft' }),
        make('play', 'Play', toggle, { icon: 'play', keys: 'Space' }),
        make('forth', 'Next turn', () => step(1), { icon: 'forth', keys: 'ArrowRight' }),
        make('last', 'Last turn', () => jump(viewer.episode().length), { icon: 'last', keys: 'End' }),
      ),
      el('div', { class: 'control-group speeds', role: 'group', 'aria-label': 'Speed' }, ...choices),
      el(
        'div',
        { class: 'control-group jumps' },
        make('compromise', 'First compromise', () => jump(phalanx.jumps.compromise(viewer))),
        make('loss', 'Next loss', () => jump(phalanx.jumps.loss(viewer)), { keys: 'L' }),
        plays.some((play) => play.has.regret)
          ? make('regret', 'Next costly decision', () => jump(phalanx.jumps.regret(viewer)), { keys: 'R' })
          : null,
        plays.length > 1
          ? make('difference', 'Where they part', () => jump(phalanx.jumps.difference(viewer)), { keys: 'D' })
          : null,
      ),
      el(
        'div',
        { class: 'control-group' },
        make('help', 'Help', () => viewer.help(), { keys: '?' }),
      ),
    );

    function setSpeed(each) {
      speed = each;
      choices.forEach((button) => button.setAttribute('aria-pressed', String(Number(button.dataset.speed) === each)));
      if (timer !== null) start();
    }

    function start() {
      clearInterval(timer);
      if (viewer.turn() >= viewer.episode().length) viewer.go(0);
      timer = setInterval(() => {
        viewer.go(viewer.turn() + 1);
        if (viewer.turn() >= viewer.episode().length) stop();
      }, 1000 / speed);
      dress(true);
    }

    function stop() {
      if (timer === null) return;
      clearInterval(timer);
      timer = null;
      dress(false);
      viewer.say();
    }

    function toggle() {
      if (timer === null) start();
      else stop();
    }

    function dress(playing) {
      buttons.play.replaceChildren(shape(playing ? 'pause' : 'play'));
      buttons.play.setAttribute('aria-label', playing ? 'Pause' : 'Play');
      buttons.play.title = (playing ? 'Pause' : 'Play') + ' (space)';
    }

    /** Say which of the ways lead nowhere from here; they stay where they are, and focusable. */
    function refresh() {
      const turn = viewer.turn();
      overview.value = turn;
      const possible = {
        first: turn > 0,
        back: turn > 0,
        forth: turn < viewer.episode().length,
        last: turn < viewer.episode().length,
        play: viewer.episode().length > 0,
      };
      for (const name of ['compromise', 'loss', 'regret', 'difference']) {
        if (buttons[name]) possible[name] = phalanx.jumps[name](viewer) !== null;
      }
      for (const [name, can] of Object.entries(possible)) {
        if (can) buttons[name].removeAttribute('aria-disabled');
        else buttons[name].setAttribute('aria-disabled', 'true');
      }
    }

    const KEYS = {
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      PageUp: () => step(-10),
      PageDown: () => step(10),
      Home: () => jump(0),
      End: () => jump(viewer.episode().length),
      ' ': toggle,
      l: () => jump(phalanx.jumps.loss(viewer)),
      r: () => jump(phalanx.jumps.regret(viewer)),
      c: () => jump(phalanx.jumps.compromise(viewer)),
      d: () => jump(phalanx.jumps.difference(viewer)),
      '?': () => viewer.help(),
    };

    /** Do what a key asks for; whether it was one of ours. */
    function key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return false;
      if (event.key === ' ' && event.target.closest?.('button, a, summary')) return false; // it presses that
      if (event.target.closest?.('input:not(.overview), select, textarea, dialog[open], [contenteditable]'))
        return false;
      const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (act) act();
      return Boolean(act);
    }
    return { element, key, refresh, stop, playing: () => timer !== null };
  };

  /** Where a jump would lead from the shown turn, or null. */
  phalanx.jumps = {
    compromise: (viewer) =>
      earliest(
        viewer.episode().plays.map((play) => play.firstCompromise),
        viewer,
      ),
    loss: (viewer) => next(viewer, (play, turn) => play.loses(turn)),
    regret: (viewer) => next(viewer, (play, turn) => play.errs(turn)),
    difference: (viewer) => earliest(viewer.episode().differences.slice(0, 1), viewer),
  };

  function earliest(turns, viewer) {
    const known = turns.filter((turn) => turn !== null);
    if (!known.length) return null;
    const first = Math.min(...known);
    return first === viewer.turn() ? null : first;
  }

  function next(viewer, holds) {
    const { plays, length } = viewer.episode();
    for (let turn = viewer.turn() + 1; turn <= length; turn++) {
      if (plays.some((play) => turn <= play.length && holds(play, turn))) return turn;
    }
    return null;
  }
})();
