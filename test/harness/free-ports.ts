import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range from which Linux takes the ports of outgoing connections (net.ipv4.ip_local_port_range begins at
 * 32768): under load a port of that range is soon taken by a client, and an Envoy that restarts could not bind it.
 */
const range = { from: 12_000, to: 32_000 };
const attempts = 200;

/** Finds `count` TCP ports that nobody listens on at loopback. They are not reserved: use them soon. */
export async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  for (let attempt = 0; found.size < count; attempt++) {
    if (attempt > attempts) throw new Error(`no ${count} free ports between ${range.from} and ${range.to}`);
    const port = range.from + Math.floor(Math.random() * (range.to - range.from));
    if (!found.has(port) && (await isFree(port))) found.add(port);
  }
  return [...found];
}

/** Whether a listener can be opened on this port at loopback. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
