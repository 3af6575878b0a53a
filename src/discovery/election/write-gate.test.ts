import { describe, expect, it, onTestFinished } from 'vitest';
import { failureOf } from '../../../test/fixtures/failure-of.ts';
import { respondJson, type ScriptedOptions, scriptedApiServer } from '../../../test/fixtures/scripted-api-server.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { ApiRequest } from '../kubernetes/api-server.ts';
import { type ClockReading, elapsedMs } from './leader-term.ts';
import { WriteGate, type WriteOrder } from './write-gate.ts';

const configMaps = resourceOf('ConfigMap');
const order: WriteOrder = {
  ...{ verb: 'patch', resource: configMaps, namespace: 'shop', name: 'roots' },
  ...{ version: '7', fields: { data: { key: 'value' } } },
};

class Clocks {
  monotonicMs = 1_000;
  wallMs = 1_700_000_000_000;

  get reading(): ClockReading {
    const { monotonicMs, wallMs } = this;
    return { monotonicMs, wallMs };
  }

  pass(ms: number): void {
    this.monotonicMs += ms;
    this.wallMs += ms;
  }
}

/** A gate with a real client and a server that accepts every write, at the start of a term of ten seconds. */
async function openGate(options: ScriptedOptions = {}, hold?: Promise<void>) {
  const clocks = new Clocks();
  const server = await scriptedApiServer(async (stream) => {
    await hold;
    if (!stream.destroyed) respondJson(stream, { metadata: { name: 'roots', resourceVersion: '8' } });
  }, options);
  onTestFinished(() => server.close());
  const gate = new WriteGate({ server: server.client, now: () => clocks.reading, writeMs: 4_000 });
  gate.extend(clocks.reading, 10_000);
  return { gate, clocks, paths: server.paths };
}

/** The request that a gate sends for an order. */
async function requestFor(writeOrder: WriteOrder): Promise<ApiRequest> {
  const requests: ApiRequest[] = [];
  const server = {
    request: async (request: ApiRequest) => {
      requests.push(request);
      return { metadata: { name: '' } };
    },
  };
  const gate = new WriteGate({ server, now: () => new Clocks().reading, writeMs: 4_000 });
  gate.extend(new Clocks().reading, 1_000);
  await gate.write(writeOrder);
  return requests[0]!;
}

describe('a write within a term', () => {
  it('is sent with a timeout, also for the server', async () => {
    const { gate, paths } = await openGate();
    expect((await gate.write(order)).metadata.resourceVersion).toBe('8');
    expect(paths).toEqual(['/api/v1/namespaces/shop/configmaps/roots?timeout=4s']);
  });

  it('remains possible for longer after a renewal', async () => {
    const { gate, clocks } = await openGate();
    clocks.pass(6_000);
    gate.extend(clocks.reading, 10_000);
    clocks.pass(9_999);
    expect(gate.isOpen).toBe(true);
    clocks.pass(1);
    expect(gate.isOpen).toBe(false);
  });
});

describe('a write gate', () => {
  it('sends no write before a term or after its end', async () => {
    const { gate, clocks, paths } = await openGate();
    gate.close({ giveUp: false });
    expect(await failureOf(gate.write(order))).toMatchObject({ kind: 'aborted' });
    gate.extend(clocks.reading, 10_000);
    clocks.pass(10_000);
    expect(await failureOf(gate.write(order))).toMatchObject({ kind: 'aborted' });
    expect(paths).toEqual([]);
    expect(gate.rejectedCount).toBe(2);
  });

  it.each([
    ['only the wall clock is past the end of the term, because the machine was suspended', { wallMs: 10_000 }, false],
    [
      'only the monotonic clock is past the end of the term, because the wall clock was set back',
      { monotonicMs: 10_000 },
      false,
    ],
    [
      'the wall clock was set back to before the term, which has ended',
      { monotonicMs: 10_000, wallMs: -3_600_000 },
      false,
    ],
  ])(
    'is closed if %s',
    async (_, { monotonicMs = 0, wallMs = 0 }: { monotonicMs?: number; wallMs?: number }, isOpen) => {
      const { gate, clocks } = await openGate();
      clocks.monotonicMs += monotonicMs;
      clocks.wallMs += wallMs;
      expect(gate.isOpen).toBe(isOpen);
    },
  );

  it.each([
    ['ends', (_: WriteGate, clocks: Clocks) => clocks.pass(10_000)],
    ['is released', (gate: WriteGate) => gate.close({ giveUp: false })],
    [
      'is followed by another one',
      (gate: WriteGate, clocks: Clocks) => {
        gate.close({ giveUp: false });
        gate.extend(clocks.reading, 10_000);
      },
    ],
  ])('sends no write if the term %s while the write waits for credentials', async (_, happens) => {
    const credentials = Promise.withResolvers<void>();
    const waited = async (): Promise<Record<string, string>> => {
      await credentials.promise;
      return { authorization: 'Bearer let-me-in' };
    };
    const { gate, clocks, paths } = await openGate({ access: { headers: waited } });
    const writeFailure = failureOf(gate.write(order));
    happens(gate, clocks);
    credentials.resolve();
    expect(await writeFailure).toMatchObject({ kind: 'aborted' });
    expect(paths).toEqual([]);
  });
});

