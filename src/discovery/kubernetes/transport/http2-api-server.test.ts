import { once } from 'node:events';
import { type AddressInfo, createServer as createPlainServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { failureOf } from '../../../../test/fixtures/failure-of.ts';
import { faultyProxy } from '../../../../test/fixtures/faulty-proxy.ts';
import {
  jsonHeaders,
  type RespondToRequest,
  respondJson,
  type ScriptedApiServer,
  type ScriptedOptions,
  scriptedApiServer,
} from '../../../../test/fixtures/scripted-api-server.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { leases, resourceOf } from '../api-resource.ts';
import { isInitialEventsEnd, type WatchEvent } from '../api-server.ts';
import { Http2ApiServer } from './http2-api-server.ts';
import { maxObjectBytes } from './json-lines.ts';

const services = resourceOf('Service');
const neverAborted = new AbortController().signal;
const watchFor = { resourceVersion: '1', timeoutSeconds: 60 };

async function startServer(respond: RespondToRequest, options?: ScriptedOptions): Promise<ScriptedApiServer> {
  const server = await scriptedApiServer(respond, options);
  onTestFinished(() => server.close());
  return server;
}

const service = (name: string, extraFields: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Service' },
  metadata: { name, namespace: 'shop', resourceVersion: '7', managedFields: [{ manager: 'kubectl' }] },
  spec: { clusterIP: '10.0.0.1' },
  ...extraFields,
});
const line = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;

