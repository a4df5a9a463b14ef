'use strict';
(() => {
  document.getElementById('app').textContent = 'hello';
})();
