/* The app's frame: which page is shown, how it asks the server, and what it says while it waits or when it cannot. */
(() => {
  'use strict';
  const phalanx = (window.phalanx = window.phalanx || {});
  const { el } = phalanx;
  const PAGES = []; // {name, title, open(parts, place) -> optional function that ends it}

  /** Ask the server: get('/api/runs', {name: value}) and post(path, object); an error's message is for people. */
  phalanx.get = (path, asked = {}) => {
    const words = new URLSearchParams(asked).toString();
    return answer(fetch(path + (words ? '?' + words : ''), { headers: { accept: 'application/json' } }));
  };

  phalanx.post = (path, sent = {}) =>
    answer(
      fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify(sent),
      }),
    );

  async function answer(asked) {
    let reply;
    try {
      reply = await asked;
    } catch {
      throw Object.assign(new Error('The server does not answer: phalanx ui has ended, or is being restarted.'), {
        gone: true,
      });
    }
    if (reply.status === 403) {
      throw Object.assign(new Error('The server was started anew: open the address that it printed.'), { gone: true });
    }
    const told = await reply.json().catch(() => ({ error: 'The server answered with something else than expected.' }));
    if (!reply.ok)
      throw Object.assign(new Error(sentence(told.error || 'The server could not do this')), { status: reply.status });
    return told;
  }

  /** As people write sentences. */
  function sentence(words) {
    return words.charAt(0).toUpperCase() + words.slice(1) + (/[.!?…]$/.test(words) ? '' : '.');
  }

  /** A page that is opened by #/name/…; title is for the bar at the top, without one it is part of `under`. */
  phalanx.addPage = (name, title, open, under = null) => PAGES.push({ name, title, open, under });

  /* What a page says instead of what it is for. */
  phalanx.says = {
    loading: (words = 'Loading …') => el('p', { class: 'state loading', role: 'status', text: words }),
    empty: (words, ...inside) =>
      el('div', { class: 'state empty', role: 'status' }, el('p', { text: words }), ...inside),
    error: (error, again = null) =>
      el(
        'div',
        { class: 'state error', role: 'alert' },
        el('p', { text: error.message || String(error) }),
        again ? el('button', { type: 'button', text: 'Try again', on: { click: again } }) : null,
      ),
  };

  /** Do something every so often while the page is looked at; returns what ends it. */
  phalanx.every = (seconds, act) => {
    let [timer, ended, busy] = [null, false, false];
    const round = async () => {
      if (ended || busy) return;
      busy = true;
      let wait = seconds;
      try {
        if (!document.hidden) wait = (await act()) ?? seconds;
      } finally {
        busy = false;
      }
      clearTimeout(timer);
      if (!ended && wait > 0) timer = setTimeout(round, 1000 * wait);
    };
    const woken = () => {
      if (!document.hidden) {
        clearTimeout(timer);
        round();
      }
    };
    document.addEventListener('visibilitychange', woken);
    round();
    return () => {
      ended = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', woken);
    };
  };

  /** The address of a page: place('run', 'first') is '#/run/first', whatever characters a name has. */
  phalanx.place = (...parts) => '#/' + parts.map(encodeURIComponent).join('/');
  phalanx.goTo = (...parts) => {
    location.hash = phalanx.place(...parts);
  };

  function parts() {
    try {
      return location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
    } catch {
      return [''];
    }
  }

  phalanx.start = (root) => {
    // The token need not stay in the address.
    if (location.search) history.replaceState(null, '', location.pathname + location.hash);
    const links = new Map();
    const bar = el(
      'nav',
      { class: 'bar', 'aria-label': 'Pages' },
      el('a', { class: 'brand', href: '#/', text: 'phalanx' }),
      ...PAGES.filter(({ title }) => title).map(({ name, title }) => {
        links.set(name, el('a', { href: phalanx.place(name), text: title }));
        return links.get(name);
      }),
    );
    const skip = el('a', {
      class: 'skip',
      href: '#main',
      text: 'Skip to the page',
      on: {
        click: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
    });
    const main = el('main', { id: 'main', tabindex: -1 });
    root.replaceChildren(skip, bar, main);
    let end = null;

    function open() {
      if (end) end();
      const [name, ...rest] = parts();
      const page = PAGES.find((one) => one.name === name) || (name ? null : PAGES[0]);
      for (const [one, link] of links) {
        const here = page && (one === page.name || one === page.under);
        if (here) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
      }
      document.title = 'phalanx';
      main.replaceChildren();
      scrollTo(0, 0);
      end = page
        ? page.open(main, rest)
        : void main.replaceChildren(
            phalanx.says.empty('There is no such page.', el('a', { href: '#/', text: 'To the runs' })),
          );
    }
    addEventListener('hashchange', open);
    open();
  };
})();