describe('a list', () => {
  it('is requested in pages and returned trimmed, with the version for the watch', async () => {
    const { client, paths } = await startServer((stream) =>
      respondJson(stream, {
        kind: 'ServiceList',
        metadata: { resourceVersion: '42', continue: 'next' },
        items: [service('a'), { metadata: { name: 'b [{"\\' } }],
      }),
    );
    const options = { limit: 2, continue: 'more', fieldSelector: 'metadata.name!=x', labelSelector: 'a=b' };
    const page = await client.list(services, options, neverAborted);
    expect(page).toMatchObject({ resourceVersion: '42', continue: 'next' });
    expect(page.items.map(({ kind, apiVersion, metadata }) => [kind, apiVersion, metadata.name])).toEqual([
      ['Service', 'v1', 'a'],
      ['Service', 'v1', 'b [{"\\'],
    ]);
    expect(page.items[0]!.metadata).not.toHaveProperty('managedFields');
    expect(new URL(paths[0]!, 'https://x').searchParams.toString()).toBe(
      'fieldSelector=metadata.name%21%3Dx&labelSelector=a%3Db&limit=2&continue=more',
    );
  });

  it('can be limited to a namespace or to metadata, under the base path of the server', async () => {
    const requests: Record<string, unknown>[] = [];
    const { access, paths } = await startServer((stream, _path, headers) => {
      requests.push({ ...headers });
      respondJson(stream, { metadata: { resourceVersion: '1' }, items: [service('a')] });
    });
    const prefixedServer = new Http2ApiServer({ ...access, server: new URL('/k8s/clusters/c-1/', access.server) });
    onTestFinished(() => prefixedServer.close());
    const page = await prefixedServer.list(
      services,
      { namespace: 'shop', metadataOnly: true, resourceVersion: '0' },
      neverAborted,
    );
    expect(paths).toEqual(['/k8s/clusters/c-1/api/v1/namespaces/shop/services?resourceVersion=0']);
    expect(requests[0]).toMatchObject({
      accept: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
      authorization: 'Bearer let-me-in',
    });
    expect(page.items[0]).not.toHaveProperty('spec');
  });

  it.each([
    [
      '503 with an HTML page',
      503,
      '<html>',
      { 'content-type': 'text/html' },
      { kind: 'status', code: 503, reason: '' },
    ],
    [
      '410 with a reason',
      410,
      { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' },
      {},
      { kind: 'status', code: 410, reason: 'Expired', message: 'too old' },
    ],
    ['429 with Retry-After', 429, {}, { 'retry-after': '3' }, { kind: 'status', code: 429, retryAfterMs: 3_000 }],
    [
      '429 with an excessive Retry-After',
      429,
      {},
      { 'retry-after': '31536000' },
      { kind: 'status', retryAfterMs: 60_000 },
    ],
    ['a redirect', 302, '', { location: 'https://evil.example/' }, { kind: 'invalid' }],
    ['of another content type', 200, '<html>', { 'content-type': 'text/html' }, { kind: 'invalid' }],
    [
      'compressed',
      200,
      { metadata: { resourceVersion: '1' }, items: [] },
      { 'content-encoding': 'gzip' },
      { kind: 'invalid' },
    ],
    ['truncated JSON', 200, '{"metadata": {"resourceVersion": "1"}, "items": [{"meta', {}, { kind: 'closed' }],
    ['invalid JSON', 200, 'nonsense', {}, { kind: 'invalid' }],
    ['empty', 200, '', {}, { kind: 'invalid' }],
    ['a list without version', 200, { metadata: {}, items: [] }, {}, { kind: 'invalid' }],
    ['not a list', 200, '[]', {}, { kind: 'invalid' }],
    [
      'a list with an unnamed object',
      200,
      { metadata: { resourceVersion: '1' }, items: [{}] },
      {},
      { kind: 'invalid' },
    ],
    [
      'a list with too much data besides its items',
      200,
      { metadata: { resourceVersion: '1' }, a: 'x'.repeat(100_000) },
      {},
      { kind: 'invalid' },
    ],
  ] as const)('fails if the response is %s', async (_, code, body, headers, failure) => {
    const { client } = await startServer((stream) => respondJson(stream, body, { ':status': code, ...headers }));
    expect(await failureOf(client.list(services, {}, neverAborted))).toMatchObject(failure);
  });

  it('fails with the status of an error response even if the body does not end', async () => {
    const { client } = await startServer((stream) => {
      stream.respond({ ':status': 500, 'content-type': 'application/json' });
      const writeUntilFull = (): void => {
        while (!stream.destroyed && stream.write('x'.repeat(16_384)));
      };
      stream.on('drain', writeUntilFull);
      writeUntilFull();
    });
    expect(await failureOf(client.list(services, {}, neverAborted))).toMatchObject({ kind: 'status', code: 500 });
  });

  it('does not repeat its content in errors, because it can be a Secret', async () => {
    const { client } = await startServer((stream) =>
      respondJson(stream, '{"metadata": {}, "items": [{"a": hunter2}]}'),
    );
    expect(JSON.stringify(await failureOf(client.list(services, {}, neverAborted)))).not.toContain('hunter2');
  });
});

describe('a watch', () => {
  it('reports each event when its line is complete, however the bytes are split', async () => {
    const text = [
      line('ADDED', service('ä')),
      line('BOOKMARK', {
        kind: 'Service',
        metadata: { resourceVersion: '9', annotations: { 'k8s.io/initial-events-end': 'true' } },
      }),
      line('PUZZLED', service('x')),
      line('ADDED', { ...service('y'), kind: 'Pod' }),
      line('DELETED', service('ä')),
    ].join('');
    const { client, paths } = await startServer((stream) => {
      stream.respond(jsonHeaders);
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += 7) stream.write(bytes.subarray(at, at + 7));
      stream.end();
    });
    const events: WatchEvent[] = [];
    const end = await client.watch(
      services,
      { resourceVersion: '5', sendInitialEvents: true, timeoutSeconds: 300 },
      (event) => events.push(event),
      neverAborted,
    );
    expect(end).toEqual({ events: 3, skipped: 2 });
    expect(events.map((event) => [event.type, isInitialEventsEnd(event)])).toEqual([
      ['ADDED', false],
      ['BOOKMARK', true],
      ['DELETED', false],
    ]);
    expect(events[0]).toMatchObject({ object: { metadata: { name: 'ä' } } });
    expect(new URL(paths[0]!, 'https://x').search).toBe(
      '?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=300&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
    );
  });

  it('ends with an ERROR event and reports no event after it', async () => {
    const { client } = await startServer((stream) => {
      stream.respond(jsonHeaders);
      stream.write(line('ERROR', { kind: 'Status', code: 410, reason: 'Expired' }) + line('ADDED', service('a')));
    });
    const events: WatchEvent[] = [];
    expect(await client.watch(services, watchFor, (event) => events.push(event), neverAborted)).toEqual({
      events: 1,
      skipped: 0,
    });
    expect(events).toEqual([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }]);
  });

  it('reports no event after it is aborted, even from the same chunk', async () => {
    const { client } = await startServer((stream) => {
      stream.respond(jsonHeaders);
      stream.write(line('ADDED', service('a')) + line('ADDED', service('b')));
    });
    const stop = new AbortController();
    const names: unknown[] = [];
    const watch = client.watch(
      services,
      watchFor,
      (event) => {
        names.push(event.type);
        stop.abort();
      },
      stop.signal,
    );
    expect(await failureOf(watch)).toMatchObject({ kind: 'aborted' });
    expect(names).toEqual(['ADDED']);
  });

  it('fails with 404 if the response body reports an unknown kind', async () => {
    const { client } = await startServer((stream) => respondJson(stream, '404 page not found\n'));
    const failure = await failureOf(client.watch(services, watchFor, () => {}, neverAborted));
    expect(failure).toMatchObject({ kind: 'status', code: 404 });
  });

  it.each([
    ['an endless line', (): string => 'x'.repeat(maxObjectBytes + 1), 'invalid'],
    ['a line that is not JSON', (): string => '{"type": hunter2}\n', 'invalid'],
    ['a line that is not an event', (): string => '"ADDED"\n', 'invalid'],
    ['an object without metadata', (): string => line('ADDED', { kind: 'Service' }), 'invalid'],
    [
      'a numeric version',
      (): string => line('ADDED', { kind: 'Service', metadata: { name: 'a', resourceVersion: 7 } }),
      'invalid',
    ],
    [
      'a bookmark with a list as version',
      (): string => line('BOOKMARK', { metadata: { resourceVersion: ['7'] } }),
      'invalid',
    ],
    ['an incomplete last line', (): string => '{"type": "ADD', 'closed'],
  ])('fails if the server sends %s', async (_, text, kind) => {
    const { client } = await startServer((stream) => respondJson(stream, text()));
    const failure = await failureOf(client.watch(services, watchFor, () => {}, neverAborted));
    expect(failure).toMatchObject({ kind });
    expect(failure.message).not.toContain('hunter2');
  });

  it('can be silent until its timeout, and is ended by the client if the server does not end it', async () => {
    const { client } = await startServer((stream) => stream.respond(jsonHeaders), {
      limits: { idleMs: 20, responseMs: 2_000, watchGraceMs: 100 },
    });
    expect(await client.watch(services, { resourceVersion: '1', timeoutSeconds: 0 }, () => {}, neverAborted)).toEqual({
      events: 0,
      skipped: 0,
    });
  });

  it('fails if an incomplete line is not continued', async () => {
    const { client } = await startServer(
      (stream) => {
        stream.respond(jsonHeaders);
        stream.write('{"type": ');
      },
      { limits: { idleMs: 50 } },
    );
    expect(await failureOf(client.watch(services, watchFor, () => {}, neverAborted))).toMatchObject({
      kind: 'timeout',
    });
  });

  it('fails if the connection breaks', async () => {
    const { client, sessions } = await startServer((stream) => {
      stream.respond(jsonHeaders);
      stream.write(line('ADDED', service('a')));
    });
    const watch = client.watch(services, watchFor, () => sessions[0]!.socket.destroy(), neverAborted);
    expect(await failureOf(watch)).toMatchObject({ kind: 'closed' });
  });
});

