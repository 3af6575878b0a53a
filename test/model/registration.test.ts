/** Workloads that register themselves (machines/discovery/registration/), with a scripted API server, under a virtual clock. */
import { describe, expect, it } from 'vitest';
import { type Actor, fromCallback, fromPromise } from 'xstate';
import {
  type EntryOrder,
  type EntryResult,
  registrationMachine,
} from '../../machines/discovery/registration/registration.machine.ts';
import type { WorkloadReport } from '../../machines/discovery/registration/registration-protocol.ts';
import { registrationsMachine } from '../../machines/discovery/registration/registrations.machine.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const writtenResult: EntryResult = { outcome: 'written' };
const conflictResult: EntryResult = { outcome: 'failed', reason: 'the object has been modified' };
const entry = 'shop/vm-10.0.0.1';

class RegistrationWorld {
  static readonly instances: RegistrationWorld[] = [];
  readonly records: TraceRecord[] = [];
  readonly clock = new VirtualClock();
  /** Orders with their times, such as `4000 register`. */
  readonly orders: string[] = [];
  /** The results of the next orders: `held` not before {@link result}; an error: the effect has a bug. Default: it is written. */
  readonly results: (EntryResult | Error | 'held')[] = [];
  readonly turnedAway: string[] = [];
  readonly removedWorkloads: string[] = [];
  failure: unknown;
  /** Maximum number of simultaneous writes. */
  maxSimultaneous = 0;
  readonly actor: Actor<typeof registrationsMachine>;
  #underWay = 0;
  #respond: (complete: EntryResult) => void = () => {};
  #report: (report: WorkloadReport) => void = () => {};

