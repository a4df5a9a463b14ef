/* Before a game: against whom, how long, by which rules and dice. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el } = phalanx;
  const MIXTURE = 'b_line=0.5,meander=0.5';
  const SLOW_S = 3; // after which it is said what takes so long

  let made = 0;

  /** A labelled control of a form, and a word about it. */
  phalanx.field = (label, control, about = '') => {
    const id = `field-${made++}`;
    control.id = id;
    const words = typeof about === 'string' ? el('span', { class: 'small quiet', text: about }) : about;
    words.id = id + '-about';
    control.setAttribute('aria-describedby', words.id);
    return el('div', { class: 'field' }, el('label', { class: 'field-label', for: id, text: label }), control, words);
  };

  /** Attackers to choose from, mixtures too: {element, value()}. */
  phalanx.attackerField = (choices, first = 'meander') => {
    const own = el('input', {
      type: 'text',
      class: 'hidden',
      value: MIXTURE,
      'aria-label': 'Mixture, as name=share,name=share',
      spellcheck: 'false',
      autocomplete: 'off',
    });
    const about = el('span', { class: 'small quiet' });
    const select = el(
      'select',
      { name: 'red_agent', on: { change: tell } },
      el('optgroup', { label: 'of the challenge' }, ...choices.attackers.filter((one) => one.is_original).map(option)),
      el('optgroup', { label: 'others' }, ...choices.attackers.filter((one) => !one.is_original).map(option)),
      el('option', { value: '', text: 'a mixture …' }),
    );
    select.value = first;
    function option(one) {
      return el('option', { value: one.name, text: one.name });
    }
    function tell() {
      const known = choices.attackers.find((one) => one.name === select.value);
      about.textContent = known ? known.about : 'drawn when the game begins: you do not know whom you face';
      own.classList.toggle('hidden', Boolean(known));
    }
    tell();
    const element = phalanx.field('Attacker', select, about);
    select.after(own);
    return { element, value: () => select.value || own.value.trim() };
  };

  phalanx.addPage('play', 'Play', (main, [id]) => {
    if (id) return phalanx.openGame(main, id);
    document.title = 'Play \u00b7 phalanx';
    main.append(phalanx.says.loading());
    phalanx.get('/api/choices').then(
      (choices) => main.replaceChildren(...setup(choices)),
      (error) => main.replaceChildren(phalanx.says.error(error)),
    );
    return null;
  });

  function setup(choices) {
    const attacker = phalanx.attackerField(choices);
    const horizon = el('input', {
      type: 'number',
      name: 'horizon',
      min: 1,
      max: choices.most_turns,
      value: choices.horizons[0],
      required: true,
      inputmode: 'numeric',
      list: 'horizons',
    });
    const rules = el(
      'select',
      { name: 'rules' },
      ...choices.rules.map((name) => el('option', { value: name, text: name })),
    );
    const seed = el('input', {
      type: 'text',
      name: 'seed',
      inputmode: 'numeric',
      pattern: '[0-9]*',
      placeholder: 'any',
      autocomplete: 'off',
    });
    const said = el('div', { 'aria-live': 'polite' });
    const button = el('button', { type: 'submit', class: 'main-button', text: 'Begin' });
    const form = el(
      'form',
      { class: 'panel form', on: { submit: begin } },
      attacker.element,
      phalanx.field(
        'Turns',
        horizon,
        `${choices.horizons.join(', ')} are the challenge\u2019s; up to ${choices.most_turns}`,
      ),
      phalanx.field('Rules', rules, 'the leaderboard was made by the first'),
      phalanx.field('Seed', seed, 'equal seeds are equal dice; empty: new ones'),
      el('datalist', { id: 'horizons' }, ...choices.horizons.map((turns) => el('option', { value: turns }))),
      el('div', { class: 'form-end' }, button),
      said,
    );

    async function begin(event) {
      event.preventDefault();
      if (!form.reportValidity()) return;
      button.disabled = true;
      said.replaceChildren(el('p', { class: 'quiet', text: 'Setting up …' }));
      const slow = setTimeout(
        () =>
          said.replaceChildren(
            el('p', { class: 'quiet', text: 'The first game compiles the rules, once: up to a minute …' }),
          ),
        1000 * SLOW_S,
      );
      const wanted = { red_agent: attacker.value(), horizon: Number(horizon.value), rules: rules.value };
      if (seed.value.trim()) wanted.seed = phalanx.wholeNumber(seed.value);
      try {
        const game = await phalanx.post('/api/games', wanted);
        phalanx.goTo('play', game.id);
      } catch (error) {
        said.replaceChildren(phalanx.says.error(error));
        button.disabled = false;
      } finally {
        clearTimeout(slow);
      }
    }
    return [
      el('header', { class: 'page-head' }, el('h1', { text: 'Play the defender' })),
      el('p', {
        text:
          'You see what a defender is shown: activity and what may be compromised, host by host. Each turn, choose a ' +
          'host and what to do there. Every turn costs what red holds as root; a Restore costs one point, a stopped ' +
          'operational service ten. The truth is shown when the game is over.',
      }),
      form,
    ];
  }

  /** Numbers beyond 2^53 go as they are written. */
  phalanx.wholeNumber = (words) => (Number.isSafeInteger(Number(words)) ? Number(words) : words.trim());
})();