describe('connections to an API server', () => {
  const listOf = (stream: Parameters<RespondToRequest>[0]): void =>
    respondJson(stream, { metadata: { resourceVersion: '1' }, items: [] });

  it('are shared by watches and lists, and separate for other requests', async () => {
    const { client, connections } = await startServer((stream, path) =>
      path.includes('watch') ? stream.respond(jsonHeaders) : listOf(stream),
    );
    const stop = new AbortController();
    const watches = Array.from({ length: 30 }, () => client.watch(services, watchFor, () => {}, stop.signal));
    await Promise.all(Array.from({ length: 10 }, () => client.list(services, {}, neverAborted)));
    expect(connections()).toBe(1);
    await Promise.all(
      Array.from({ length: 10 }, () =>
        client.request({ method: 'GET', resource: leases, namespace: 'a', name: 'b' }, neverAborted),
      ),
    );
    expect(connections()).toBe(2);
    stop.abort();
    for (const watch of watches) expect(await failureOf(watch)).toMatchObject({ kind: 'aborted' });
  });

  it('increase in number up to a limit if the server allows few streams on each', async () => {
    const { client, connections } = await startServer((stream) => stream.respond(jsonHeaders), {
      maxConcurrentStreams: 2,
    });
    const stop = new AbortController();
    const watches = Array.from({ length: 16 }, () => client.watch(services, watchFor, () => {}, stop.signal));
    for (const watch of watches) watch.catch(() => {});
    await eventually('all run', () => connections() === 8);
    expect(await failureOf(client.watch(services, watchFor, () => {}, neverAborted))).toMatchObject({ kind: 'closed' });
    stop.abort();
  });

  it('accept no new requests after a GOAWAY, and finish their streams', async () => {
    let watched: Parameters<RespondToRequest>[0] | undefined;
    const { client, connections, sessions } = await startServer((stream, path) => {
      if (!path.includes('watch')) return listOf(stream);
      watched = stream;
      stream.respond(jsonHeaders);
    });
    const events: string[] = [];
    const watch = client.watch(services, watchFor, ({ type }) => events.push(type), neverAborted);
    await eventually('the watch runs', () => watched !== undefined);
    sessions[0]!.goaway(0);
    await eventually('another connection is used', async () => {
      await client.list(services, {}, neverAborted);
      return connections() === 2;
    });
    watched!.write(line('ADDED', service('a')));
    await eventually('the old one still tells', () => events.length === 1);
    watched!.end();
    expect(await watch).toEqual({ events: 1, skipped: 0 });
    await client.list(services, {}, neverAborted);
    expect(connections()).toBe(2);
  });

  it('are replaced for a retry if they refuse a request before processing it', async () => {
    const refusedSessions = new Set<unknown>();
    const { client, paths } = await startServer((stream) => {
      if (refusedSessions.size === 2) return listOf(stream);
      refusedSessions.add(stream.session);
      stream.close(7);
    });
    expect((await client.list(services, {}, neverAborted)).resourceVersion).toBe('1');
    expect([paths.length, refusedSessions.size]).toEqual([3, 2]);
  });

  it('fail with "going away" after three refused attempts', async () => {
    const { client, paths } = await startServer((stream) => stream.close(7));
    let permits = 0;
    const write = { method: 'POST', resource: leases, namespace: 'a', body: {}, permit: () => ++permits > 0 } as const;
    expect(await failureOf(client.request(write, neverAborted))).toMatchObject({ kind: 'going away' });
    // `permit` is called for each attempt.
    expect([paths.length, permits]).toEqual([3, 3]);
  });

  it('cause no retry if they break during a response', async () => {
    const { client, paths } = await startServer((stream) => {
      stream.respond(jsonHeaders);
      stream.write(line('ADDED', service('a')), () => stream.destroy(new Error('broken')));
    });
    expect(await failureOf(client.watch(services, watchFor, () => {}, neverAborted))).toMatchObject({ kind: 'closed' });
    expect(paths).toHaveLength(1);
  });

  it('respond to pings, and are replaced on reconnect', async () => {
    const { client, connections } = await startServer((stream) => stream.respond(jsonHeaders));
    expect(await client.ping(neverAborted)).toBeGreaterThan(0);
    const watch = client.watch(services, watchFor, () => {}, neverAborted);
    await client.ping(neverAborted);
    client.reconnect();
    expect(await failureOf(watch)).toMatchObject({ kind: 'closed' });
    await client.ping(neverAborted);
    expect(connections()).toBe(2);
  });

  it('fail after a timeout if they do not respond to a ping', async () => {
    const { access, client: direct } = await startServer((stream) => stream.respond(jsonHeaders));
    const { url, stall } = await faultyProxy(access.server);
    const client = new Http2ApiServer({ ...access, server: url }, { pingMs: 200 });
    onTestFinished(() => client.close());
    await direct.ping(neverAborted);
    await client.ping(neverAborted);
    stall();
    expect(await failureOf(client.ping(neverAborted))).toMatchObject({ kind: 'timeout' });
    client.reconnect();
    expect(await client.ping(neverAborted)).toBeGreaterThan(0);
  });

  it('do not block callers if they are replaced while they open', async () => {
    const { access, client: direct } = await startServer((stream) => listOf(stream));
    await direct.ping(neverAborted);
    let requestCount = 0;
    // The first connection never gets its CA certificate.
    const tls = (signal: AbortSignal) => (requestCount++ === 0 ? new Promise<never>(() => {}) : access.tls(signal));
    const client = new Http2ApiServer({ ...access, tls });
    onTestFinished(() => client.close());
    const [list, ping] = [client.list(services, {}, neverAborted), client.ping(neverAborted)];
    await eventually('it is being made', () => requestCount === 1);
    client.reconnect();
    expect((await list).resourceVersion).toBe('1');
    expect(await ping).toBeGreaterThan(0);
    expect(requestCount).toBe(2);
  });

  it('time out if no credentials are received', async () => {
    const { client } = await startServer(listOf, {
      access: { tls: () => new Promise(() => {}) },
      limits: { connectMs: 50 },
    });
    expect(await failureOf(client.ping(neverAborted))).toMatchObject({ kind: 'timeout' });
  });

  it('report unfinished streams as closed if the connection ends after a GOAWAY', async () => {
    const { client, sessions } = await startServer((stream) => {
      stream.respond(jsonHeaders);
      stream.write(line('ADDED', service('a')));
    });
    const watch = client.watch(
      services,
      watchFor,
      () => {
        sessions[0]!.goaway(0);
        setTimeout(() => sessions[0]!.socket.destroy(), 20);
      },
      neverAborted,
    );
    expect(await failureOf(watch)).toMatchObject({ kind: 'closed' });
  });

  it('fail as unreachable or with a timeout if they are not accepted', async () => {
    const { client, access, close } = await scriptedApiServer(() => {});
    await close();
    expect(await failureOf(client.list(services, {}, neverAborted))).toMatchObject({ kind: 'aborted' });
    const other = new Http2ApiServer(access);
    onTestFinished(() => other.close());
    expect(await failureOf(other.list(services, {}, neverAborted))).toMatchObject({ kind: 'unreachable' });
    expect(await failureOf(other.ping(neverAborted))).toMatchObject({ kind: 'unreachable' });
    const silentServer = createPlainServer((socket) => socket.on('error', () => {}));
    silentServer.listen(0, '127.0.0.1');
    await once(silentServer, 'listening');
    onTestFinished(() => void silentServer.close());
    const server = new URL(`https://127.0.0.1:${(silentServer.address() as AddressInfo).port}`);
    const patient = new Http2ApiServer({ ...access, server }, { connectMs: 100 });
    onTestFinished(() => patient.close());
    expect(await failureOf(patient.list(services, {}, neverAborted))).toMatchObject({ kind: 'timeout' });
  });

  it('are not opened to a server with another CA or name', async () => {
    const { client } = await startServer(() => {}, { names: ['kubernetes.default.svc'] });
    expect(await failureOf(client.list(services, {}, neverAborted))).toMatchObject({ kind: 'unreachable' });
    const other = await startServer(() => {}, { access: { tls: async () => ({}) } });
    expect(await failureOf(other.client.list(services, {}, neverAborted))).toMatchObject({ kind: 'unreachable' });
  });

  it('end with their client, which then opens no new ones', async () => {
    const { client, sessions } = await startServer((stream) => stream.respond(jsonHeaders));
    const watch = client.watch(services, watchFor, () => {}, neverAborted);
    await eventually('it runs', () => sessions.length === 1);
    client.close();
    expect(await failureOf(watch)).toMatchObject({ kind: 'aborted' });
    await eventually('the connection is gone', () => sessions.length === 0);
    expect(await failureOf(client.ping(neverAborted))).toMatchObject({ kind: 'aborted' });
  });
});

