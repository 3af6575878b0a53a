import { describe, expect, it } from 'vitest';
import { recordingLog } from '../../../../test/harness/recording-log.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import { WriteGate } from '../../election/write-gate.ts';
import type { ApiFailure } from '../../kubernetes/api-failure.ts';
import { ApiError } from '../../kubernetes/api-failure.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import type { ApiRequest, KubernetesObject } from '../../kubernetes/api-server.ts';
import { withConditions } from './status-conditions.ts';
import { type StatusFields, type StatusRef, StatusWriter, type StatusWriterOptions } from './status-writer.ts';

const route = (name: string): StatusRef => ({ kind: 'HTTPRoute', namespace: 'shop', name });
const notFound: ApiFailure = { kind: 'status', code: 404, reason: 'NotFound', message: 'no such route', causes: [] };
const conflict: ApiFailure = { kind: 'status', code: 409, reason: 'Conflict', message: 'is another one', causes: [] };
const first = { retry: false, includesAll: false };

/** An API server with versioned objects that records requests. */
class Objects {
  readonly #objects = new Map<string, KubernetesObject>();
  readonly requestLog: string[] = [];
  underWay = 0;
  maxConcurrent = 0;
  #version = 0;
  /** Makes requests fail or wait. */
  intercept: (request: ApiRequest) => ApiFailure | undefined | Promise<void> = () => undefined;

  put(name: string, status?: unknown, generation = 1): void {
    const metadata = { name, namespace: 'shop', generation, resourceVersion: `${++this.#version}`, labels: { a: 'b' } };
    this.#objects.set(name, { metadata, spec: { kept: true }, ...(status !== undefined && { status }) });
  }

  statusOf(name: string): unknown {
    return this.#objects.get(name)?.status;
  }

  object(name: string): KubernetesObject | undefined {
    return this.#objects.get(name);
  }

  readonly request = async (request: ApiRequest): Promise<KubernetesObject> => {
    const { method, name = '', subresource, namespace, body } = request;
    this.requestLog.push(`${method} ${namespace}/${name}/${subresource}`);
    this.underWay++;
    this.maxConcurrent = Math.max(this.maxConcurrent, this.underWay);
    try {
      const failure = await this.intercept(request);
      if (failure !== undefined) throw new ApiError(failure);
      const object = this.#objects.get(name);
      if (object === undefined) throw new ApiError(notFound);
      if (method === 'GET') return structuredClone(object);
      const submitted = body as KubernetesObject;
      if (submitted.metadata.resourceVersion !== object.metadata.resourceVersion) throw new ApiError(conflict);
      const metadata = { ...object.metadata, resourceVersion: `${++this.#version}` };
      this.#objects.set(name, { ...object, metadata, spec: submitted.spec, status: submitted.status });
      return this.#objects.get(name)!;
    } finally {
      this.underWay--;
    }
  };
}

const clockReading = { monotonicMs: 0, wallMs: 0 };

function createWriter(options: Partial<StatusWriterOptions> = {}) {
  const objects = new Objects();
  const gate = new WriteGate({ server: objects, now: () => clockReading, writeMs: 4_000 });
  gate.extend(clockReading, 10_000);
  const clock = { now: 1_000 };
  const timers: { at: number; callback: () => void }[] = [];
  /** Condition message by object name. */
  const desiredByName = new Map<string, { message: string; generation?: number }>();
  const { log, lines: warnings } = recordingLog();
  const duty = new StatusWriter({
    lease: 'test',
    source: {
      desiredStatus: ({ name }) => {
        const one = desiredByName.get(name);
        if (one === undefined) return undefined;
        const { message, generation = 1 } = one;
        return {
          generation,
          next: (present: StatusFields, time: string): StatusFields => ({
            ...present,
            conditions: withConditions(
              present.conditions,
              [{ type: 'Ready', status: 'True', reason: 'Ready', message }],
              {
                generation,
                time,
              },
            ),
          }),
        };
      },
      allRefs: () => [...desiredByName.keys()].map(route),
    },
    server: objects,
    resourceOf: (kind) => resourceOf(kind as KindName),
    log,
    now: () => clock.now,
    time: () => '2026-11-27T12:00:00Z',
    schedule: (ms, callback) => {
      const timer = { at: clock.now + ms, callback };
      timers.push(timer);
      return () => timers.splice(timers.indexOf(timer), 1);
    },
    ...options,
  });
  const setDesired = (name: string, message: string, urgent = true, generation = 1): void => {
    desiredByName.set(name, { message, generation });
    duty.markDue([route(name)], { urgent });
  };
  const messageOf = (name: string): unknown =>
    (objects.statusOf(name) as { conditions?: { message: unknown }[] } | undefined)?.conditions?.[0]?.message;
  return { objects, gate, duty, clock, timers, wanted: desiredByName, warnings, want: setDesired, messageOf };
}

