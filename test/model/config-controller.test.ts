/** What is read when files change (machines/discovery/config-controller.machine.ts). */
import { expect, it } from 'vitest';
import { createActor, fromCallback, fromPromise, SimulatedClock, sendTo, setup } from 'xstate';
import { configControllerMachine, type DirectoryReading } from '../../machines/discovery/config-controller.machine.ts';

const nothingNew: DirectoryReading = {
  outcome: 'read',
  version: '1',
  objects: 0,
  changes: [],
  problems: [],
  problemCount: 0,
  recovered: [],
};

/** A controller with a scripted watch and readings that end when the test says so. */
class World {
  readonly asked: string[][] = [];
  readonly clock = new SimulatedClock();
  #changed: (path: string) => void = () => {};
  #end: (outcome: DirectoryReading | Error) => void = () => {};
  readonly #root;

  constructor() {
    const controller = configControllerMachine.provide({
      actors: {
        watchDirectory: fromCallback(({ sendBack }) => {
          this.#changed = (path) => sendBack({ type: 'files.changed', path });
        }),
        readDirectory: fromPromise<DirectoryReading, { directories: string[]; paths: string[] }>(({ input }) => {
          this.asked.push(input.paths);
          return new Promise((resolve, reject) => {
            this.#end = (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome));
          });
        }),
      },
    });
    const root = setup({ actors: { controller } }).createMachine({
      invoke: { id: 'controller', src: 'controller', input: { coalesceMs: 20 } },
      entry: sendTo('controller', { type: 'configs.load', directories: ['/one', '/two'] }),
    });
    this.#root = createActor(root, { clock: this.clock }).start();
  }

  change(...paths: string[]): void {
    for (const path of paths) this.#changed(path);
  }

  async end(outcome: DirectoryReading | Error = nothingNew): Promise<void> {
    this.#end(outcome);
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  }

  get reading(): unknown {
    return this.#root.getSnapshot().children.controller?.getSnapshot().value;
  }
}

it('reads everything first, then what changed within the delay, each path once', async () => {
  const world = new World();
  await world.end();
  world.change('/one/a.yaml', '/one/a.yaml', '/two/b.yaml');
  world.clock.increment(19);
  expect(world.asked).toEqual([[]]);
  world.change('/one/c.yaml');
  world.clock.increment(1);
  expect(world.asked).toEqual([[], ['/one/a.yaml', '/two/b.yaml', '/one/c.yaml']]);
  expect(world.reading).toEqual({ watching: { reading: 'undisturbed' } });
});

it('reads what changed during a reading afterwards, and only that', async () => {
  const world = new World();
  world.change('/one/early.yaml');
  await world.end();
  world.clock.increment(20);
  expect(world.asked).toEqual([[], ['/one/early.yaml']]);
  world.change('/one/late.yaml', '/one/later.yaml');
  await world.end();
  world.clock.increment(20);
  expect(world.asked.at(-1)).toEqual(['/one/late.yaml', '/one/later.yaml']);
  await world.end();
  world.clock.increment(1_000);
  expect(world.asked).toHaveLength(3);
});

it('looks everywhere after a reading that broke off', async () => {
  const world = new World();
  await world.end();
  world.change('/one/a.yaml');
  world.clock.increment(20);
  await world.end(new Error('a bug'));
  world.change('/one/b.yaml');
  world.clock.increment(20);
  expect(world.asked.at(-1)).toEqual(['/one', '/two', '/one/b.yaml']);
});

it('reads again by itself after a reading that broke off, later each time', async () => {
  const world = new World();
  await world.end();
  world.change('/one/a.yaml');
  world.clock.increment(20);
  for (const wait of [1_000, 2_000, 4_000]) {
    await world.end(new Error('too many open files'));
    world.clock.increment(wait - 1);
    const before = world.asked.length;
    world.clock.increment(1);
    expect(world.asked.slice(before)).toEqual([['/one', '/two']]);
  }
  await world.end();
  expect(world.reading).toEqual({ watching: 'current' });
});

it('looks everywhere when too much changed to be told apart', async () => {
  const world = new World();
  await world.end();
  world.change(...Array.from({ length: 400 }, (_, index) => `/one/${index}.yaml`));
  world.clock.increment(20);
  expect(world.asked.at(-1)?.slice(0, 2)).toEqual(['/one', '/two']);
});
