/* Search also where a page is opened from disk.

   The search runs in a worker, and browsers start none for pages without a host (file:). There, and
   only there, this stands in: a worker that is a hidden frame of the page. */
(() => {
  'use strict';
  if (location.protocol !== 'file:') return;

  window.Worker = class PageWorker {
    constructor(url) {
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.waiting = [];
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data }));
      const script = this.inside.document.createElement('script');
      script.src = new URL(url, document.baseURI).href;
      script.onload = () => {
        const { waiting } = this;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      };
      script.onerror = (event) => this.onerror?.(event);
      this.inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else setTimeout(() => this.inside.onmessage?.({ data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