describe('a status write', () => {
  it('keeps content of other writers', async () => {
    const { objects, gate, duty, want: setDesired } = createWriter();
    objects.put('a', { foreign: true, conditions: [{ type: 'Other' }] });
    setDesired('a', 'one');
    expect(await duty.writeDue(first, gate)).toEqual({ writtenCount: 1, failedCount: 0, reason: '' });
    expect(objects.requestLog).toEqual(['GET shop/a/status', 'PUT shop/a/status']);
    expect(objects.object('a')).toMatchObject({
      metadata: { labels: { a: 'b' } },
      spec: { kept: true },
      status: {
        foreign: true,
        conditions: [{ type: 'Other' }, { type: 'Ready', message: 'one', observedGeneration: 1 }],
      },
    });
  });

  it('uses the desired status at the time of sending, and is skipped if the object already has it', async () => {
    const { objects, gate, duty, want: setDesired, messageOf } = createWriter();
    objects.put('a');
    setDesired('a', 'one');
    setDesired('a', 'two');
    await duty.writeDue(first, gate);
    setDesired('a', 'two');
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 0, failedCount: 0 });
    expect(messageOf('a')).toBe('two');
    expect(objects.requestLog.filter((text) => text.startsWith('PUT'))).toHaveLength(1);
    expect(duty.counts).toMatchObject({ written: 1, same: 1 });
  });

  it('uses the desired status after the object is read', async () => {
    const { objects, gate, duty, want: setDesired, wanted: desiredByName, messageOf } = createWriter();
    objects.put('a');
    objects.intercept = ({ method }) => {
      if (method === 'GET') desiredByName.set('a', { message: 'newer' });
      return undefined;
    };
    setDesired('a', 'one');
    await duty.writeDue(first, gate);
    expect(messageOf('a')).toBe('newer');
  });

  it.each([
    ['has a newer generation', undefined, 2],
    ['has an older generation because it was recreated', undefined, 0],
    ['has a condition about a newer generation', { observedGeneration: 9 }, 1],
  ])('is skipped if the object %s', async (_, status, generation) => {
    const { objects, gate, duty, want: setDesired } = createWriter();
    objects.put('a', status, generation);
    setDesired('a', 'one');
    expect(await duty.writeDue(first, gate)).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
    expect(objects.statusOf('a')).toEqual(status);
    expect(duty.counts.superseded).toBe(1);
  });

  it('counts as completed if the object is deleted before or after it is read', async () => {
    const { objects, gate, duty, want: setDesired } = createWriter();
    objects.put('b');
    objects.intercept = ({ method }) => (method === 'PUT' ? notFound : undefined);
    setDesired('a', 'one');
    setDesired('b', 'one');
    expect(await duty.writeDue(first, gate)).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
    expect(duty.isDue).toBe(false);
  });

  it.each(['a text', 7, null, ['x'], { conditions: 'none' }, { conditions: Array(10_000).fill({ type: 'Ready' }) }])(
    'replaces a malformed status %j',
    async (status) => {
      const { objects, gate, duty, want: setDesired } = createWriter();
      objects.put('a', status);
      setDesired('a', 'one');
      await duty.writeDue(first, gate);
      expect((objects.statusOf('a') as { conditions: unknown }).conditions).toHaveLength(1);
    },
  );
});

describe('a failed status write', () => {
  it('stays due after a conflict, and then uses the newer object', async () => {
    const { objects, gate, duty, want: setDesired } = createWriter();
    objects.put('a');
    objects.intercept = async ({ method }) => {
      if (method !== 'PUT') return;
      objects.put('a', { by: 'somebody' });
      objects.intercept = () => undefined;
    };
    setDesired('a', 'one');
    // A conflict with a faster writer is not an error.
    expect(await duty.writeDue(first, gate)).toEqual({ writtenCount: 0, failedCount: 1, reason: '' });
    expect(duty.isDue).toBe(false);
    expect(await duty.writeDue({ retry: true, includesAll: false }, gate)).toMatchObject({
      writtenCount: 1,
      failedCount: 0,
    });
    expect(objects.statusOf('a')).toMatchObject({ by: 'somebody', conditions: [{ message: 'one' }] });
  });

  it('is reported and dropped after a permanent rejection', async () => {
    const { objects, gate, duty, want: setDesired, warnings } = createWriter();
    objects.put('a');
    objects.intercept = ({ method }) =>
      method === 'PUT' ? { kind: 'status', code: 422, reason: 'Invalid', message: 'too many', causes: [] } : undefined;
    setDesired('a', 'one');
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 0, failedCount: 0 });
    expect(warnings).toEqual([
      { event: 'status.writeRejected', level: 'warn', object: 'HTTPRoute/shop/a', reason: 'too many' },
    ]);
  });

  it('does not affect other objects', async () => {
    const { objects, gate, duty, want: setDesired, messageOf } = createWriter({ maxConcurrent: 1 });
    objects.put('a');
    objects.put('b');
    objects.intercept = ({ name }) => (name === 'a' ? { ...notFound, code: 403, message: 'forbidden' } : undefined);
    setDesired('a', 'one');
    setDesired('b', 'one');
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 1, failedCount: 1 });
    expect(messageOf('b')).toBe('one');
  });

  it.each<ApiFailure>([
    { kind: 'unreachable', message: 'refused' },
    { kind: 'timeout', message: 'late' },
    { kind: 'status', code: 429, reason: 'TooManyRequests', message: 'slower', causes: [] },
  ])('ends the run if all objects would fail too (%j)', async (failure) => {
    const { objects, gate, duty, want: setDesired } = createWriter({ maxConcurrent: 2 });
    objects.intercept = () => failure;
    for (let index = 0; index < 100; index++) setDesired(`${index}`, 'one');
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 0, failedCount: 100 });
    expect(objects.requestLog).toHaveLength(2);
    expect(duty.isDue).toBe(false);
  });

  it('does not read the object after the term has ended', async () => {
    const { objects, gate, duty, want: setDesired } = createWriter();
    objects.put('a');
    setDesired('a', 'one');
    gate.close({ giveUp: false });
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 0, failedCount: 1 });
    expect(objects.requestLog).toEqual([]);
  });
});