describe('a write in progress at the end of a term', () => {
  it('is awaited if the term is released', async () => {
    const hold = Promise.withResolvers<void>();
    const { gate, paths } = await openGate({}, hold.promise);
    const pendingWrite = gate.write(order);
    await eventually('it was sent', () => paths.length === 1);
    let isIdle = false;
    gate.close({ giveUp: false });
    const idle = gate.waitUntilIdle().then(() => {
      isIdle = true;
    });
    await Promise.resolve();
    expect(isIdle).toBe(false);
    hold.resolve();
    expect((await pendingWrite).metadata.resourceVersion).toBe('8');
    await idle;
  });

  it('is aborted if the term is lost', async () => {
    const { gate, paths } = await openGate({}, Promise.withResolvers<void>().promise);
    const writeFailure = failureOf(gate.write(order));
    await eventually('it was sent', () => paths.length === 1);
    gate.close({ giveUp: true });
    expect(await writeFailure).toMatchObject({ kind: 'aborted' });
    await gate.waitUntilIdle();
    expect(gate.rejectedCount).toBe(1);
  });
});

describe('a write order', () => {
  const objectPlace = { resource: configMaps, namespace: 'shop', name: 'roots' };
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'roots', namespace: 'shop' } };

  it.each<readonly [WriteOrder, object]>([
    [
      { ...objectPlace, verb: 'create', object: {} },
      { method: 'POST', namespace: 'shop', body },
    ],
    [
      {
        ...objectPlace,
        verb: 'update',
        version: '7',
        object: { metadata: { labels: { a: 'b' } } },
        subresource: 'status',
      },
      {
        ...{ method: 'PUT', name: 'roots', subresource: 'status' },
        body: { ...body, metadata: { ...body.metadata, labels: { a: 'b' }, resourceVersion: '7' } },
      },
    ],
    [
      { ...objectPlace, verb: 'patch', version: '7', fields: { metadata: { resourceVersion: '6' } } },
      { method: 'PATCH', patch: 'merge', name: 'roots', body: { metadata: { resourceVersion: '7' } } },
    ],
    [
      { ...objectPlace, verb: 'delete', version: '7' },
      { method: 'DELETE', name: 'roots', body: { preconditions: { resourceVersion: '7' } } },
    ],
  ])('becomes a request that contains the base version, if the verb $verb has one', async (writeOrder, request) => {
    expect(await requestFor(writeOrder)).toMatchObject(request);
  });

  it.each(['update', 'patch', 'delete'] as const)('is rejected without a base version: %s', async (verb) => {
    const writeOrder = { ...objectPlace, verb, version: '', object: {}, fields: {} } as WriteOrder;
    expect(await failureOf(requestFor(writeOrder))).toMatchObject({ kind: 'invalid' });
  });
});

it('elapsedMs returns the longer of the times that two clocks measured', () => {
  const at = { monotonicMs: 5, wallMs: 100 };
  expect(elapsedMs(at, { monotonicMs: 8, wallMs: 110 })).toBe(10);
  expect(elapsedMs(at, { monotonicMs: 8, wallMs: 50 })).toBe(3);
});
