/* Episodes inside a report: each is drawn when it is first opened. */
(() => {
  'use strict';
  const data = document.getElementById('replays');
  if (!data) return;
  const episodes = JSON.parse(data.textContent);
  for (const fold of document.querySelectorAll('details[data-replay]')) {
    fold.addEventListener('toggle', () => {
      const shown = fold.querySelector('.shown');
      if (!fold.open || shown.childNodes.length) return;
      window.phalanx.replay(shown, episodes[Number(fold.dataset.replay)], { level: 3 });
    });
  }
})();