describe('a run of the status writer', () => {
  it('limits concurrent requests, and accepts new items, with urgent items first', async () => {
    const { objects, gate, duty, want: setDesired, wanted: desiredByName } = createWriter({ maxConcurrent: 4 });
    const order: string[] = [];
    for (let index = 0; index < 50; index++) {
      objects.put(`${index}`);
      setDesired(`${index}`, 'one', false);
    }
    objects.put('urgent');
    objects.intercept = async ({ method, name = '' }) => {
      if (method !== 'GET') return;
      order.push(name);
      if (order.length === 10) setDesired('urgent', 'at once');
      // A second change of an object waits for the next run.
      if (order.length === 20) setDesired('0', 'two');
      await new Promise((resolve) => setImmediate(resolve));
    };
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 51, failedCount: 0 });
    expect(objects.maxConcurrent).toBe(4);
    expect(order.indexOf('urgent')).toBeLessThan(15);
    expect(order.filter((name) => name === '0')).toHaveLength(1);
    expect(duty.isDue).toBe(true);
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 1 });
    expect(desiredByName.size).toBe(51);
  });

  it('includes all objects for a new leader', async () => {
    const { objects, gate, duty, wanted: desiredByName } = createWriter();
    for (const name of ['a', 'b']) {
      objects.put(name);
      desiredByName.set(name, { message: 'one' });
    }
    expect(await duty.writeDue({ retry: false, includesAll: true }, gate)).toMatchObject({ writtenCount: 2 });
  });
});

describe('a paused status writer', () => {
  it('writes no status while the other duty writes, and all due statuses afterwards', async () => {
    let isGateHeld = true;
    const { objects, gate, duty, clock, timers, want: setDesired } = createWriter({ isHeld: () => isGateHeld });
    objects.put('a');
    let notifications = 0;
    duty.watch(() => void notifications++);
    setDesired('a', 'one');
    setDesired('b', 'two');
    expect([notifications, duty.isDue]).toEqual([0, false]);
    expect(await duty.writeDue({ retry: true, includesAll: true }, gate)).toEqual({
      writtenCount: 0,
      failedCount: 0,
      reason: '',
    });
    expect(objects.requestLog).toEqual([]);
    const isDue = () => {
      const [timer] = timers;
      clock.now = timer!.at;
      timer!.callback();
    };
    isDue();
    expect(notifications).toBe(0);
    isGateHeld = false;
    isDue();
    expect([notifications, duty.isDue]).toEqual([1, true]);
    expect(await duty.writeDue(first, gate)).toMatchObject({ writtenCount: 1 });
    expect(timers).toEqual([]);
  });
});

describe('a watcher of the status writer', () => {
  it('is notified when an object becomes due, immediately or after a delay', async () => {
    const { objects, gate, duty, clock, timers, want: setDesired, messageOf } = createWriter({ pauseMs: 10_000 });
    objects.put('a');
    let notifications = 0;
    const stop = duty.watch(() => {
      notifications++;
    });
    setDesired('a', '1/3', false);
    expect(notifications).toBe(1);
    await duty.writeDue(first, gate);
    setDesired('a', '2/3', false);
    expect([notifications, duty.isDue, timers.length]).toEqual([1, false, 1]);
    clock.now = timers[0]!.at;
    timers[0]!.callback();
    expect([notifications, duty.isDue]).toEqual([2, true]);
    await duty.writeDue(first, gate);
    expect(messageOf('a')).toBe('2/3');
    setDesired('a', 'rejected', true);
    expect([notifications, duty.isDue]).toEqual([3, true]);
    await duty.writeDue(first, gate);
    setDesired('a', '3/3', false);
    stop();
    expect(timers).toEqual([]);
  });

  it('is notified of objects that are already due', () => {
    const { duty, want: setDesired } = createWriter();
    setDesired('a', 'one');
    let notifications = 0;
    duty.watch(() => {
      notifications++;
    });
    expect(notifications).toBe(1);
  });
});
