/** Release of the memory of disconnected proxies: the chart, with scripted effects. */
import { expect, it } from 'vitest';
import { fromCallback } from 'xstate';
import {
  maxCollectionMs,
  memoryReleaseMachine,
  minReleasedProxies,
  settleMs,
} from '../../machines/discovery/xds/memory-release.machine.ts';
import type { GarbageCollected, MemoryReleased } from '../../machines/discovery/xds/memory-release-protocol.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import { stateName } from '../../src/runtime/trace/statechart.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const server = 'discovery/ads-server';

class World {
  static readonly instances: World[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  readonly released: number[] = [];
  failure: unknown;
  collected: ((event: GarbageCollected) => void) | undefined;
  finishRelease: ((event: MemoryReleased) => void) | undefined;
  readonly actor;

  constructor() {
    World.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    // The test is the ADS server.
    recorder.observe((record) =>
      this.records.push(record.kind === 'event' && record.from === 'outside' ? { ...record, from: server } : record),
    );
    const machine = memoryReleaseMachine.provide({
      actors: {
        collection: fromCallback(({ sendBack }) => {
          this.collected = sendBack;
          return () => {
            this.collected = undefined;
          };
        }),
        release: fromCallback(({ sendBack, input }) => {
          this.released.push(input.proxies);
          this.finishRelease = sendBack;
        }),
      },
    });
    this.actor = startRoot(machine, {
      ...{ id: 'memory-release', input: undefined, clock: this.clock as never, recorder },
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  connect(): void {
    this.actor.send({ type: 'proxies.connected' });
  }

  serve(maxServed: number): void {
    this.connect();
    this.actor.send({ type: 'proxies.disconnected', maxServed });
  }

  get state(): string {
    return stateName(this.actor.getSnapshot().value);
  }
}

eachWorldFollowsTheDiagrams(['memory-release'], [], { instances: World.instances, machine: memoryReleaseMachine });

it('memory release collects garbage and releases memory once after many proxies have disconnected', () => {
  const world = new World();
  world.serve(5_000);
  expect(world.state).toBe('settling');
  world.clock.advance(settleMs);
  expect(world.state).toBe('collecting');
  world.collected!({ type: 'garbage.collected' });
  expect([world.state, world.released]).toEqual(['releasing', [5_000]]);
  world.finishRelease!({ type: 'memory.released' });
  world.serve(1);
  world.clock.advance(settleMs * 10);
  expect([world.state, world.released]).toEqual(['idle', [5_000]]);
});

it('memory release does nothing after few proxies have disconnected', () => {
  const world = new World();
  world.serve(minReleasedProxies - 1);
  world.clock.advance(settleMs * 10);
  expect([world.state, world.collected, world.released]).toEqual(['idle', undefined, []]);
});

it.each(['settling', 'collecting', 'releasing'])('memory release stops in state %s when a proxy connects', (state) => {
  const world = new World();
  world.serve(5_000);
  if (state !== 'settling') world.clock.advance(settleMs);
  if (state === 'releasing') world.collected!({ type: 'garbage.collected' });
  expect(world.state).toBe(state);
  world.connect();
  world.clock.advance(settleMs * 10);
  expect([world.state, world.collected]).toEqual(['idle', undefined]);
});

it('memory release also occurs if a few proxies connect after many have disconnected', () => {
  const world = new World();
  world.serve(5_000);
  world.serve(1);
  world.clock.advance(settleMs);
  world.collected!({ type: 'garbage.collected' });
  expect(world.released).toEqual([5_000]);
});

it('memory release waits only for a limited time for a garbage collection', () => {
  const world = new World();
  world.serve(5_000);
  world.clock.advance(settleMs);
  world.clock.advance(maxCollectionMs);
  expect([world.state, world.released]).toEqual(['releasing', [5_000]]);
});
