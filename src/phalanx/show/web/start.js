/* The last script of the app: everything is there, so it begins. */
(() => {
  'use strict';
  window.phalanx.start(document.getElementById('app'));
})();
