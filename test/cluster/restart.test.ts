/** How the transport reports an API server that is killed, restarted or stopped. Uses a separate server. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { isInitialEventsEnd } from '../../src/discovery/kubernetes/api-server.ts';
import { Http2ApiServer } from '../../src/discovery/kubernetes/transport/http2-api-server.ts';
import { failureOf } from '../fixtures/failure-of.ts';
import { faultyProxy } from '../fixtures/faulty-proxy.ts';
import { eventually } from '../harness/eventually.ts';
import { givenOwnServer } from './given-cluster.ts';

const neverAborted = new AbortController().signal;
const configMaps = resourceOf('ConfigMap');
// The maximum chance: the server closes one connection in fifty requests.
const ownServer = givenOwnServer(['--goaway-chance=0.02']);
const { cluster } = ownServer;

/** A watch that has received its first list. */
async function watching(client: Http2ApiServer) {
  const names: string[] = [];
  let began = false;
  const end = client.watch(
    configMaps,
    { namespace: cluster.namespace, sendInitialEvents: true, timeoutSeconds: 300 },
    (event) => {
      if (event.type === 'ADDED') names.push(event.object.metadata.name);
      began ||= isInitialEventsEnd(event);
    },
    neverAborted,
  );
  end.catch(() => {});
  await eventually('the first list is there', () => began);
  return { end, names };
}

it('an API server that occasionally sends GOAWAY fails no request and no watch', async () => {
  const { url, connections } = await faultyProxy(new URL(ownServer.server.url));
  const client = new Http2ApiServer({ ...cluster.access(), server: url });
  onTestFinished(() => client.close());
  const { end, names } = await watching(client);
  const lists = async (count: number): Promise<void> => {
    for (let requestCount = 0; requestCount < count; requestCount++)
      await client.list(configMaps, { namespace: cluster.namespace, limit: 1 }, neverAborted);
  };
  // The probability that none of 500 receives a GOAWAY is 1 in 20,000.
  await Promise.all(Array.from({ length: 5 }, () => lists(100)));
  expect(connections()).toBeGreaterThan(1);
  await cluster.create(configMaps, { metadata: { name: 'after-goaway' } });
  await eventually('the watch goes on', () => names.includes('after-goaway'));
  await cluster.delete(configMaps, 'after-goaway');
  const state = await Promise.race([end.then(() => 'ended'), Promise.resolve('goes on')]);
  expect(state).toBe('goes on');
});

it('an API server that is killed ends its watches and is unreachable, and has all its data after a restart', async () => {
  await cluster.create(configMaps, { metadata: { name: 'kept' } });
  const client = cluster.client();
  const { end } = await watching(client);
  await ownServer.server.kill();
  expect(await failureOf(end)).toMatchObject({ kind: 'closed' });
  expect(await failureOf(client.ping(neverAborted))).toMatchObject({ kind: 'unreachable' });
  expect(await failureOf(client.list(configMaps, {}, neverAborted))).toMatchObject({ kind: 'unreachable' });
  await ownServer.server.start();
  // The same client: no state of the closed connection remains.
  expect(await client.ping(neverAborted)).toBeGreaterThan(0);
  expect((await watching(client)).names).toEqual(['kept']);
});

/** On a connection that has just received GOAWAY (two in a hundred), a ping is cut off instead. */
const pingFailure = { kind: expect.stringMatching(/^(timeout|closed)$/) };

it('a ping detects a suspended API server (SIGSTOP), and a new connection works when the server resumes', async () => {
  const client = cluster.client(undefined, { pingMs: 300, connectMs: 300 });
  // The first connection may take longer next to other processes; watches and pings share it.
  await eventually('it is connected', () => client.ping(neverAborted));
  const { end } = await watching(client);
  process.kill(ownServer.server.pid, 'SIGSTOP');
  try {
    await eventually('it stands still', () => standsStill(ownServer.server.pid));
    expect(await failureOf(client.ping(neverAborted))).toMatchObject(pingFailure);
    client.reconnect();
    expect(await failureOf(end)).toMatchObject({ kind: 'closed' });
    // The kernel accepts the connection, and no process responds.
    expect(await failureOf(client.ping(neverAborted))).toMatchObject({ kind: 'timeout' });
  } finally {
    process.kill(ownServer.server.pid, 'SIGCONT');
  }
  await eventually('it answers again', () => client.ping(neverAborted));
  expect((await watching(client)).names).toContain('kept');
});

it("a ping detects that a proxy loses an API server's bytes although the connection looks open", async () => {
  const { url, swallow } = await faultyProxy(new URL(ownServer.server.url));
  const client = new Http2ApiServer({ ...cluster.access(), server: url }, { pingMs: 300 });
  onTestFinished(() => client.close());
  const { end } = await watching(client);
  swallow();
  expect(await failureOf(client.ping(neverAborted))).toMatchObject(pingFailure);
  client.reconnect();
  expect(await failureOf(end)).toMatchObject({ kind: 'closed' });
  expect((await watching(client)).names).toContain('kept');
});

it('a stopping API server (SIGTERM) accepts no new requests, and its watches continue until it exits', async () => {
  const client = cluster.client();
  const { end } = await watching(client);
  let isOver = false;
  end
    .catch(() => {})
    .finally(() => {
      isOver = true;
    });
  process.kill(ownServer.server.pid, 'SIGTERM');
  // The server sends GOAWAY, so another request opens a new connection, which is rejected.
  await eventually(
    'it takes no request',
    async () => (await failureOf(client.list(configMaps, {}, neverAborted))).kind === 'unreachable',
  );
  expect(isOver).toBe(false);
  await ownServer.server.stop();
  // While stopping, the server ends its watches, or closes their connections.
  await end.catch((error: unknown) => expect(error).toMatchObject({ failure: { kind: 'closed' } }));
  expect(isOver).toBe(true);
});

/** All threads must be suspended: one that has not received the signal still responds. */
function standsStill(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks).every((thread) => readFileSync(`${tasks}/${thread}/stat`, 'utf8').includes(') T '));
}
