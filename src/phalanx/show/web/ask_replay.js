/* Replays: who defends against whom, and in which episode; then the episode itself. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, write } = phalanx;
  const PICKS = [
    ['', 'the episode of the seed'],
    ['worst', 'the worst of many'],
    ['median', 'the median of many'],
    ['best', 'the best of many'],
    ['typical', 'a typical one of many'],
  ];

  phalanx.addPage('replay', 'Replay', (main, [policy = '']) => {
    document.title = 'Replay \u00b7 phalanx';
    main.append(phalanx.says.loading());
    Promise.all([phalanx.get('/api/choices'), phalanx.get('/api/runs')]).then(
      ([choices, { runs }]) => main.replaceChildren(...form(choices, runs, policy)),
      (error) => main.replaceChildren(phalanx.says.error(error)),
    );
    return null;
  });

  function form(choices, runs, policy) {
    const playable = runs.filter((row) => row.is_playable);
    const defenders = (nobody) =>
      el(
        'select',
        {},
        nobody ? el('option', { value: '', text: 'nobody' }) : null,
        el(
          'optgroup',
          { label: 'with phalanx' },
          ...choices.defenders.map((name) => el('option', { value: name, text: name })),
        ),
        playable.length
          ? el(
              'optgroup',
              { label: 'your runs' },
              ...playable.map(({ name }) => el('option', { value: 'run/' + name, text: name })),
            )
          : null,
      );
    const [first, second] = [defenders(false), defenders(true)];
    if (policy) first.value = policy;
    const attacker = phalanx.attackerField(choices);
    const horizon = el('input', {
      type: 'number',
      min: 1,
      max: 1000,
      value: 100,
      required: true,
      inputmode: 'numeric',
      list: 'horizons',
    });
    const rules = el(
      'select',
      {},
      el('option', { value: '', text: 'the defender\u2019s own' }),
      ...choices.rules.map((name) => el('option', { value: name, text: name })),
    );
    const seed = el('input', {
      type: 'text',
      inputmode: 'numeric',
      pattern: '[0-9]+',
      value: 0,
      required: true,
      autocomplete: 'off',
    });
    const pick = el(
      'select',
      { on: { change: () => many.classList.toggle('hidden', !pick.value) } },
      ...PICKS.map(([value, text]) => el('option', { value, text })),
    );
    const of = el('input', { type: 'number', min: 2, max: 10000, value: 1000, inputmode: 'numeric' });
    const many = phalanx.field('Out of', of, 'episodes with this seed');
    many.classList.add('hidden');
    const whatIf = el('input', { type: 'checkbox', checked: true });
    const said = el('div', { 'aria-live': 'polite' });
    const button = el('button', { type: 'submit', class: 'main-button', text: 'Replay' });

    async function begin(event) {
      event.preventDefault();
      button.disabled = true;
      said.replaceChildren();
      try {
        const job = await phalanx.post('/api/replays', {
          policy: first.value,
          compare: second.value,
          red_agent: attacker.value(),
          horizon: Number(horizon.value),
          rules: rules.value,
          seed: phalanx.wholeNumber(seed.value),
          pick: pick.value,
          of: Number(of.value),
          what_if: whatIf.checked,
        });
        phalanx.goTo('shown', job.id);
      } catch (error) {
        said.replaceChildren(phalanx.says.error(error));
        button.disabled = false;
      }
    }
    return [
      el('header', { class: 'page-head' }, el('h1', { text: 'Replay an episode' })),
      el(
        'form',
        { class: 'panel form', on: { submit: begin } },
        phalanx.field('Defender', first),
        phalanx.field('Beside it', second, 'on the same dice'),
        attacker.element,
        phalanx.field('Turns', horizon),
        phalanx.field('Seed', seed, 'equal seeds are equal dice'),
        phalanx.field('Episode', pick),
        many,
        phalanx.field('Rules', rules),
        phalanx.field(
          'What if',
          whatIf,
          'find out what other actions would have brought: takes some seconds, for trained policies',
        ),
        el('datalist', { id: 'horizons' }, ...choices.horizons.map((turns) => el('option', { value: turns }))),
        el('div', { class: 'form-end' }, button),
        said,
      ),
    ];
  }

  /** Numbers with true minus signs; names keep their hyphens. */
  const minus = (words) => words.replace(/(^|[\s(])-(?=\d)/g, '$1\u2212');

  phalanx.addPage(
    'shown',
    null,
    (main, [id]) => {
      document.title = 'Replay \u00b7 phalanx';
      let ended = false;
      const note = el('p', { class: 'quiet', role: 'status' });
      const meter = phalanx.meter(0);
      const give = el('button', {
        type: 'button',
        text: 'Give up',
        on: { click: () => phalanx.post(`/api/jobs/${encodeURIComponent(id)}/give-up`) },
      });
      main.append(el('div', { class: 'state progress' }, meter, note, give));
      show().catch((error) => {
        if (!ended)
          main.replaceChildren(
            phalanx.says.error(error),
            el('p', {}, el('a', { href: '#/replay', text: 'Ask for another' })),
          );
      });

      async function show() {
        const job = await phalanx.get('/api/jobs/' + encodeURIComponent(id));
        await phalanx.whenReady(job, (told) => {
          meter.firstChild.style.width = 100 * told.share + '%';
          write(note, told.state === 'waiting' ? 'Other work comes first \u2026' : told.note + ' \u2026');
        });
        const { trajectory, picked, said } = await phalanx.get('/api/replays/' + encodeURIComponent(id));
        if (ended) return;
        const stage = el('div');
        main.replaceChildren(
          el(
            'header',
            { class: 'page-head' },
            el('h1', { text: 'Replay' }),
            el(
              'div',
              { class: 'tools' },
              el('a', {
                class: 'button',
                href: '/replays/' + encodeURIComponent(id),
                download: 'replay.html',
                text: 'Save as a file',
              }),
              el('a', { class: 'button', href: '#/replay', text: 'Another' }),
            ),
          ),
          picked
            ? el('p', { class: 'wide-line', text: minus(picked.charAt(0).toUpperCase() + picked.slice(1) + '.') })
            : '',
          ...said.split('\n').map((line) => el('p', { class: 'quiet wide-line', text: minus(line) })),
          stage,
        );
        phalanx.replay(stage, trajectory);
      }
      return () => {
        ended = true;
      };
    },
    'replay',
  );
})();