describe('a request to an API server', () => {
  it('contains the content type of its body, and a timeout for the server', async () => {
    const seenRequests: unknown[] = [];
    const { client } = await startServer((stream, path, headers) => {
      let body = '';
      stream.on('data', (chunk) => (body += chunk));
      stream.on('end', () => {
        seenRequests.push([headers[':method'], path, headers['content-type'], JSON.parse(body)]);
        respondJson(stream, service('a'));
      });
    });
    const base = { resource: leases, namespace: 'shop', name: 'a/b', timeoutMs: 4_000 };
    await client.request({ ...base, method: 'PUT', body: { spec: 1 } }, neverAborted);
    await client.request(
      {
        ...base,
        method: 'PATCH',
        subresource: 'status',
        patch: 'apply',
        query: { fieldManager: 'x' },
        body: { spec: 2 },
      },
      neverAborted,
    );
    const path = '/apis/coordination.k8s.io/v1/namespaces/shop/leases/a%2Fb';
    expect(seenRequests).toEqual([
      ['PUT', `${path}?timeout=4s`, 'application/json', { spec: 1 }],
      ['PATCH', `${path}/status?timeout=4s&fieldManager=x`, 'application/apply-patch+yaml', { spec: 2 }],
    ]);
  });

  it('is not sent if its permit is denied at the time of sending', async () => {
    const { client, paths } = await startServer((stream) => respondJson(stream, service('a')));
    let requestCount = 0;
    const permit = (): boolean => {
      requestCount++;
      return false;
    };
    const write = client.request({ method: 'POST', resource: leases, namespace: 'a', body: {}, permit }, neverAborted);
    // `permit` is not called until a connection is open, because the term may end before that.
    expect(requestCount).toBe(0);
    expect(await failureOf(write)).toMatchObject({ kind: 'aborted' });
    expect([requestCount, paths.length]).toEqual([1, 0]);
  });

  it('fails after a timeout without a response, and immediately when aborted', async () => {
    const { client } = await startServer(() => {});
    const get = { method: 'GET', resource: leases, namespace: 'a', name: 'b' } as const;
    expect(await failureOf(client.request({ ...get, timeoutMs: 100 }, neverAborted))).toMatchObject({
      kind: 'timeout',
    });
    expect(await failureOf(client.request(get, AbortSignal.abort()))).toMatchObject({ kind: 'aborted' });
  });

  it('closes its connection for later requests if it receives no response', async () => {
    const { access, connections } = await startServer((stream) => respondJson(stream, service('a')));
    const { url, swallow } = await faultyProxy(access.server);
    const client = new Http2ApiServer({ ...access, server: url });
    onTestFinished(() => client.close());
    const get = { method: 'GET', resource: leases, namespace: 'a', name: 'b' } as const;
    await client.request(get, neverAborted);
    swallow();
    expect(await failureOf(client.request({ ...get, timeoutMs: 100 }, neverAborted))).toMatchObject({
      kind: 'timeout',
    });
    expect((await client.request(get, neverAborted)).metadata.name).toBe('a');
    expect(connections()).toBe(2);
  });

  it('times out if the response is slow', async () => {
    const { client } = await startServer((stream) => {
      stream.respond(jsonHeaders);
      const timer = setInterval(() => stream.write(' '), 10);
      stream.on('close', () => clearInterval(timer));
    });
    const get = { method: 'GET', resource: leases, namespace: 'a', name: 'b', timeoutMs: 150 } as const;
    expect(await failureOf(client.request(get, neverAborted))).toMatchObject({ kind: 'timeout' });
  });

  it('causes credentials to be read again if it receives 401', async () => {
    const { client, access } = await startServer((stream) => respondJson(stream, {}, { ':status': 401 }));
    expect(await failureOf(client.list(services, {}, neverAborted))).toMatchObject({ kind: 'status', code: 401 });
    expect(await failureOf(client.request({ method: 'GET', resource: leases, name: 'a' }, neverAborted))).toMatchObject(
      {
        code: 401,
      },
    );
    expect(access.refusals).toBe(2);
  });

  it('uses a new connection with the newest certificate if the old certificate is rejected', async () => {
    const authority = createAuthority('of clients');
    let clientCertificate = authority.issue(['old']);
    const tls = async () => ({
      ...(await server.access.tls(neverAborted)),
      cert: clientCertificate.certificate,
      key: clientCertificate.privateKey,
    });
    const server = await startServer((stream) => {
      const { subjectaltname = '' } = (stream.session!.socket as TLSSocket).getPeerCertificate();
      if (subjectaltname.includes('old')) respondJson(stream, {}, { ':status': 401 });
      else respondJson(stream, { metadata: { resourceVersion: '1' }, items: [] });
    });
    const client = new Http2ApiServer({ ...server.access, tls });
    onTestFinished(() => client.close());
    const list = () => client.list(services, {}, neverAborted);
    expect(await failureOf(list())).toMatchObject({ code: 401 });
    clientCertificate = authority.issue(['new']);
    const listState = { isListed: false };
    await eventually('it is listed', async () => {
      await list().then(
        () => {
          listState.isListed = true;
        },
        () => {},
      );
      return listState.isListed;
    });
    expect(server.connections()).toBe(2);
  });

  it.each<[string, object]>([
    ['an invalid certificate', { cert: 'nonsense', key: 'nonsense' }],
    ['the key of another certificate', { cert: createAuthority().certificate, key: createAuthority().privateKey }],
    ['an invalid CA certificate', { ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' }],
  ])('fails with a credentials error for %s', async (_, material) => {
    const { client } = await startServer(() => {}, { access: { tls: async () => material } });
    const get = { method: 'GET', resource: leases, name: 'a' } as const;
    for (const operation of [
      client.list(services, {}, neverAborted),
      client.ping(neverAborted),
      client.request(get, neverAborted),
    ]) {
      expect(['credentials', 'unreachable']).toContain((await failureOf(operation)).kind);
    }
  });

  it('ends when it is aborted while waiting for credentials', async () => {
    const { client } = await startServer(() => {}, { access: { headers: () => new Promise(() => {}) } });
    const stop = new AbortController();
    const list = client.list(services, {}, stop.signal);
    await sleep(5);
    stop.abort();
    expect(await failureOf(list)).toMatchObject({ kind: 'aborted' });
  });
});
