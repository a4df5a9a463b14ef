/* The network, drawn from the scenario: subnets in the order red gets to them, hosts, and ways. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el, svg } = phalanx;
  const DENSE = 7; // hosts below each other from which on a card is one line
  const NARROW = 480; // pixels: below, subnets stand below each other
  const VERBS = {
    sleep: 'sleeps',
    scan_subnet: 'scans',
    scan_host: 'scans',
    exploit: 'exploits',
    escalate: 'escalates',
    impact: 'stops service',
  };

  /** The subnets in columns: how many steps red needs from where it begins. */
  phalanx.columnsOf = (scenario, begun) => {
    const count = scenario.subnets.length;
    const depth = new Array(count).fill(-1);
    const into = new Set(scenario.links.filter(([from, to]) => from !== to).map(([, to]) => to));
    let front = scenario.subnets.flatMap((subnet, index) =>
      subnet.hosts.some((host) => begun[host] > 0) ? [index] : [],
    );
    if (!front.length) front = scenario.subnets.flatMap((_, index) => (into.has(index) ? [] : [index]));
    if (!front.length) front = [0];
    for (let step = 0; front.length; step++) {
      front.forEach((subnet) => (depth[subnet] = step));
      front = [
        ...new Set(scenario.links.filter(([from, to]) => depth[from] === step && depth[to] < 0).map(([, to]) => to)),
      ];
    }
    const deepest = Math.max(...depth);
    const columns = Array.from({ length: deepest + 1 }, (_, step) =>
      depth.flatMap((each, subnet) => (each === step ? [subnet] : [])),
    );
    const never = depth.flatMap((each, subnet) => (each < 0 ? [subnet] : []));
    return never.length ? [...columns, never] : columns;
  };

  /** Hosts in the order in which the network shows them, subnet by subnet. */
  phalanx.hostOrder = (scenario, begun) =>
    phalanx
      .columnsOf(scenario, begun)
      .flat()
      .map((subnet) => scenario.subnets[subnet].hosts);

  /** The network of a play: {element, show(turn, other), arrange()}. onHost hears which was opened. */
  phalanx.drawNetwork = (play, onHost) => {
    const { scenario } = play;
    const columns = phalanx.columnsOf(scenario, play.begun);
    const cards = [];
    const groups = [];
    const drawGroup = (subnet) => {
      const { name, hosts } = scenario.subnets[subnet];
      const reached = scenario.links
        .filter(([from, to]) => from === subnet && to !== from)
        .map(([, to]) => scenario.subnets[to].name);
      const list = el(
        'ul',
        { class: 'hosts' },
        ...hosts.map((host) => {
          cards[host] = phalanx.hostCard(scenario, host, play.has);
          cards[host].button.addEventListener('click', () => onHost(host, cards[host].button));
          return cards[host].element;
        }),
      );
      groups[subnet] = el(
        'section',
        { class: 'subnet', 'data-subnet': subnet, 'aria-label': `${name} subnet` },
        el(
          'header',
          { class: 'subnet-head' },
          el('span', { class: 'subnet-name', text: name, title: name }),
          el('span', { class: 'reaches quiet', text: reached.length ? '\u2192 ' + phalanx.listed(reached) : '' }),
        ),
        list,
      );
      return groups[subnet];
    };
    const arrows = svg('svg', { class: 'arrows', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    const drawn = columns.map((column) => el('div', { class: 'column' }, ...column.map(drawGroup)));
    const tallest = Math.max(
      ...columns.map((column) => column.reduce((sum, subnet) => sum + scenario.subnets[subnet].hosts.length, 0)),
    );
    const element = el(
      'div',
      {
        class: 'network' + (tallest > DENSE ? ' dense' : '') + (play.blind ? ' blind' : ''),
        role: 'group',
        'aria-label': 'Network',
        style: `--columns: ${columns.length}`,
      },
      arrows,
      ...drawn,
    );
    let roots = [];

    function show(turn, other) {
      const state = play.state(turn);
      const moved = play.turn(turn);
      const theirs = other ? other.state(turn).access : null;
      cards.forEach((card, host) => card.show(phalanx.hostFacts(play, host, state, moved, theirs)));
      roots = state.access.map((access) => access === 2);
      for (const path of arrows.querySelectorAll('[data-from-host]')) {
        path.classList.toggle('open', roots[Number(path.dataset.fromHost)]);
      }
    }

    /** Arrows lie between the cards as they are laid out now. */
    function arrange() {
      if (!element.clientWidth) return;
      element.classList.toggle('narrow', element.clientWidth < NARROW);
      const box = element.getBoundingClientRect();
      const place = (target) => {
        const { left, top, right, bottom } = target.getBoundingClientRect();
        return { left: left - box.left, right: right - box.left, top: top - box.top, bottom: bottom - box.top };
      };
      arrows.setAttribute('viewBox', `0 0 ${box.width} ${box.height}`);
      const paths = [];
      const rank = columns.flat();
      const columnOf = (subnet) => columns.findIndex((column) => column.includes(subnet));
      const known = new Set(scenario.links.map(String));
      for (const [from, to] of scenario.links) {
        const both = known.has(String([to, from])); // drawn once, from the one that red gets to first
        if (from === to || (both && rank.indexOf(from) > rank.indexOf(to))) continue;
        const draw = Math.abs(columnOf(from) - columnOf(to)) > 1 ? archway : way;
        paths.push(...draw(place(groups[from]), place(groups[to]), 'link', both, 20));
      }
      scenario.points.forEach(([from, to]) => {
        const drawnWay = way(place(cards[from].element), place(cards[to].element), 'point', false, null);
        drawnWay.forEach((path) => {
          path.dataset.fromHost = from;
          path.classList.toggle('open', Boolean(roots[from]));
        });
        paths.push(...drawnWay);
      });
      arrows.replaceChildren(...paths);
    }
    return { element, cards, show, arrange, hosts: columns.flat().map((subnet) => scenario.subnets[subnet].hosts) };
  };

  /** What a card shows of a host after a turn. */
  phalanx.hostFacts = (play, host, state, moved, theirs = null) => {
    const at = (column) => (column ? column[host] : null);
    const verb = moved ? (play.scenario.verbs[moved.blue] || { verb: 'acts' }).verb : '';
    return {
      access: state.access[host],
      known: state.known[host],
      files: state.files[host],
      decoys: state.decoys[host],
      activity: state.activity[host],
      compromised: state.compromised[host],
      scan: at(state.scan),
      exploit: at(state.exploit),
      session: at(state.session),
      root: at(state.root),
      digits: play.digits,
      blind: play.blind,
      cost: moved ? moved.costs.filter((cost) => cost[1] === host).reduce((sum, cost) => sum + cost[2], 0) : 0,
      blue: moved && moved.blueHost === host ? { verb } : null,
      green: moved && moved.greenHost === host ? { verb: 'scans' } : null,
      red:
        moved && moved.redHost === host
          ? { verb: VERBS[moved.redKind] || moved.redKind, success: moved.redSuccess }
          : null,
      differs: theirs !== null && theirs[host] !== state.access[host],
    };
  };

  /** An arrow between two boxes, by the side where they face each other; twoWay has two heads. */
  function way(from, to, kind, twoWay, below) {
    const y = (box) => (below === null ? (box.top + box.bottom) / 2 : box.top + below);
    let [x1, y1, x2, y2] = [from.right, y(from), to.left, y(to)];
    let bend = Math.max(16, (x2 - x1) / 2);
    let [out, into] = [1, -1]; // leaves to the right, comes in from the left
    if (to.left < from.right && from.left < to.right) {
      [x1, x2, out, into] = [from.left, to.left, -1, -1]; // below each other: round the left side
      bend = 14;
    } else if (to.left < from.left) {
      [x1, x2, out, into] = [from.left, to.right, -1, 1];
      bend = Math.max(16, (x1 - x2) / 2);
    }
    const line = svg('path', {
      class: kind,
      d: `M${x1} ${y1} C${x1 + out * bend} ${y1} ${x2 + into * bend} ${y2} ${x2 + into * 4} ${y2}`,
    });
    const heads = [head(x2, y2, into, kind)];
    if (twoWay) heads.push(head(x1, y1, out, kind));
    return [line, ...heads];
  }

  /** An arrow over the columns that stand between two boxes, so that it crosses no name. */
  function archway(from, to, kind, twoWay, below) {
    const right = to.left > from.right;
    const [out, into] = right ? [1, -1] : [-1, 1];
    const [x1, x2] = right ? [from.right, to.left] : [from.left, to.right];
    const [y1, y2, over] = [from.top + below, to.top + below, Math.min(from.top, to.top) - 5];
    const line = svg('path', {
      class: kind,
      d:
        `M${x1} ${y1} C${x1 + out * 12} ${y1} ${x1 + out * 4} ${over} ${x1 + out * 20} ${over} ` +
        `L${x2 + into * 20} ${over} C${x2 + into * 4} ${over} ${x2 + into * 14} ${y2} ${x2 + into * 4} ${y2}`,
    });
    const heads = [head(x2, y2, into, kind)];
    if (twoWay) heads.push(head(x1, y1, out, kind));
    return [line, ...heads];
  }

  const head = (x, y, side, kind) => svg('path', { class: kind + '-head', d: `M${x} ${y} l${side * 7} -4 v8 Z` });
})();
