/** Runs in every page that a test opens and measures in the page. `page-state.ts` has the types. */
globalThis.inPage = {
  /** Milliseconds since the request for the page; `undefined` until the trace is loaded and drawn. */
  openedAfterMs() {
    const isDrawn = document.querySelector('[data-actor][data-state-name]') !== null;
    return globalThis.chartpilot?.opened !== undefined && isDrawn ? performance.now() : undefined;
  },

  nextFrame() {
    return new Promise((resolve) => requestAnimationFrame(resolve));
  },

  /** Holds a key down for a number of frames, with one press in each. @returns frames per second */
  async holdKey(key, frames) {
    const startPosition = globalThis.chartpilot.place();
    const start = await this.nextFrame();
    let now = start;
    for (let frame = 0; frame < frames; frame++) {
      document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, repeat: true }));
      now = await this.nextFrame();
    }
    const steps = Math.abs(globalThis.chartpilot.place() - startPosition);
    if (steps !== frames) throw new Error(`${frames} presses of ${key} were ${steps} steps`);
    return (frames * 1_000) / (now - start);
  },
};

/** Number of different colours of a picture; an empty one has few. */
globalThis.inPage.colours = async (base64) => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
  canvas.drawImage(bitmap, 0, 0);
  const { data } = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
  return new Set(new Uint32Array(data.buffer)).size;
};

/** Starts to record the shown states of each actor. */
globalThis.inPage.watchActors = () => {
  const seen = {};
  globalThis.inPage.statesSeen = seen;
  const recordStates = () => {
    for (const { dataset } of document.querySelectorAll('[data-actor][data-state-name]')) {
      seen[dataset.actor] ??= [];
      if (seen[dataset.actor].at(-1) !== dataset.stateName) seen[dataset.actor].push(dataset.stateName);
    }
  };
  new MutationObserver(recordStates).observe(document.body, { subtree: true, childList: true, attributes: true });
  recordStates();
};

/** Presses a key of another keyboard layout than that of this machine. */
globalThis.inPage.press = (key) =>
  document.dispatchEvent(new KeyboardEvent('keydown', { ...key, bubbles: true, cancelable: true }));

/** Drops files on the page. */
globalThis.inPage.drop = (files) => {
  const dataTransfer = new DataTransfer();
  for (const { name, base64 } of files) {
    dataTransfer.items.add(new File([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))], name));
  }
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    const taken = new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true });
    document.body.dispatchEvent(taken);
    // Otherwise the browser would leave the page and open the file.
    if (kind !== 'dragenter' && !taken.defaultPrevented) throw new Error(`${kind} is not taken`);
  }
};

/** The focused element, and whether it is visible; `undefined` without focus. */
globalThis.inPage.focused = () => {
  const element = document.activeElement;
  if (element === null || element === document.body) return undefined;
  const { left, top, right, bottom, width, height } = element.getBoundingClientRect();
  const name = `${element.tagName} ${element.className?.baseVal ?? element.className} ${element.getAttribute('aria-label') ?? element.textContent.slice(0, 40)}`;
  // Inputs with a label show their focus on the label.
  const shown = element.closest('label') ?? element;
  const visible = width > 0 && height > 0 && bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
  return { name, visible: visible && getComputedStyle(shown).visibility === 'visible' };
};

/** Scrolling elements that neither are a tab stop nor contain one. */
globalThis.inPage.unreachedScrollers = () =>
  [...document.querySelectorAll('body *')].flatMap((element) => {
    const { overflowX, overflowY } = getComputedStyle(element);
    const scrolls =
      (/auto|scroll/.test(overflowY) && element.scrollHeight > element.clientHeight + 1) ||
      (/auto|scroll/.test(overflowX) && element.scrollWidth > element.clientWidth + 1);
    const stop = 'a[href], button:not(:disabled), input, select, textarea, summary, [tabindex]:not([tabindex="-1"])';
    if (!scrolls || element.matches(stop) || element.querySelector(stop) !== null) return [];
    return [element.className];
  });

/** Running animations. */
globalThis.inPage.moving = () => [
  ...document.getAnimations().map(({ effect }) => effect?.target?.getAttribute('class') ?? '?'),
  ...[...document.querySelectorAll('.token')].map(() => 'token'),
];

/** Converts a picture to a format of a tenth of its size; returns its dimensions, too. */
globalThis.inPage.asWebp = async (base64, quality) => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes]));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  canvas.getContext('2d').drawImage(bitmap, 0, 0);
  const blob = await canvas.convertToBlob({ type: 'image/webp', quality });
  const packed = new Uint8Array(await blob.arrayBuffer());
  const text = Array.from(packed, (byte) => String.fromCharCode(byte)).join('');
  return { base64: btoa(text), width: bitmap.width, height: bitmap.height };
};
