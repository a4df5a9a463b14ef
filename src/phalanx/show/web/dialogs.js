/* What opens above the page: a host in words, with blue's actions in live play, and the help. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, shape } = phalanx;

  const DECOY = /^Decoy(?=[A-Z])/;

  function dialog(kind, label) {
    const element = el('dialog', { class: 'replay-dialog ' + kind, 'aria-label': label });
    element.addEventListener('click', (event) => {
      if (event.target === element) element.close();
    });
    return element;
  }

  const closer = (element) =>
    el('button', {
      type: 'button',
      class: 'close',
      'aria-label': 'Close',
      text: '\u00d7',
      on: { click: () => element.close() },
    });

  /** Opens a host beside its card: open(host, card, words, offered), offered is null or what blue can do.
   *  offer: tells of an action {disabled, note}. */
  phalanx.hostDialog = (root, scenario, onAction, offer = null) => {
    const element = dialog('host-dialog', 'Host');
    root.append(element);
    element.addEventListener('keydown', (event) => {
      const items = [...element.querySelectorAll('.offer:not(:disabled)')];
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !items.length) return;
      event.preventDefault();
      const at = items.indexOf(document.activeElement);
      items[(at + step + items.length) % items.length].focus();
    });

    function open(host, card, words, offered) {
      const [name, ...sentences] = words;
      element.setAttribute('aria-label', name);
      const choose = (action) => {
        element.close();
        onAction(action);
      };
      const decoysLast = [...(offered || [])].sort((one, two) => DECOY.test(one.verb) - DECOY.test(two.verb));
      const offers = decoysLast.map(({ action, verb }) => {
        const { disabled = false, note = '' } = (offer && offer(action)) || {};
        const heard = { click: () => choose(action) };
        return el(
          'li',
          {},
          el(
            'button',
            { type: 'button', class: 'offer', disabled, 'data-action': action, on: heard },
            verb.replace(DECOY, 'Decoy '),
            note ? el('span', { class: 'offer-note quiet', text: note }) : null,
          ),
        );
      });
      element.replaceChildren(
        el('header', {}, el('h3', { text: name }), closer(element)),
        el('ul', { class: 'sentences' }, ...sentences.map((each) => el('li', { text: each }))),
        offers.length ? el('h4', { text: 'What blue does now' }) : '',
        offers.length ? el('ul', { class: 'offers' }, ...offers) : '',
      );
      element.showModal();
      place(element, card);
      (element.querySelector('.offer:not(:disabled)') || element.querySelector('.close')).focus();
    }
    return { open, element };
  };

  /** Beside the card where there is room; on a phone the style puts it at the bottom. */
  function place(element, card) {
    const box = card.getBoundingClientRect();
    const [width, height] = [element.offsetWidth, element.offsetHeight];
    const right = box.right + 8 + width < innerWidth;
    const left = right ? box.right + 8 : Math.max(8, box.left - width - 8);
    element.style.setProperty('--left', left + 'px');
    element.style.setProperty('--top', Math.max(8, Math.min(box.top, innerHeight - height - 8)) + 'px');
  }

  const KEYS = [
    ['\u2190 \u2192', 'a turn back, a turn on'],
    ['space', 'play and pause'],
    ['Home End', 'beginning and end'],
    ['Page \u2191 \u2193', 'ten turns'],
    ['C', 'first compromise'],
    ['L', 'next loss'],
    ['R', 'next costly decision'],
    ['D', 'where two plays part'],
    ['?', 'this help'],
  ];
  const SIGNS = [
    ['none', 'red is not on the host'],
    ['user', 'red has a user\u2019s shell'],
    ['root', 'red is root'],
    ['blue', 'blue\u2019s move of the turn'],
    ['red', 'red\u2019s move; hollow where it failed'],
    ['decoy', 'decoys that stand'],
    ['file', 'a file of red'],
  ];

  const GREEN = ['green', 'a scan of green\u2019s: users of the network'];

  const NOTES = [
    'On a card, the line with the red sign is the truth. The line with the blue sign is what blue was shown this ' +
      'turn, in bold, and what it remembers, with the turn it was (t12). The bar is how sure blue can be of a ' +
      'session (light) and of root (dark) after everything it has seen.',
    'In the strip below, a row is a host and a column a turn: ticks are blue\u2019s moves, dots red\u2019s. Click or ' +
      'drag to move. Bars end at the 95th percentile; a notch marks those that are higher.',
  ];

  /** The help: keys and signs, green's where green plays. */
  phalanx.helpDialog = (root, hasGreen = false) => {
    const signs = hasGreen ? [...SIGNS, GREEN] : SIGNS;
    const element = dialog('help-dialog', 'Help');
    root.append(element);
    element.append(
      el('header', {}, el('h3', { text: 'How to read and move' }), closer(element)),
      el(
        'div',
        { class: 'help-columns' },
        el(
          'dl',
          {},
          ...KEYS.flatMap(([keys, words]) => [
            el('dt', {}, ...keys.split(' ').map((key) => el('kbd', { text: key }))),
            el('dd', { text: words }),
          ]),
        ),
        el(
          'dl',
          { class: 'signs' },
          ...signs.flatMap(([sign, words]) => [
            el('dt', { class: 'sign-' + sign }, shape(sign)),
            el('dd', { text: words }),
          ]),
        ),
      ),
      ...NOTES.map((text) => el('p', { class: 'quiet small', text })),
    );
    return {
      open: () => {
        if (!element.open) element.showModal();
      },
      element,
    };
  };
})();
