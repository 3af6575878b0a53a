/** Requests that pages of a web site can send to a server on the user's host. Served by the site of debugger-security.test.ts. */

/** @returns data that the site could read, one line each */
globalThis.attack = async (targets) => {
  const reached = [];
  for (const target of targets) {
    reached.push(...(await readIt(target)), ...(await includeIt(target)), ...(await listenTo(target)));
  }
  return reached;
};

/** Sends a form, which every site may do. */
globalThis.submit = (target) => {
  const form = document.createElement('form');
  form.method = 'POST';
  form.action = target;
  document.body.append(form);
  form.submit();
};

/** Loads the target in a frame. */
globalThis.frame = (target) =>
  new Promise((resolve) => {
    const frame = document.createElement('iframe');
    frame.onload = resolve;
    frame.src = target;
    document.body.append(frame);
    setTimeout(resolve, 2_000);
  });

async function readIt(target) {
  const reached = [];
  for (const options of [{}, { credentials: 'include' }, { mode: 'no-cors' }]) {
    const response = await fetch(target, options).catch(() => undefined);
    const body = await response?.text().catch(() => '');
    if (body) reached.push(`fetch ${target}: ${body}`);
  }
  return reached;
}

/** Opens channels one after the other and records their messages; otherwise messages could arrive before a listener exists. */
async function listenTo(target) {
  const reached = [];
  for (const open of [() => new EventSource(target), () => new WebSocket(target.replace(/^http/, 'ws'))]) {
    const channel = open();
    const opened = new Promise((resolve) => {
      channel.onopen = () => resolve(true);
      channel.onmessage = () => resolve(true);
      channel.onerror = () => resolve(false);
      setTimeout(resolve, 2_000);
    });
    if (await opened) reached.push(`${channel.constructor.name} ${target}`);
    channel.close();
  }
  return reached;
}

/** Opens the address in a window and inspects it for some time. @returns data that was visible there */
globalThis.readOpened = async (address) => {
  const opened = globalThis.open(address);
  const seen = new Set();
  const until = performance.now() + 1_500;
  while (performance.now() < until) {
    for (const read of [() => opened.document.body.innerHTML, () => opened.location.href, () => opened.chartpilot]) {
      try {
        const data = read();
        if (data && data !== 'about:blank') seen.add(String(data));
      } catch {
        // The browser denies access.
      }
    }
    if (opened !== null && !opened.closed && opened.length > 0) seen.add('frames');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return [...seen];
};

async function includeIt(target) {
  const reached = [];
  for (const [kind, source] of [
    ['script', 'src'],
    ['link', 'href'],
    ['img', 'src'],
  ]) {
    const element = document.createElement(kind);
    if (kind === 'link') element.rel = 'stylesheet';
    const loaded = new Promise((resolve) => {
      element.onload = () => resolve(true);
      element.onerror = () => resolve(false);
    });
    element[source] = target;
    document.head.append(element);
    if (await loaded) reached.push(`${kind} ${target}`);
  }
  return reached;
}
