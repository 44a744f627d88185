// Search in a site that was opened as a file: browsers run no worker there, so a frame of the page does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = Object.assign(document.createElement("iframe"), {hidden: true});
      document.head.append(frame);
      this.inside = frame.contentWindow;
      this.waiting = [];
      this.inside.postMessage = (data) => this.tell(this, data);
      this.inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
      this.load(url).then(() => {
        for (const data of this.waiting.splice(0)) this.tell(this.inside, data);
        this.waiting = null;
      });
    }
    load(url) {
      return new Promise((done, fail) => {
        const script = this.inside.document.createElement("script");
        this.inside.document.head.append(Object.assign(script, {src: url, onload: done, onerror: fail}));
      });
    }
    tell(target, data) {
      const event = new MessageEvent("message", {data});
      target.dispatchEvent(event);
      target.onmessage?.(event);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(this.inside, data);
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
