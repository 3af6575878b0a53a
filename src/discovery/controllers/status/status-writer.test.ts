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
const first = { retry: false, anew: false };

/** Objects with versions, as a server has them; what it is asked is noted, and may be answered by the test. */
class Objects {
  readonly #objects = new Map<string, KubernetesObject>();
  readonly asked: string[] = [];
  underWay = 0;
  most = 0;
  #version = 0;
  /** What a request fails with, or is held up by. */
  before: (request: ApiRequest) => ApiFailure | undefined | Promise<void> = () => undefined;

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
    this.asked.push(`${method} ${namespace}/${name}/${subresource}`);
    this.underWay++;
    this.most = Math.max(this.most, this.underWay);
    try {
      const failure = await this.before(request);
      if (failure !== undefined) throw new ApiError(failure);
      const object = this.#objects.get(name);
      if (object === undefined) throw new ApiError(notFound);
      if (method === 'GET') return structuredClone(object);
      const sent = body as KubernetesObject;
      if (sent.metadata.resourceVersion !== object.metadata.resourceVersion) throw new ApiError(conflict);
      const metadata = { ...object.metadata, resourceVersion: `${++this.#version}` };
      this.#objects.set(name, { ...object, metadata, spec: sent.spec, status: sent.status });
      return this.#objects.get(name)!;
    } finally {
      this.underWay--;
    }
  };
}

const moment = { monotonicMs: 0, wallMs: 0 };

function given(options: Partial<StatusWriterOptions> = {}) {
  const objects = new Objects();
  const gate = new WriteGate({ server: objects, now: () => moment, writeMs: 4_000 });
  gate.extend(moment, 10_000);
  const clock = { now: 1_000 };
  const timers: { at: number; then: () => void }[] = [];
  /** Message of the condition by name; undefined: none. */
  const wanted = new Map<string, { message: string; generation?: number }>();
  const { log, lines: warnings } = recordingLog();
  const duty = new StatusWriter({
    lease: 'test',
    source: {
      wanted: ({ name }) => {
        const one = wanted.get(name);
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
      all: () => [...wanted.keys()].map(route),
    },
    server: objects,
    resourceOf: (kind) => resourceOf(kind as KindName),
    log,
    now: () => clock.now,
    time: () => '2026-11-27T12:00:00Z',
    after: (ms, then) => {
      const timer = { at: clock.now + ms, then };
      timers.push(timer);
      return () => timers.splice(timers.indexOf(timer), 1);
    },
    ...options,
  });
  const want = (name: string, message: string, urgent = true, generation = 1): void => {
    wanted.set(name, { message, generation });
    duty.due([route(name)], { urgent });
  };
  const messageOf = (name: string): unknown =>
    (objects.statusOf(name) as { conditions?: { message: unknown }[] } | undefined)?.conditions?.[0]?.message;
  return { objects, gate, duty, clock, timers, wanted, warnings, want, messageOf };
}

describe('a write', () => {
  it('is of the object as it is now: all that others have in it stays', async () => {
    const { objects, gate, duty, want } = given();
    objects.put('a', { foreign: true, conditions: [{ type: 'Other' }] });
    want('a', 'one');
    expect(await duty.writeDue(first, gate)).toEqual({ written: 1, failed: 0, reason: '' });
    expect(objects.asked).toEqual(['GET shop/a/status', 'PUT shop/a/status']);
    expect(objects.object('a')).toMatchObject({
      metadata: { labels: { a: 'b' } },
      spec: { kept: true },
      status: {
        foreign: true,
        conditions: [{ type: 'Other' }, { type: 'Ready', message: 'one', observedGeneration: 1 }],
      },
    });
  });

  it('is of what is wanted when it is sent, and of nothing where that is there already', async () => {
    const { objects, gate, duty, want, messageOf } = given();
    objects.put('a');
    want('a', 'one');
    want('a', 'two');
    await duty.writeDue(first, gate);
    want('a', 'two');
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 0, failed: 0 });
    expect(messageOf('a')).toBe('two');
    expect(objects.asked.filter((text) => text.startsWith('PUT'))).toHaveLength(1);
    expect(duty.counts).toMatchObject({ written: 1, same: 1 });
  });

  it('is of what is wanted by the time that the object was read', async () => {
    const { objects, gate, duty, want, wanted, messageOf } = given();
    objects.put('a');
    objects.before = ({ method }) => {
      if (method === 'GET') wanted.set('a', { message: 'newer' });
      return undefined;
    };
    want('a', 'one');
    await duty.writeDue(first, gate);
    expect(messageOf('a')).toBe('newer');
  });

  it.each([
    ['of a newer generation is there', undefined, 2],
    ['of an older one is there, as after it was made anew', undefined, 0],
    ['says that it was observed in a newer one', { observedGeneration: 9 }, 1],
  ])('is left out where an object %s', async (_, status, generation) => {
    const { objects, gate, duty, want } = given();
    objects.put('a', status, generation);
    want('a', 'one');
    expect(await duty.writeDue(first, gate)).toEqual({ written: 0, failed: 0, reason: '' });
    expect(objects.statusOf('a')).toEqual(status);
    expect(duty.counts.superseded).toBe(1);
  });

  it('of an object that is gone counts as done, before it was read or after', async () => {
    const { objects, gate, duty, want } = given();
    objects.put('b');
    objects.before = ({ method }) => (method === 'PUT' ? notFound : undefined);
    want('a', 'one');
    want('b', 'one');
    expect(await duty.writeDue(first, gate)).toEqual({ written: 0, failed: 0, reason: '' });
    expect(duty.isDue).toBe(false);
  });

  it.each(['a text', 7, null, ['x'], { conditions: 'none' }, { conditions: Array(10_000).fill({ type: 'Ready' }) }])(
    'is possible where a stranger has made the status %j',
    async (status) => {
      const { objects, gate, duty, want } = given();
      objects.put('a', status);
      want('a', 'one');
      await duty.writeDue(first, gate);
      expect((objects.statusOf('a') as { conditions: unknown }).conditions).toHaveLength(1);
    },
  );
});

