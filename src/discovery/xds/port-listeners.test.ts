import { once } from 'node:events';
import { connect, type Server } from 'node:net';
import { performance } from 'node:perf_hooks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openPort, portOf } from './port-listeners.ts';

const host = '127.0.0.1';

async function open(port: number, onConnection: () => void = () => {}, address = host): Promise<Server[]> {
  const listeners = await openPort({ host: address, port }, (socket) => {
    onConnection();
    socket.destroy();
  });
  onTestFinished(() => {
    for (const listener of listeners) listener.close();
  });
  return listeners;
}

describe('openPort', () => {
  test.runIf(process.platform === 'linux')(
    'accepts several connections in one iteration of the event loop',
    async () => {
      const iterations = new Set<number>();
      const listeners = await open(0, () => iterations.add(performance.nodeTiming.uvMetricsInfo.loopCount));
      const clients = Array.from({ length: 64 }, () => connect({ host, port: portOf(listeners[0]!) }));
      await Promise.all(clients.map((client) => once(client.resume(), 'close')));
      expect(iterations.size).toBeLessThan(32);
    },
  );

  test('fails if the port is in use, even if the other listeners also share it', async () => {
    const [listener] = await open(0);
    await expect(open(portOf(listener!))).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test.each(['', '::', '0.0.0.0'])(
    'fails for all interfaces (%j) if the port is in use on one',
    async (allInterfaces) => {
      const [listener] = await open(0);
      const opening = openPort({ host: allInterfaces, port: portOf(listener!) }, () => {});
      await expect(opening).rejects.toMatchObject({ code: 'EADDRINUSE' });
    },
  );

  test.runIf(process.platform === 'linux')(
    'fails for all interfaces if the port is in use on another address of this host',
    async () => {
      const [listener] = await open(0, () => {}, '127.0.0.2');
      await expect(open(portOf(listener!), () => {}, '::')).rejects.toMatchObject({ code: 'EADDRINUSE' });
    },
  );

  test('opens a port that a previous server has closed', async () => {
    const listeners = await open(0);
    const port = portOf(listeners[0]!);
    for (const listener of listeners) listener.close();
    const [reopened] = await open(port);
    expect(portOf(reopened!)).toBe(port);
  });

  test('fails for an address that this machine does not have, and leaves no listener', async () => {
    await expect(openPort({ host: '192.0.2.1', port: 0 }, () => {})).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
  });
});
