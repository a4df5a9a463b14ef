/* An episode to look at: network, turn, strip and controls around one number, the turn shown. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, write, number } = phalanx;
  const viewers = new Set();
  let active = null; // the viewer that keys go to: the one last touched, or the only one

  /** Draw an episode into an element: {go(turn), turn(), update(trajectory, options)}.
   *  options: interactive (true), onAction (live play: hears the number of blue's action), truth (false: only what blue
   *  sees), turn (to begin with), level (of the heading), offer (tells of blue's actions, see hostDialog), aside (an
   *  element to stand below the turn). */
  phalanx.replay = (element, trajectory, options = {}) => {
    const usual = { interactive: true, onAction: null, truth: true, turn: null, level: 2, offer: null, aside: null };
    const settings = { ...usual, ...options };
    let [episode, shown, parts] = [null, 0, null];
    const said = el('p', { class: 'unseen', role: 'status', 'aria-live': 'polite' });

    const viewer = {
      go,
      turn: () => shown,
      update,
      episode: () => episode,
      say,
      help: () => parts && parts.help.open(),
      element,
    };

    function update(record, changed = {}) {
      Object.assign(settings, changed);
      const following = !episode || episode.problem || (settings.onAction && shown >= episode.length);
      const before = parts;
      if (before) before.controls.stop();
      episode = phalanx.readTrajectory(record, settings.truth);
      element.classList.add('replay');
      if (episode.problem) {
        parts = null;
        element.replaceChildren(el('p', { class: 'problem', role: 'status', text: episode.problem }));
        return;
      }
      const focused = focusIn(element);
      parts = build();
      if (focused) element.querySelector(focused)?.focus({ preventScroll: true });
      const first = settings.turn ?? (settings.onAction ? episode.length : 0);
      go(following ? (before ? episode.length : first) : shown);
      arrange();
    }

    function build() {
      const { plays } = episode;
      const horizon = settings.onAction ? Math.max(episode.length, episode.scenario.horizon || 0) : episode.length;
      const host = phalanx.hostDialog(element, episode.scenario, act, settings.offer);
      const views = plays.map((play) => {
        const network = phalanx.drawNetwork(play, (index, card) => openHost(host, play, index, card));
        return { network, panel: phalanx.turnPanel(play, horizon) };
      });
      const strip = phalanx.drawStrip(episode, horizon, (turn) => {
        parts.controls.stop();
        go(turn);
      });
      const help = phalanx.helpDialog(element, plays[0].has.green);
      const controls = phalanx.makeControls(viewer);
      const heads = plays.map((play) =>
        header(play, episode, horizon, plays.length > 1 ? settings.level + 1 : settings.level),
      );
      element.dataset.plays = plays.length;
      element.replaceChildren(
        el(
          'div',
          { class: 'stages' },
          ...views.map(({ network, panel }, index) =>
            el(
              'article',
              { class: 'stage', 'data-play': index },
              heads[index].element,
              ...plays[index].notes.map((text) => el('p', { class: 'left-out quiet', role: 'note', text })),
              el(
                'div',
                { class: 'stage-body' },
                el('div', { class: 'scene' }, network.element, plays.length === 1 ? legend(plays[0]) : null),
                settings.aside ? el('div', { class: 'beside' }, panel.element, settings.aside) : panel.element,
              ),
            ),
          ),
        ),
        plays.length > 1 ? legend(plays[0]) : '',
        strip.element,
        settings.interactive ? controls.element : '',
        host.element,
        help.element,
        said,
      );
      return { views, strip, controls, help, heads, moves: settings.onAction ? idleMoves(controls) : null };
    }

    /** In live play: moves that name no host are buttons among the controls. */
    function idleMoves(controls) {
      const group = el('div', { class: 'control-group live', role: 'group', 'aria-label': 'Moves on no host' });
      episode.scenario.verbs.forEach(({ host, verb }, action) => {
        if (host < 0)
          group.append(
            el('button', { type: 'button', 'data-action': action, text: verb, on: { click: () => act(action) } }),
          );
      });
      controls.element.prepend(group);
      return group;
    }

    /** Whether blue's next move can be made here: at the last turn, with no other under way. */
    function movable() {
      const over = shown >= (episode.scenario.horizon || Infinity);
      return Boolean(settings.onAction) && !over && shown === episode.length && !element.hasAttribute('aria-busy');
    }

    function act(action) {
      if (!movable()) return;
      element.setAttribute('aria-busy', 'true');
      Promise.resolve(settings.onAction(action)).finally(() => element.removeAttribute('aria-busy'));
    }

    function openHost(dialog, play, host, card) {
      const facts = phalanx.hostFacts(play, host, play.state(shown), play.turn(shown));
      const { scenario } = episode;
      const words = phalanx.hostWords(scenario, host, facts);
      const names = scenario.points.filter(([from]) => from === host).map(([, to]) => scenario.names[to]);
      if (names.length) words.push('Whoever is root here learns the way to ' + phalanx.listed(names));
      if (settings.onAction && shown < episode.length) words.push('To move, go to the last turn');
      dialog.open(host, card, words, movable() ? scenario.actionsOn(host) : null);
    }

    function go(turn) {
      if (!parts) return;
      shown = Math.max(0, Math.min(episode.length, Math.round(Number(turn) || 0)));
      element.dataset.turn = shown;
      parts.views.forEach(({ network, panel }, index) => {
        const other = parts.views.length > 1 ? episode.plays[1 - index] : null;
        network.show(shown, other);
        panel.show(shown);
        write(parts.heads[index].turn, String(shown));
      });
      parts.strip.show(shown);
      parts.controls.refresh();
      if (!parts.controls.playing()) say();
    }

    function say() {
      write(said, phalanx.turnWords(episode, shown));
    }

    function arrange() {
      if (!parts) return;
      parts.views.forEach(({ network }) => network.arrange());
      parts.strip.arrange();
    }

    viewers.add(viewer);
    viewer.key = (event) => Boolean(parts) && settings.interactive && parts.controls.key(event);
    for (const event of ['pointerdown', 'focusin']) element.addEventListener(event, () => (active = viewer));
    update(trajectory);
    new ResizeObserver(arrange).observe(element);
    return viewer;
  };

  document.addEventListener('keydown', (event) => {
    for (const viewer of viewers) if (!viewer.element.isConnected) viewers.delete(viewer);
    const target = active && viewers.has(active) ? active : viewers.size === 1 ? [...viewers][0] : null;
    if (target && target.key(event)) event.preventDefault();
  });

  /** How to find what has the focus again when all is drawn anew: a host, a button, or the strip. */
  function focusIn(element) {
    const held = element.contains(document.activeElement) ? document.activeElement : null;
    if (!held) return null;
    for (const name of ['host', 'control', 'speed', 'action']) {
      if (held.dataset[name] !== undefined) return `[data-${name}="${CSS.escape(held.dataset[name])}"]`;
    }
    return held.getAttribute('role') === 'slider' ? '[role="slider"]' : null;
  }

  function header(play, episode, horizon, level) {
    const { policy, attacker, seed, number: which, source } = play.title;
    const turn = el('span', { 'data-name': 'turn' });
    const told = [seed == null ? '' : `seed ${seed}`, which ? `episode ${which}` : ''].filter(Boolean).join(' \u00b7 ');
    const { name, rules } = episode.scenario;
    const about = [name || '', told, rules, source === 'trace' ? 'recorded from the original' : ''].filter(
      Boolean,
    );
    const element = el(
      'header',
      { class: 'episode-head' },
      el(
        'h' + level,
        {},
        el('span', { 'data-name': 'policy', text: policy }),
        el('span', { class: 'quiet', text: ' against ' }),
        el('span', { 'data-name': 'attacker', text: attacker }),
      ),
      el('span', { class: 'about quiet', 'data-name': 'about', text: about.join(' \u00b7 ') }),
      play.broken
        ? el('span', { class: 'broken', role: 'status', text: `the recording breaks off after turn ${play.length}` })
        : null,
      el(
        'span',
        { class: 'sums' },
        el('span', { class: 'quiet', text: 'return ' }),
        el('strong', {
          'data-name': 'return',
          text: number(play.record.return ?? play.soFar(play.length), play.digits),
        }),
        el('span', { class: 'quiet', text: ' \u00b7 turn ' }),
        turn,
        el('span', { class: 'quiet', text: '/' + horizon }),
      ),
    );
    return { element, turn };
  }

  function legend(play) {
    const sign = (name, words, kind = '') => el('span', { class: 'sign ' + kind }, phalanx.shape(name), words);
    return el(
      'p',
      { class: 'legend small', 'aria-hidden': 'true' },
      el('span', { class: 'quiet', text: 'red: ' }),
      sign('none', 'not on it'),
      sign('user', 'user', 'sign-user'),
      sign('root', 'root', 'sign-root'),
      sign('file', 'file'),
      sign('decoy', 'decoys'),
      el('span', { class: 'quiet', text: 'moves: ' }),
      sign('blue', 'blue', 'sign-blue'),
      sign('red', 'red', 'sign-red'),
      sign('missed', 'failed', 'sign-red'),
      play.has.green ? sign('green', 'green', 'sign-green') : null,
      play.has.belief
        ? el(
            'span',
            { class: 'sign' },
            el('span', { class: 'belief-sample' }, el('span'), el('span')),
            'chance of a session, of root',
          )
        : null,
    );
  }
})();