describe('what fails', () => {
  it('of a conflict stays due, and is made of the newer object the next time', async () => {
    const { objects, gate, duty, want } = given();
    objects.put('a');
    objects.before = async ({ method }) => {
      if (method !== 'PUT') return;
      objects.put('a', { by: 'somebody' });
      objects.before = () => undefined;
    };
    want('a', 'one');
    // Nobody is told: whoever was quicker has done nothing wrong.
    expect(await duty.writeDue(first, gate)).toEqual({ written: 0, failed: 1, reason: '' });
    expect(duty.isDue).toBe(false);
    expect(await duty.writeDue({ retry: true, anew: false }, gate)).toMatchObject({ written: 1, failed: 0 });
    expect(objects.statusOf('a')).toMatchObject({ by: 'somebody', conditions: [{ message: 'one' }] });
  });

  it('by the word of the server for ever is told and left', async () => {
    const { objects, gate, duty, want, warnings } = given();
    objects.put('a');
    objects.before = ({ method }) =>
      method === 'PUT' ? { kind: 'status', code: 422, reason: 'Invalid', message: 'too many', causes: [] } : undefined;
    want('a', 'one');
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 0, failed: 0 });
    expect(warnings).toEqual([
      { event: 'status.writeRejected', level: 'warn', object: 'HTTPRoute/shop/a', reason: 'too many' },
    ]);
  });

  it('for one object is no matter of the others', async () => {
    const { objects, gate, duty, want, messageOf } = given({ atOnce: 1 });
    objects.put('a');
    objects.put('b');
    objects.before = ({ name }) => (name === 'a' ? { ...notFound, code: 403, message: 'forbidden' } : undefined);
    want('a', 'one');
    want('b', 'one');
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 1, failed: 1 });
    expect(messageOf('b')).toBe('one');
  });

  it.each<ApiFailure>([
    { kind: 'unreachable', message: 'refused' },
    { kind: 'timeout', message: 'late' },
    { kind: 'status', code: 429, reason: 'TooManyRequests', message: 'slower', causes: [] },
  ])('for all ends the run: nobody asks for the rest', async (failure) => {
    const { objects, gate, duty, want } = given({ atOnce: 2 });
    objects.before = () => failure;
    for (let index = 0; index < 100; index++) want(`${index}`, 'one');
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 0, failed: 100 });
    expect(objects.asked).toHaveLength(2);
    expect(duty.isDue).toBe(false);
  });

  it('outside of the term is not even read', async () => {
    const { objects, gate, duty, want } = given();
    objects.put('a');
    want('a', 'one');
    gate.close({ giveUp: false });
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 0, failed: 1 });
    expect(objects.asked).toEqual([]);
  });
});

