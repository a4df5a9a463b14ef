/* An episode as the viewer asks for it: turn by turn, with what follows from the record. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const FORMAT = 'phalanx-trajectory';
  const VERSION = 1;

  /** What can be shown of a record: {scenario, plays, length, differences}, or {problem} in a sentence.
   *  Without the truth, plays are as blue sees them. */
  phalanx.readTrajectory = (record, truth = true) => {
    const problem = problemOf(record);
    if (problem) return { problem };
    const scenario = furnished(record.scenario);
    const plays = record.plays.slice(0, 2).map((play) => new Play(play, scenario, truth));
    const length = Math.max(...plays.map((play) => play.length));
    return { scenario, plays, length, differences: differences(plays) };
  };

  function problemOf(record) {
    if (record === null || typeof record !== 'object')
      return 'There is no episode here: nothing has been recorded yet.';
    if (record.format !== FORMAT)
      return 'This is not an episode of phalanx: its format is not named \u201c' + FORMAT + '\u201d.';
    if (record.version > VERSION) {
      return (
        `This episode was written by a newer phalanx (format ${record.version}; this page reads ${VERSION}). ` +
        'Open it with that version, or write it again.'
      );
    }
    const scenario = record.scenario;
    if (!scenario || !Array.isArray(scenario.hosts) || !Array.isArray(scenario.subnets) || !scenario.hosts.length) {
      return 'This episode does not say which hosts its network has, so there is nothing to draw.';
    }
    if (!Array.isArray(record.plays) || record.plays.length === 0) return 'No game has been played yet.';
    const whole = record.plays.every(
      (play) => play && play.states && Array.isArray(play.states.access) && play.states.access.length && play.turns,
    );
    return whole ? null : 'The recording broke off before its first turn: there is nothing to show yet.';
  }

  /** The scenario with what follows from it: which host an action names, and the order to draw in. */
  function furnished(scenario) {
    const actions = scenario.actions || [];
    const names = scenario.hosts.map((host) => host.name);
    const verbs = actions.map((action) => {
      let host = -1;
      names.forEach((name, index) => {
        if (action.endsWith(' ' + name) && (host < 0 || name.length > names[host].length)) host = index;
      });
      return { host, verb: host < 0 ? action : action.slice(0, -names[host].length - 1) };
    });
    return {
      rules: '',
      links: [],
      points: [],
      decoys: [],
      ...scenario,
      actions,
      names,
      verbs,
      actionName: (action) => actions[action] ?? 'action ' + action,
      actionsOn: (host) => verbs.flatMap((each, action) => (each.host === host ? [{ action, verb: each.verb }] : [])),
    };
  }

  class Play {
    constructor(play, scenario, truth) {
      this.record = play;
      this.blind = !truth;
      this.scenario = scenario;
      const columns = Object.values(play.turns).filter((column) => column !== null);
      const told = Math.min(play.states.access.length - 1, ...columns.map((column) => column.length));
      this.length = Math.max(0, told);
      const promised = Math.max(play.states.access.length - 1, ...columns.map((column) => column.length));
      this.broken = promised > this.length;
      this.states = []; // as they were asked for
      this.sums = [0];
      for (let turn = 1; turn <= this.length; turn++) this.sums.push(this.sums[turn - 1] + play.turns.reward[turn - 1]);
      const tenths = (play.turns.reward || []).every(
        (reward) => Math.abs(reward * 10 - Math.round(reward * 10)) < 1e-6,
      );
      this.digits = tenths ? 1 : 2;
      this.causes = causesOf(play.turns.costs || []);
    }

    get title() {
      const { policy, attacker, seed, episode, source } = this.record;
      return { policy: policy ?? 'a defender', attacker: attacker ?? 'an attacker', seed, number: episode, source };
    }

    /** What is left out, and why: a sentence each. */
    get notes() {
      return this.record.notes || [];
    }

    /** Red's access at the beginning, from which the network is laid out. */
    get begun() {
      return spread(this.record.states.access[0], this.scenario.hosts.length);
    }

    /** What is true and what blue was shown after a turn; 0 is the beginning. */
    state(turn) {
      const at = Math.min(turn, this.length);
      this.states[at] ??= this.readState(at);
      return this.states[at];
    }

    readState(at) {
      const { states } = this.record;
      const hosts = this.scenario.hosts.length;
      const row = (column) => spread(column && column[at], hosts);
      const hidden = (column) => row(this.blind ? null : column);
      const { belief, remembered } = states;
      return {
        access: hidden(states.access),
        known: hidden(states.known),
        files: hidden(states.files),
        decoys: row(states.decoys),
        activity: row(states.activity),
        compromised: row(states.compromised),
        scan: remembered ? row(remembered.scan) : null,
        exploit: remembered ? row(remembered.exploit) : null,
        service: states.service && states.service[at] !== '?' ? states.service[at] !== '0' : null,
        session: belief ? row(belief.session) : null,
        root: belief ? row(belief.root) : null,
        attackers: belief && belief.attackers ? belief.attackers[at] : null,
        exact: !(belief && belief.exact && belief.exact[at] === '0'),
        possible: belief && belief.states ? belief.states[at] : null,
      };
    }

    /** Both moves of a turn and what they cost; null at the beginning and after the end. */
    turn(turn) {
      if (turn < 1 || turn > this.length) return null;
      const { turns } = this.record;
      const at = (column) => (column ? column[turn - 1] : null);
      const moved = {
        blue: at(turns.blue),
        idle: this.sleeps(at(turns.blue)),
        blueWords: at(turns.blue_words),
        blueHost: at(turns.blue_host) ?? -1,
        redWords: at(turns.red_words),
        redKind: at(turns.red_kind),
        redHost: at(turns.red_host) ?? -1,
        greenWords: at(turns.green_words),
        greenHost: at(turns.green_host) ?? -1,
        redSuccess: turns.red_success ? turns.red_success[turn - 1] === '1' : true,
        reward: at(turns.reward),
        costs: at(turns.costs) || [],
        likely: at(turns.likely),
        value: at(turns.value),
        whatIf: at(turns.what_if),
        regret: at(turns.regret),
      };
      if (!this.blind) return moved;
      const costs = moved.costs.map(([cause, host, amount]) => [cause, cause === 'root' ? -1 : host, amount]);
      const unseen = { redWords: 'moves unseen', redKind: 'sleep', redHost: -1, greenHost: -1 };
      return { ...moved, costs, ...unseen, greenWords: moved.greenWords && 'moves unseen' };
    }

    /** Whether an action of blue's does nothing; by its name, for its number is the scenario's. */
    sleeps(action) {
      const named = this.scenario.verbs[action];
      return named ? named.verb === 'Sleep' : action === 0;
    }

    get has() {
      const { turns, states } = this.record;
      return {
        likely: Boolean(turns.likely),
        value: Boolean(turns.value),
        whatIf: Boolean(turns.what_if),
        regret: Boolean(turns.regret),
        belief: Boolean(states.belief),
        memory: Boolean(states.remembered),
        green: Boolean(turns.green_words),
      };
    }

    /** The return up to and with this turn. */
    soFar(turn) {
      return this.sums[Math.min(turn, this.length)];
    }

    turns() {
      return Array.from({ length: this.length }, (_, index) => this.turn(index + 1));
    }

    /** The first turn after which red is on a host where it was not at the beginning, or null. */
    get firstCompromise() {
      if (this.blind) return null;
      const begun = this.state(0).access;
      for (let turn = 1; turn <= this.length; turn++) {
        if (this.state(turn).access.some((access, host) => access > 0 && begun[host] === 0)) return turn;
      }
      return null;
    }

    loses(turn) {
      return this.record.turns.reward[turn - 1] < 0;
    }

    /** Whether another action would surely have given more: the interval of the regret is above 0. */
    errs(turn) {
      const regret = this.record.turns.regret ? this.record.turns.regret[turn - 1] : null;
      return Boolean(regret) && regret[1] > 0;
    }
  }

  /** A row of small numbers, kept as text with a character per host or as a list. */
  function spread(row, hosts) {
    return Array.from({ length: hosts }, (_, host) => (row ? Number(row[host]) || 0 : 0));
  }

  const COMMON = ['root', 'restore', 'service'];
  function causesOf(costs) {
    const met = new Set(costs.flatMap((turn) => turn.map((cost) => cost[0])));
    return [...COMMON.filter((cause) => met.has(cause)), ...[...met].filter((cause) => !COMMON.includes(cause))];
  }

  /** Turns in which two plays differ, in a move or in what is true after it. */
  function differences(plays) {
    if (plays.length < 2) return [];
    const [one, two] = plays;
    const found = [];
    for (let turn = 1; turn <= Math.max(one.length, two.length); turn++) {
      const mine = one.turn(turn);
      const other = two.turn(turn);
      const same =
        mine &&
        other &&
        mine.blue === other.blue &&
        mine.redWords === other.redWords &&
        mine.greenWords === other.greenWords &&
        mine.reward === other.reward;
      if (!same) found.push(turn);
    }
    return found;
  }
})();
