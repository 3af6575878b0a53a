/** A source of configuration over xDS in virtual time: connection, readiness, delayed deletions. */
import { expect, it } from 'vitest';
import { fromCallback, fromPromise } from 'xstate';
import {
  type RestoredState,
  type XdsSourceInput,
  xdsSourceMachine,
} from '../../machines/discovery/config/xds-source.machine.ts';
import type { XdsProtocol, XdsSourceOrder } from '../../machines/discovery/config/xds-source-protocol.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

type Report = Parameters<Parameters<Parameters<typeof fromCallback>[0]>[0]['sendBack']>[0];

class Source {
  static readonly instances: Source[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  readonly streams: XdsProtocol[] = [];
  readonly orders: XdsSourceOrder[] = [];
  isReadable = false;
  failure: unknown;
  #report: (event: Report) => void = () => {};
  readonly #actor;
  #nonce = 0;

  constructor(input: Partial<XdsSourceInput> = {}, restored: number | Error = 0) {
    Source.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    recorder.observe((record) => this.records.push(record));
    const machine = xdsSourceMachine.provide({
      actors: {
        restoreState: fromPromise<RestoredState, undefined>(async () => {
          if (restored instanceof Error) throw restored;
          return { objects: restored };
        }),
        stream: fromCallback<XdsSourceOrder, { protocol: XdsProtocol }>(
          ({ input: { protocol }, sendBack, receive }) => {
            this.streams.push(protocol);
            this.#report = sendBack;
            receive((order) => void this.orders.push(order));
          },
        ),
      },
      actions: {
        allowReading: () => {
          this.isReadable = true;
        },
      },
    });
    const defaults: XdsSourceInput = {
      ...{ address: 'xds://config:15010', kinds: ['Gateway', 'ServiceEntry'], protocol: 'auto' },
      ...{ optionalMs: null, pauseMs: 300_000 },
    };
    this.#actor = startRoot(machine, {
      ...{ id: 'xds-source-1', input: { ...defaults, ...input }, clock: this.clock as never, recorder },
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  async passTime(ms = 0): Promise<void> {
    for (let tick = 0; tick < 10; tick++) await Promise.resolve();
    this.clock.advance(ms);
  }

  async openStream(): Promise<void> {
    await this.passTime();
    this.#report({ type: 'source-stream.opened' });
  }

  respond(kind: string, { known = 0, removed = 0, rejected = 0 } = {}): void {
    this.#report({ type: 'source-response.received', kind, nonce: `${++this.#nonce}`, known, removed, rejected });
  }

  endStream(code = 'UNAVAILABLE', retryAfterMs = 0): void {
    this.#report({ type: 'source-stream.ended', code, reason: 'gone', retryAfterMs, chance: 1 });
  }

  confirmDeletions(): void {
    this.#actor.send({ type: 'source-deletions.confirmed' });
  }

  get pausedKinds(): string[] {
    return this.#actor.getSnapshot().context.paused.map(({ kind, objects }) => `${kind} ${objects}`);
  }

  get lastOrder(): XdsSourceOrder | undefined {
    return this.orders.at(-1);
  }
}

eachWorldFollowsTheDiagrams(['xds-source'], ['restoring'], { instances: Source.instances, machine: xdsSourceMachine });

const openSyncedSource = async (input: Partial<XdsSourceInput> = {}): Promise<Source> => {
  const source = new Source(input);
  await source.openStream();
  source.respond('Gateway');
  source.respond('ServiceEntry');
  return source;
};

it('an xDS source is ready when the server has sent each kind once', async () => {
  const source = new Source();
  await source.openStream();
  source.respond('Gateway');
  expect(source.isReadable).toBe(false);
  source.respond('ServiceEntry');
  expect(source.isReadable).toBe(true);
  expect(source.orders).toEqual([
    { type: 'source-response.apply', kind: 'Gateway', nonce: '1', deletions: 'apply' },
    { type: 'source-response.apply', kind: 'ServiceEntry', nonce: '2', deletions: 'apply' },
  ]);
});

it.each<[string, Partial<XdsSourceInput>, number | Error, number | undefined]>([
  ['forever without a saved state', {}, 0, undefined],
  ['forever if the saved state is damaged', {}, new Error('damaged'), undefined],
  ['for 10 s with a saved state', {}, 5, 10_000],
  ['for the time in its address', { optionalMs: 30_000 }, 0, 30_000],
  ['for the time in its address, with a saved state', { optionalMs: 1_000 }, 5, 1_000],
])('an xDS source delays the start %s while the server is unreachable', async (_, input, restored, ms) => {
  const source = new Source(input, restored);
  await source.passTime();
  source.endStream();
  await source.passTime((ms ?? 3_600_000) - 1);
  expect(source.isReadable).toBe(false);
  await source.passTime(1);
  expect(source.isReadable).toBe(ms !== undefined);
});

it.each(['UNIMPLEMENTED', 'UNKNOWN', 'INVALID_ARGUMENT'])(
  'an xDS source immediately switches to state of the world after %s to a delta stream',
  async (code) => {
    const source = new Source();
    await source.openStream();
    source.endStream(code);
    expect(source.streams).toEqual(['delta', 'sotw']);
    source.endStream(code);
    expect(source.streams).toEqual(['delta', 'sotw']);
  },
);

it('an xDS source switches to state of the world if a delta stream gets no response within 5 s', async () => {
  const source = new Source();
  await source.openStream();
  await source.passTime(5_000);
  expect(source.streams).toEqual(['delta', 'sotw']);
  await source.openStream();
  await source.passTime(60_000);
  expect(source.streams).toEqual(['delta', 'sotw']);
});

it.each<[string, XdsProtocol]>([
  ['UNAUTHENTICATED', 'delta'],
  ['UNAVAILABLE', 'delta'],
])('an xDS source keeps using delta after %s', async (code, protocol) => {
  const source = new Source();
  await source.openStream();
  source.endStream(code);
  await source.passTime(30_000);
  expect(source.streams).toEqual(['delta', protocol]);
});

it('an xDS source retries with increasing delays, which a response resets', async () => {
  const source = new Source({ protocol: 'sotw' });
  await source.passTime();
  for (const ms of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    const streamsBefore = source.streams.length;
    await source.openStream();
    source.endStream();
    await source.passTime(ms - 1);
    expect(source.streams).toHaveLength(streamsBefore);
    await source.passTime(1);
    expect(source.streams).toHaveLength(streamsBefore + 1);
  }
  await source.openStream();
  source.respond('Gateway');
  source.endStream();
  await source.passTime(1_000);
  expect(source.streams).toHaveLength(9);
});

it('an xDS source does not call a server before the time that the server specifies', async () => {
  const source = new Source({ protocol: 'sotw' });
  await source.passTime();
  source.endStream('UNAVAILABLE', 120_000);
  await source.passTime(119_999);
  expect(source.streams).toHaveLength(1);
  await source.passTime(1);
  expect(source.streams).toHaveLength(2);
});

it('an xDS source requests other API versions of the kinds that the server has not sent', async () => {
  const source = new Source();
  await source.openStream();
  source.respond('Gateway');
  await source.passTime(5_000);
  expect(source.lastOrder).toEqual({ type: 'source-versions.request', kinds: ['ServiceEntry'] });
});

it.each<[number, number, 'apply' | 'pause']>([
  [1, 1, 'pause'],
  [5, 5, 'pause'],
  [5, 4, 'apply'],
  [100, 19, 'apply'],
  [39, 20, 'pause'],
  [40, 20, 'apply'],
  [41, 21, 'pause'],
  [0, 0, 'apply'],
])(
  'an xDS source handles $1 deletions among $0 objects on a young stream with the action "$2"',
  async (knownCount, removedCount, deletions) => {
    const source = await openSyncedSource();
    source.respond('ServiceEntry', { known: knownCount, removed: removedCount });
    expect(source.lastOrder).toMatchObject({ type: 'source-response.apply', deletions });
  },
);

it('an xDS source immediately applies any deletion on a stream that is 60 s old', async () => {
  const source = await openSyncedSource();
  await source.passTime(59_999);
  source.respond('ServiceEntry', { known: 9, removed: 9 });
  expect(source.lastOrder).toMatchObject({ deletions: 'pause' });
  const other = await openSyncedSource();
  await other.passTime(60_000);
  other.respond('ServiceEntry', { known: 9, removed: 9 });
  expect(other.lastOrder).toMatchObject({ deletions: 'apply' });
});

it('an xDS source pauses deletions if a first response deletes all objects of a kind, however late it is received', async () => {
  const source = await openSyncedSource();
  source.endStream();
  await source.passTime(1_000);
  await source.openStream();
  source.respond('Gateway', { known: 3 });
  await source.passTime(120_000);
  source.respond('ServiceEntry', { known: 9, removed: 9 });
  expect(source.lastOrder).toMatchObject({ kind: 'ServiceEntry', deletions: 'pause' });
});

it('an xDS source keeps deletions of a kind paused while the server fills its caches, even on an older stream', async () => {
  const source = await openSyncedSource();
  source.respond('ServiceEntry', { known: 100, removed: 100 });
  await source.passTime(70_000);
  source.respond('ServiceEntry', { known: 100, removed: 3 });
  expect(source.lastOrder).toMatchObject({ deletions: 'pause' });
  expect(source.pausedKinds).toEqual(['ServiceEntry 3']);
  source.respond('ServiceEntry', { known: 100, removed: 0 });
  expect(source.pausedKinds).toEqual([]);
  source.respond('ServiceEntry', { known: 100, removed: 100 });
  expect(source.lastOrder).toMatchObject({ deletions: 'apply' });
});

it('an xDS source applies paused deletions after 5 min on the same stream, measured from the last kind', async () => {
  const source = await openSyncedSource();
  source.respond('ServiceEntry', { known: 2, removed: 2 });
  await source.passTime(50_000);
  source.respond('Gateway', { known: 1, removed: 1 });
  await source.passTime(299_999);
  expect(source.lastOrder).toMatchObject({ type: 'source-response.apply', kind: 'Gateway', deletions: 'pause' });
  await source.passTime(1);
  expect(source.lastOrder).toEqual({ type: 'source-deletions.apply', kinds: ['ServiceEntry', 'Gateway'] });
  expect(source.pausedKinds).toEqual([]);
});

it('an xDS source immediately applies paused deletions on request of an operator', async () => {
  const source = await openSyncedSource();
  source.confirmDeletions();
  source.respond('ServiceEntry', { known: 2, removed: 2 });
  source.confirmDeletions();
  expect(source.lastOrder).toEqual({ type: 'source-deletions.apply', kinds: ['ServiceEntry'] });
});

it('an xDS source restarts the 5 min after each restart of the server, and does not count outages', async () => {
  const source = await openSyncedSource();
  source.respond('ServiceEntry', { known: 2, removed: 2 });
  await source.passTime(200_000);
  source.endStream();
  await source.passTime(600_000);
  expect(source.orders.some(({ type }) => type === 'source-deletions.apply')).toBe(false);
  source.confirmDeletions();
  expect(source.orders.some(({ type }) => type === 'source-deletions.apply')).toBe(false);
  await source.openStream();
  source.respond('ServiceEntry', { known: 2, removed: 2 });
  await source.passTime(299_999);
  expect(source.orders.some(({ type }) => type === 'source-deletions.apply')).toBe(false);
  await source.passTime(1);
  expect(source.lastOrder).toEqual({ type: 'source-deletions.apply', kinds: ['ServiceEntry'] });
});