describe('a run', () => {
  it('has so many requests under way and no more, and takes what comes meanwhile, urgent first', async () => {
    const { objects, gate, duty, want, wanted } = given({ atOnce: 4 });
    const order: string[] = [];
    for (let index = 0; index < 50; index++) {
      objects.put(`${index}`);
      want(`${index}`, 'one', false);
    }
    objects.put('urgent');
    objects.before = async ({ method, name = '' }) => {
      if (method !== 'GET') return;
      order.push(name);
      if (order.length === 10) want('urgent', 'at once');
      // Of an object that was written in this run, another one is for the next.
      if (order.length === 20) want('0', 'two');
      await new Promise((resolve) => setImmediate(resolve));
    };
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 51, failed: 0 });
    expect(objects.most).toBe(4);
    expect(order.indexOf('urgent')).toBeLessThan(15);
    expect(order.filter((name) => name === '0')).toHaveLength(1);
    expect(duty.isDue).toBe(true);
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 1 });
    expect(wanted.size).toBe(51);
  });

  it('of a new leader is of all that is known', async () => {
    const { objects, gate, duty, wanted } = given();
    for (const name of ['a', 'b']) {
      objects.put(name);
      wanted.set(name, { message: 'one' });
    }
    expect(await duty.writeDue({ retry: false, anew: true }, gate)).toMatchObject({ written: 2 });
  });
});

describe('a duty that is held', () => {
  it('writes nothing while another one does, and all that became due once that is over', async () => {
    let isHeld = true;
    const { objects, gate, duty, clock, timers, want } = given({ isHeld: () => isHeld });
    objects.put('a');
    let told = 0;
    duty.watch(() => void told++);
    want('a', 'one');
    want('b', 'two');
    expect([told, duty.isDue]).toEqual([0, false]);
    expect(await duty.writeDue({ retry: true, anew: true }, gate)).toEqual({ written: 0, failed: 0, reason: '' });
    expect(objects.asked).toEqual([]);
    const look = () => {
      const [timer] = timers;
      clock.now = timer!.at;
      timer!.then();
    };
    look();
    expect(told).toBe(0);
    isHeld = false;
    look();
    expect([told, duty.isDue]).toEqual([1, true]);
    expect(await duty.writeDue(first, gate)).toMatchObject({ written: 1 });
    expect(timers).toEqual([]);
  });
});

describe('whoever watches', () => {
  it('is told when something becomes due, at once or after a rest', async () => {
    const { objects, gate, duty, clock, timers, want, messageOf } = given({ restMs: 10_000 });
    objects.put('a');
    let told = 0;
    const stop = duty.watch(() => {
      told++;
    });
    want('a', '1/3', false);
    expect(told).toBe(1);
    await duty.writeDue(first, gate);
    want('a', '2/3', false);
    expect([told, duty.isDue, timers.length]).toEqual([1, false, 1]);
    clock.now = timers[0]!.at;
    timers[0]!.then();
    expect([told, duty.isDue]).toEqual([2, true]);
    await duty.writeDue(first, gate);
    expect(messageOf('a')).toBe('2/3');
    want('a', 'rejected', true);
    expect([told, duty.isDue]).toEqual([3, true]);
    await duty.writeDue(first, gate);
    want('a', '3/3', false);
    stop();
    expect(timers).toEqual([]);
  });

  it('is told of what was due before', () => {
    const { duty, want } = given();
    want('a', 'one');
    let told = 0;
    duty.watch(() => {
      told++;
    });
    expect(told).toBe(1);
  });
});
