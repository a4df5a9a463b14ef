/* One host as a card: the truth beside what blue was shown, what it remembers and can believe. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, write, shape, percent } = phalanx;
  const ACCESS = ['none', 'user', 'root'];
  const SEEN_AS = ['none', 'none', 'user', 'root']; // the shape where the truth is hidden: blue's own rating
  const KNOWN = ['not found', 'found', 'scanned'];
  const ACTIVITY = { 0: '', 1: 'scan', 2: 'activity', 3: 'exploit' };
  const COMPROMISED = ['', 'unknown', 'user', 'root']; // the challenge calls the last one Privileged

  /** The card of a host: {element, button, show(facts)}. */
  phalanx.hostCard = (scenario, host, has) => {
    const name = scenario.names[host];
    const glyph = el('span', { class: 'glyph' });
    const part = (label) => el('span', { class: label, 'data-name': label });
    const [access, file, decoys, cost] = ['access', 'file', 'decoys', 'cost'].map(part);
    const [now, memory, session, root] = ['now', 'memory', 'session', 'root'].map(part);
    const bar = el(
      'span',
      { class: 'belief-bar' },
      el('span', { class: 'session-part' }),
      el('span', { class: 'root-part' }),
    );
    const tags = el('span', { class: 'tags' });
    const button = el(
      'button',
      { class: 'host', type: 'button', 'data-host': host, 'aria-haspopup': 'dialog' },
      glyph,
      el('span', { class: 'host-name', text: name, title: name }),
      el('span', { class: 'truth' }, shape('red'), access, file, decoys, cost),
      el('span', { class: 'seen' }, shape('blue'), now, memory),
      has.belief ? el('span', { class: 'belief' }, bar, el('span', { class: 'chances' }, session, root)) : null,
      tags,
    );
    const [sessionPart, rootPart] = bar.children;

    function show(facts) {
      const kind = facts.blind ? SEEN_AS[facts.compromised] : ACCESS[facts.access];
      Object.assign(button.dataset, {
        access: facts.access,
        known: facts.known,
        files: facts.files,
        decoys: facts.decoys,
        activity: facts.activity,
        compromised: facts.compromised,
        differs: facts.differs ? 'yes' : 'no',
        blue: facts.blue ? 'yes' : 'no',
        red: facts.red ? 'yes' : 'no',
      });
      if (glyph.firstChild?.dataset?.shape !== kind) glyph.replaceChildren(shape(kind));
      write(access, facts.access ? kind : KNOWN[facts.known]);
      fill(file, facts.files ? 'file' : null, '');
      file.title = facts.files ? 'a file of red' : '';
      const standing = decoyNames(scenario, facts.decoys);
      fill(decoys, standing.length ? 'decoy' : null, standing.length ? String(standing.length) : '');
      write(cost, facts.cost ? phalanx.number(facts.cost, facts.digits) : '');
      write(now, nowWords(facts) || (memoryWords(facts) ? '' : 'nothing'));
      now.classList.toggle('quiet', !nowWords(facts));
      write(memory, memoryWords(facts));
      if (has.belief) {
        write(session, percent(facts.session));
        fill(root, facts.root ? 'root' : null, facts.root ? percent(facts.root) : '');
        Object.assign(button.dataset, { session: facts.session, root: facts.root });
        sessionPart.style.width = facts.session / 10 + '%';
        rootPart.style.width = facts.root / 10 + '%';
      }
      const moves = [tagOf('blue', facts.blue), tagOf('green', facts.green), tagOf('red', facts.red)];
      tags.replaceChildren(...moves.filter(Boolean));
      button.setAttribute('aria-label', phalanx.hostWords(scenario, host, facts).join('. '));
    }
    return { element: el('li', { class: 'slot' }, button), button, show };
  };

  function fill(element, shapeName, text) {
    const key = (shapeName || '') + '|' + text;
    if (element.dataset.key === key) return;
    element.dataset.key = key;
    element.replaceChildren(...(shapeName ? [shape(shapeName)] : []), ...(text ? [text] : []));
  }

  function tagOf(side, move) {
    if (!move) return null;
    const drawn = side !== 'red' ? side : move.success ? 'red' : 'missed';
    return el(
      'span',
      { class: 'tag tag-' + side, 'data-name': 'tag-' + side },
      shape(drawn),
      el('span', { text: move.verb.replace(/^Decoy(?=[A-Z])/, 'decoy ') }),
    );
  }

  const decoyNames = (scenario, mask) => scenario.decoys.filter((_, bit) => (mask >> bit) & 1);

  /** What blue is shown this turn: how it rates the host, and what it noticed. */
  function nowWords(facts) {
    return [COMPROMISED[facts.compromised], ACTIVITY[facts.activity]].filter(Boolean).join(' \u00b7 ');
  }

  /** What blue noticed in earlier turns, by the turn it was. */
  function memoryWords(facts) {
    const noted = [];
    if (facts.exploit && facts.activity !== 3) noted.push('exploit t' + facts.exploit);
    if (facts.scan && facts.activity !== 1) noted.push('scan t' + facts.scan);
    return noted.join(' \u00b7 ');
  }

  /** All that a card shows, as sentences: read out, and shown in full where a host is opened. */
  phalanx.hostWords = (scenario, host, facts) => {
    const words = [scenario.names[host]];
    if (!facts.blind) words.push(['Red is not on it', 'Red has a user\u2019s shell', 'Red is root'][facts.access]);
    if (!facts.access && !facts.blind)
      words.push(['Red has not found it', 'Red has found it', 'Red has scanned it'][facts.known]);
    if (facts.files) words.push('A file of red lies there');
    const standing = decoyNames(scenario, facts.decoys);
    words.push(standing.length ? 'Decoys: ' + phalanx.listed(standing, 99) : 'No decoys');
    if (facts.cost) words.push('It cost ' + phalanx.number(-facts.cost, facts.digits) + ' this turn');
    words.push('Blue sees ' + (nowWords(facts).replace(' \u00b7 ', ', ') || 'nothing'));
    if (facts.scan !== null) {
      words.push(
        memoryWords(facts)
          ? 'Blue remembers ' +
              memoryWords(facts)
                .replace(/\bt(\d+)/g, 'at turn $1')
                .replace(' \u00b7 ', ', ')
          : 'Blue remembers nothing',
      );
    }
    if (facts.session !== null) {
      words.push(`Chance of a session ${facts.session / 10} %, of root ${facts.root / 10} %`);
    }
    return words;
  };
})();