  constructor() {
    RegistrationWorld.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    recorder.observe((record) => this.records.push(record));
    const machine = registrationsMachine.provide({
      actors: {
        watchWorkloads: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
          this.#report = sendBack;
        }),
        registration: registrationMachine.provide({
          actors: { writeEntry: fromPromise<EntryResult, EntryOrder>(({ input }) => this.#write(input)) },
        }),
      },
      actions: {
        releaseWorkload: (_, { entry: of }) => void this.removedWorkloads.push(of),
        closeConnections: (_, { reason }) => void this.turnedAway.push(reason),
      },
    });
    this.actor = startRoot(machine, {
      ...{ id: 'registrations', input: { graceMs: 10_000 }, clock: this.clock as never, recorder },
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  async #write(order: EntryOrder): Promise<EntryResult> {
    const health =
      order.operation === 'report health' ? ` ${order.health.healthy ? 'healthy' : order.health.message}` : '';
    this.orders.push(`${this.clock.now() - startMs} ${order.operation}${health}`);
    this.#underWay++;
    this.maxSimultaneous = Math.max(this.maxSimultaneous, this.#underWay);
    try {
      const result = this.results.shift() ?? writtenResult;
      if (result instanceof Error) throw result;
      if (result !== 'held') return result;
      return await new Promise<EntryResult>((resolve) => {
        this.#respond = resolve;
      });
    } finally {
      this.#underWay--;
    }
  }

  async result(result: EntryResult): Promise<void> {
    this.#respond(result);
    await this.settle();
  }

  async connect(): Promise<void> {
    this.#report({ type: 'workload.connected', entry });
    await this.settle();
  }

  async disconnect(): Promise<void> {
    this.#report({ type: 'workload.disconnected', entry });
    await this.settle();
  }

  async evictWorkload(): Promise<void> {
    this.#report({ type: 'workload.evicted', entry });
    await this.settle();
  }

  async health(message?: string): Promise<void> {
    this.#report({ type: 'workload-health.reported', entry, healthy: message === undefined, message: message ?? '' });
    await this.settle();
  }

  async loseEntry(): Promise<void> {
    this.#report({ type: 'entry.lost', entry });
    await this.settle();
  }

  async settle(): Promise<void> {
    for (let tick = 0; tick < 20; tick++) await Promise.resolve();
  }

  async passTime(ms: number): Promise<void> {
    const untilMs = this.clock.now() + ms;
    await this.settle();
    for (
      let next = this.clock.pendingDelays()[0];
      next !== undefined && this.clock.now() + next <= untilMs;
      next = this.clock.pendingDelays()[0]
    ) {
      this.clock.fireNext();
      await this.settle();
    }
    this.clock.advance(untilMs - this.clock.now());
    await this.settle();
  }

  get workloads(): number {
    return this.actor.getSnapshot().context.workloads.length;
  }
}

const startMs = new VirtualClock().now();

eachWorldFollowsTheDiagrams(['registrations', 'registration'], ['writing'], {
  instances: RegistrationWorld.instances,
  machine: registrationsMachine,
});

async function createConnectedWorld(): Promise<RegistrationWorld> {
  const world = new RegistrationWorld();
  await world.connect();
  return world;
}

describe('a workload', () => {
  it('is registered when it connects, and its entry is deleted a grace period after it disconnects', async () => {
    const world = await createConnectedWorld();
    await world.passTime(60_000);
    expect(world.orders).toEqual(['0 register']);
    await world.disconnect();
    await world.passTime(9_999);
    expect(world.orders.slice(1)).toEqual(['61000 note disconnect']);
    await world.passTime(1);
    expect(world.orders.slice(2)).toEqual(['70000 delete']);
    expect([world.removedWorkloads, world.workloads]).toEqual([[entry], 0]);
  });

  it('causes one write even if it reconnects 1,000 times per second', async () => {
    const world = await createConnectedWorld();
    for (let i = 0; i < 300; i++) {
      await world.disconnect();
      await world.connect();
      world.clock.advance(1);
    }
    await world.passTime(10_000);
    expect(world.orders).toEqual(['0 register']);
  });

  it('causes two writes for each longer disconnection', async () => {
    const world = await createConnectedWorld();
    for (let i = 0; i < 5; i++) {
      await world.disconnect();
      await world.passTime(2_000);
      await world.connect();
      await world.passTime(1_000);
    }
    expect(world.orders.length).toBe(1 + 2 * 5);
  });

  it('keeps its entry if it reconnects within the grace period', async () => {
    const world = await createConnectedWorld();
    await world.disconnect();
    await world.passTime(9_999);
    await world.connect();
    await world.passTime(60_000);
    expect(world.orders).toEqual(['0 register', '1000 note disconnect', '9999 register']);
    expect(world.removedWorkloads).toEqual([]);
  });

  it('gets another entry if it reconnects while its entry is being deleted', async () => {
    const world = await createConnectedWorld();
    await world.disconnect();
    world.results.push(writtenResult, 'held');
    await world.passTime(10_000);
    await world.connect();
    expect(world.orders.at(-1)).toBe('10000 delete');
    await world.result(writtenResult);
    expect(world.orders.at(-1)).toBe('10000 register');
    expect(world.removedWorkloads).toEqual([]);
  });

  it('is removed after its registration if it disconnects while it is being registered', async () => {
    const world = new RegistrationWorld();
    world.results.push('held');
    await world.connect();
    await world.disconnect();
    await world.passTime(4_000);
    expect(world.orders).toEqual(['0 register']);
    await world.result(writtenResult);
    await world.passTime(20_000);
    expect(world.orders.slice(1)).toEqual(['5000 note disconnect', '14000 delete']);
    expect(world.maxSimultaneous).toBe(1);
  });

  it('has its disconnect recorded even if the creation of its entry got no response', async () => {
    const world = new RegistrationWorld();
    world.results.push({ outcome: 'failed', reason: 'no answer in 5 s' });
    await world.connect();
    await world.disconnect();
    await world.passTime(20_000);
    expect(world.orders.map((text) => text.replace(/^\d+ /, ''))).toEqual(['register', 'note disconnect', 'delete']);
  });

  it('is left to another replica if it is connected there', async () => {
    const world = await createConnectedWorld();
    world.results.push({ outcome: 'foreign' });
    await world.disconnect();
    await world.passTime(60_000);
    expect(world.orders).toEqual(['0 register', '1000 note disconnect']);
    expect(world.removedWorkloads).toEqual([entry]);
  });

  it('is left to another replica if it connects there during its grace period', async () => {
    const world = await createConnectedWorld();
    world.results.push(writtenResult, { outcome: 'foreign' });
    await world.disconnect();
    await world.passTime(60_000);
    expect(world.orders).toEqual(['0 register', '1000 note disconnect', '10000 delete']);
    expect(world.removedWorkloads).toEqual([entry]);
  });

  it('gets a new entry, at most once per second, if another client deletes its entry', async () => {
    const world = await createConnectedWorld();
    for (let i = 0; i < 100; i++) {
      await world.loseEntry();
      await world.passTime(50);
    }
    expect(world.orders.length).toBe(1 + 5);
  });
});

describe('a workload whose slot is given to another namespace', () => {
  it.each<[string, (world: RegistrationWorld) => Promise<void>]>([
    ['while the workload is registered', async () => {}],
    ['after a write of the health', (world) => world.health('down')],
    ['while the workload may reconnect', (world) => world.disconnect()],
  ])('loses its entry without a grace period %s', async (_, prepare) => {
    const world = await createConnectedWorld();
    await world.passTime(5_000);
    await prepare(world);
    await world.evictWorkload();
    await world.passTime(0);
    expect(world.orders.slice(-2)).toEqual(['5000 note disconnect', '5000 delete']);
    expect([world.removedWorkloads, world.workloads]).toEqual([[entry], 0]);
  });

  it('loses its entry immediately if it is in its grace period', async () => {
    const world = await createConnectedWorld();
    await world.disconnect();
    await world.passTime(3_000);
    await world.evictWorkload();
    expect(world.orders).toEqual(['0 register', '1000 note disconnect', '3000 delete']);
    expect(world.removedWorkloads).toEqual([entry]);
  });

  it.each(['register', 'note disconnect'])('loses its entry after the pending operation "%s"', async (operation) => {
    const world = new RegistrationWorld();
    world.results.push(...(operation === 'register' ? ['held' as const] : [writtenResult, 'held' as const]));
    await world.connect();
    if (operation === 'note disconnect') await world.disconnect();
    await world.passTime(2_000);
    await world.evictWorkload();
    await world.result(writtenResult);
    expect(world.orders.at(-1)).toBe('2000 delete');
    expect(world.maxSimultaneous).toBe(1);
  });

  it('is registered again if it gets a slot while its entry is being deleted', async () => {
    const world = await createConnectedWorld();
    world.results.push(writtenResult, 'held');
    await world.evictWorkload();
    await world.connect();
    await world.result(writtenResult);
    await world.passTime(60_000);
    expect(world.orders.map((text) => text.replace(/^\d+ /, ''))).toEqual([
      ...['register', 'note disconnect', 'delete', 'register'],
    ]);
    expect(world.removedWorkloads).toEqual([]);
  });
});

it.each(['register', 'report health'])(
  'an entry is recreated if it is deleted during the operation "%s"',
  async (operation) => {
    const world = new RegistrationWorld();
    world.results.push(...(operation === 'register' ? ['held' as const] : [writtenResult, 'held' as const]));
    await world.connect();
    await world.health('down');
    await world.loseEntry();
    await world.result(writtenResult);
    await world.passTime(5_000);
    const operations = world.orders.map((text) => text.replace(/^\d+ /, ''));
    expect(operations.filter((text) => text === 'register').length).toBe(2);
    expect(operations.at(-1)).toBe('report health down');
  },
);

describe('a rejected write', () => {
  it('is retried with increasing delays', async () => {
    const world = new RegistrationWorld();
    world.results.push(
      conflictResult,
      conflictResult,
      conflictResult,
      new Error('bug'),
      conflictResult,
      conflictResult,
      conflictResult,
    );
    await world.connect();
    await world.passTime(200_000);
    const times = world.orders.map((text) => Number(text.split(' ')[0]));
    expect(times).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000]);
  });

  it('is not repeated after the workload reconnects, but replaced by the write that is due', async () => {
    const world = await createConnectedWorld();
    world.results.push(conflictResult);
    await world.disconnect();
    await world.passTime(1_500);
    await world.connect();
    await world.passTime(60_000);
    expect(world.orders).toEqual(['0 register', '1000 note disconnect', '2000 register']);
  });

  it('is repeated if it records a disconnect, and is followed by the deletion', async () => {
    const world = await createConnectedWorld();
    await world.disconnect();
    await world.passTime(2_000);
    await world.connect();
    world.results.push(conflictResult);
    await world.disconnect();
    await world.passTime(30_000);
    expect(world.orders.slice(2).map((text) => text.replace(/^\d+ /, ''))).toEqual([
      ...['register', 'note disconnect', 'note disconnect', 'delete'],
    ]);
  });
});

describe('workload health', () => {
  it('is written when it is reported and when it changes', async () => {
    const world = await createConnectedWorld();
    await world.health('connection refused');
    await world.passTime(5_000);
    await world.health();
    await world.passTime(5_000);
    await world.health();
    await world.passTime(5_000);
    expect(world.orders.slice(1)).toEqual(['0 report health connection refused', '5000 report health healthy']);
  });

  it('is written once per second if it changes continuously, with the final state at the end', async () => {
    const world = await createConnectedWorld();
    for (let i = 0; i < 300; i++) {
      await world.health(i % 2 === 0 ? 'down' : undefined);
      world.clock.advance(10);
    }
    await world.passTime(5_000);
    expect(world.orders.length).toBeLessThanOrEqual(1 + 5);
    expect(world.orders.at(-1)).toContain('healthy');
  });

  it('is written after the entry if it is reported before the entry exists', async () => {
    const world = new RegistrationWorld();
    world.results.push('held');
    await world.connect();
    await world.health('down');
    await world.result(writtenResult);
    expect(world.orders).toEqual(['0 register', '0 report health down']);
  });

  it('is written later if a write fails, and again into a recreated entry', async () => {
    const world = await createConnectedWorld();
    world.results.push(conflictResult);
    await world.health('down');
    await world.passTime(1_000);
    expect(world.orders.slice(1)).toEqual(['0 report health down', '1000 report health down']);
    await world.passTime(5_000);
    await world.loseEntry();
    await world.passTime(1_000);
    expect(world.orders.slice(3)).toEqual(['7000 register', '7000 report health down']);
  });

  it('is not overwritten if the workload is connected to another replica', async () => {
    const world = await createConnectedWorld();
    world.results.push({ outcome: 'foreign' });
    await world.health('down');
    await world.passTime(60_000);
    expect(world.orders.length).toBe(2);
  });
});

describe('a workload that the API server rejects', () => {
  const rejectedResult: EntryResult = { outcome: 'rejected', reason: 'the entry is of another group' };

  it('is disconnected, as are its next connections with the same data for some time, without a request', async () => {
    const world = new RegistrationWorld();
    world.results.push(rejectedResult);
    await world.connect();
    await world.disconnect();
    await world.passTime(1_000);
    await world.connect();
    expect(world.turnedAway).toEqual([rejectedResult.reason, rejectedResult.reason]);
    expect(world.orders).toEqual(['0 register']);
    await world.disconnect();
    await world.passTime(4_000);
    expect(world.removedWorkloads).toEqual([entry]);
    await world.connect();
    expect(world.orders).toEqual(['0 register', '5000 register']);
  });

  it('keeps its connections if it was registered before, and its registration is retried', async () => {
    const world = await createConnectedWorld();
    world.results.push(rejectedResult);
    await world.loseEntry();
    await world.passTime(30_000);
    expect(world.turnedAway).toEqual([]);
    expect(world.orders).toEqual(['0 register', '1000 register', '3000 register']);
  });
});
