import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { Profiler } from '../../../runtime/profiler.ts';
import { DebuggerAccess } from '../../../runtime/trace/debugger-access.ts';
import { HttpServers } from './http-server.ts';

const openedProfilers: { servers: HttpServers; profiler: Profiler }[] = [];

afterEach(() => {
  for (const { servers, profiler } of openedProfilers.splice(0)) {
    profiler.end();
    servers.closeConnections();
  }
});

async function serve(): Promise<{ url: string; profiler: Profiler; servers: HttpServers }> {
  const profiler = new Profiler({
    access: { refusalOf: () => undefined },
    heapSnapshots: true,
    connectionStates: () => ['streaming', 'streaming', 'draining'],
  });
  const servers = new HttpServers((httpRequest) => profiler.respond(httpRequest));
  openedProfilers.push({ servers, profiler });
  const [address] = await servers.open([{ host: '127.0.0.1', port: 0 }]);
  return { url: `http://127.0.0.1:${address!.port}/debug/pprof`, profiler, servers };
}

/** Causes CPU load. */
function spin(ms: number): number {
  let sum = 0;
  for (const end = performance.now() + ms; performance.now() < end; ) sum += Math.sqrt(sum + 1);
  return sum;
}

describe('profiles', () => {
  it('include the functions that use CPU time', async () => {
    const { url } = await serve();
    const reply = await fetch(`${url}/profile?seconds=0.5`);
    const body = reply.json();
    const timer = setInterval(() => spin(10), 15);
    await body.finally(() => clearInterval(timer));
    expect(reply.headers.get('content-disposition')).toContain('profile.cpuprofile');
    const { nodes, samples } = (await body) as {
      nodes: { callFrame: { functionName: string } }[];
      samples: number[];
    };
    expect(nodes.some(({ callFrame }) => callFrame.functionName === 'spin')).toBe(true);
    expect(samples.length).toBeGreaterThan(0);
  });

  it('are listed on a page that warns of the additional memory for a heap profile', async () => {
    const { url } = await serve();
    expect(await (await fetch(`${url}/`)).text()).toMatch(/heap.*additional memory, which is not released/);
  });

  it('include allocations', async () => {
    const { url } = await serve();
    expect(await (await fetch(`${url}/allocs?seconds=0.05`)).json()).toMatchObject({
      head: { children: expect.any(Array) },
    });
  });

  it('include the heap', async () => {
    const { url } = await serve();
    const snapshot = (await (await fetch(`${url}/heap`)).json()) as { snapshot: { node_count: number } };
    expect(snapshot.snapshot.node_count).toBeGreaterThan(1_000);
  });

  it('list pending operations of the event loop', async () => {
    const { url } = await serve();
    const text = await (await fetch(`${url}/goroutine`)).text();
    expect(text).toMatch(/\d+ {2}TCPServerWrap/);
    expect(text).toMatch(/2 {2}streaming/);
  });

  it('are recorded one at a time, with a limited duration', async () => {
    const { url } = await serve();
    const first = fetch(`${url}/profile?seconds=0.3`);
    await first;
    expect((await fetch(`${url}/heap`)).status).toBe(503);
    await (await first).text();
    for (const seconds of ['0', '-1', '121', 'x']) {
      expect((await fetch(`${url}/profile?seconds=${seconds}`)).status, seconds).toBe(400);
    }
    expect((await fetch(`${url}/nothing`)).status).toBe(404);
  });

  it('are aborted when the client disconnects or the process exits', async () => {
    const { url, profiler } = await serve();
    const abandonedRequest = request(`${url}/profile?seconds=100`).on('error', () => {});
    abandonedRequest.on('response', () => abandonedRequest.destroy());
    abandonedRequest.end();
    await eventually('the next one may begin', async () => {
      const reply = await fetch(`${url}/profile?seconds=0.01`);
      await reply.text();
      return reply.status === 200;
    });
    // Headers arrive when the profile starts.
    const waitingResponse = await fetch(`${url}/profile?seconds=100`);
    profiler.end();
    await expect(waitingResponse.text()).rejects.toThrow();
  });

  it('are available only to callers on this host with the token', () => {
    const access = new DebuggerAccess({ runDir: '/proc/nowhere' });
    const profiler = new Profiler({ access, heapSnapshots: true });
    const peer = { remoteAddress: '10.0.0.7', localAddress: '10.0.0.1' };
    const httpRequest = {
      method: 'GET',
      path: '/debug/pprof/heap',
      query: new URLSearchParams(),
      local: false,
      headers: {},
      peer,
    };
    expect(profiler.respond(httpRequest)).toMatchObject({ status: 403 });
    const local = {
      ...httpRequest,
      headers: { host: 'localhost' },
      peer: { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' },
    };
    expect(profiler.respond(local)).toMatchObject({ status: 401 });
  });
});
