/** Admission by load: the chart, with scripted measurements. */
import { expect, it } from 'vitest';
import { fromCallback } from 'xstate';
import {
  initialSlots,
  maxSlots,
  minSlots,
  streamAdmissionMachine,
} from '../../machines/discovery/xds/stream-admission.machine.ts';
import type { LoadMeasured } from '../../machines/discovery/xds/stream-admission-protocol.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import { stateName } from '../../src/runtime/trace/statechart.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

type Load = Omit<LoadMeasured, 'type'>;

const server = 'discovery/ads-server';
const idleServer: Load = { turnMs: 0.5, requests: 0, proxies: 0, isFull: true };
const overloadedLoads: readonly Partial<Load>[] = [{ turnMs: 20 }, { requests: 200 }, { proxies: 1_000 }];

class World {
  static readonly instances: World[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  readonly appliedSlots: number[] = [];
  failure: unknown;
  reportLoad: ((load: LoadMeasured) => void) | undefined;
  readonly actor;

  constructor() {
    World.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    // The test is the ADS server.
    recorder.observe((record) =>
      this.records.push(record.kind === 'event' && record.from === 'outside' ? { ...record, from: server } : record),
    );
    const machine = streamAdmissionMachine.provide({
      actors: {
        load: fromCallback(({ sendBack }) => {
          this.reportLoad = sendBack;
          return () => {
            this.reportLoad = undefined;
          };
        }),
      },
      actions: { applySlots: (_, { slots }) => this.appliedSlots.push(slots) },
    });
    this.actor = startRoot(machine, {
      ...{ id: 'stream-admission', input: undefined, clock: this.clock as never, recorder },
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  measure(load: Partial<Load>, times = 1): void {
    for (let i = 0; i < times; i++) this.reportLoad!({ type: 'load.measured', ...idleServer, ...load });
  }

  reportQueued(): void {
    this.actor.send({ type: 'clients.queued' });
  }

  get state(): string {
    return stateName(this.actor.getSnapshot().value);
  }

  get slots(): number {
    return this.actor.getSnapshot().context.slots;
  }
}

eachWorldFollowsTheDiagrams(['stream-admission'], [], { instances: World.instances, machine: streamAdmissionMachine });

it('stream admission measures nothing while no client waits', () => {
  const world = new World();
  expect(world.reportLoad).toBeUndefined();
  world.reportQueued();
  expect(world.reportLoad).toBeDefined();
  world.actor.send({ type: 'clients.admitted' });
  expect([world.state, world.reportLoad]).toEqual(['idle', undefined]);
});

it('stream admission adds slots while the server is not overloaded and all slots are in use', () => {
  const world = new World();
  world.reportQueued();
  world.measure({}, 100);
  expect([world.state, world.slots]).toEqual(['admitting.below capacity', maxSlots]);
  expect(world.appliedSlots).toEqual(world.appliedSlots.toSorted((a, b) => a - b));
});

it('stream admission adds no unneeded slots', () => {
  const world = new World();
  world.reportQueued();
  world.measure({ isFull: false }, 100);
  expect([world.state, world.slots]).toEqual(['admitting.below capacity', initialSlots]);
});

it.each(overloadedLoads)('stream admission removes slots, but not the last one, under a load of %o', (load) => {
  const world = new World();
  world.reportQueued();
  world.measure({}, 10);
  const slotsBefore = world.slots;
  world.measure(load);
  expect(world.state).toBe('admitting.overloaded');
  expect(world.slots).toBeLessThan(slotsBefore);
  world.measure(load, 100);
  expect([world.slots, world.appliedSlots.at(-1)]).toEqual([minSlots, minSlots]);
});

it('stream admission keeps its slots while the server is at capacity', () => {
  const world = new World();
  world.reportQueued();
  world.measure({ turnMs: 10 }, 10);
  expect([world.state, world.slots]).toEqual(['admitting.at capacity', initialSlots]);
});

it.each([{ proxies: 1_000 }, {}])(
  'stream admission restores the initial slots when no client waits after a load of %o',
  (load) => {
    const world = new World();
    world.reportQueued();
    world.measure(load, 100);
    world.actor.send({ type: 'clients.admitted' });
    expect([world.slots, world.appliedSlots.at(-1)]).toEqual([initialSlots, initialSlots]);
  },
);

it('stream admission finds a number of slots with which the server is neither idle nor overloaded, whatever a client costs', () => {
  for (const costMs of [0.05, 0.2, 1, 3]) {
    const world = new World();
    world.reportQueued();
    // An event loop iteration runs a step for half of the clients in progress.
    for (let i = 0; i < 200; i++) world.measure({ turnMs: (world.slots * costMs) / 2 });
    const turnMs = (world.slots * costMs) / 2;
    if (world.slots > minSlots) expect(turnMs, `${costMs}`).toBeLessThan(14);
    expect(turnMs, `${costMs}`).toBeGreaterThan(world.slots < maxSlots ? 5 : 0);
  }
});
