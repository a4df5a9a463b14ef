/* A page that is one replay: its data element "trajectory" drawn into #replay. */
(() => {
  'use strict';
  const element = document.getElementById('replay');
  let trajectory = null;
  try {
    trajectory = JSON.parse(document.getElementById('trajectory').textContent);
  } catch {
    trajectory = null; // absent or cut short: the viewer says so in a sentence
  }
  const asked = new URLSearchParams(location.hash.slice(1)).get('turn'); // …/episode.html#turn=23
  const viewer = window.phalanx.replay(element, trajectory, { level: 1, turn: asked === null ? null : Number(asked) });
  window.phalanx.viewer = viewer;
})();
