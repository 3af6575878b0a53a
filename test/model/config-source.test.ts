/** When and where a source of configuration is read (machines/discovery/config/config-source.machine.ts). */
import { expect, it } from 'vitest';
import { type AnyEventObject, createActor, fromCallback, fromPromise, SimulatedClock, setup } from 'xstate';
import { configSourceMachine, type SourceSummary } from '../../machines/discovery/config/config-source.machine.ts';

const changedSummary: SourceSummary = { outcome: 'read', objects: 3, problems: 0, changed: true };
const nothingNew: SourceSummary = { ...changedSummary, changed: false };

/** A source with a scripted watch, and reads that the test completes. */
class World {
  readonly readPlaces: string[][] = [];
  readonly events: AnyEventObject[] = [];
  readonly clock = new SimulatedClock();
  #reportChange: (place: string, isBurst?: true) => void = () => {};
  #endRead: (outcome: SourceSummary | Error) => void = () => {};
  readonly #root;

  constructor() {
    const source = configSourceMachine.provide({
      actors: {
        watchSource: fromCallback(({ sendBack }) => {
          this.#reportChange = (place, isBurst) =>
            sendBack({ type: 'source.changed', place, ...(isBurst && { isBurst }) });
        }),
        readSource: fromPromise<SourceSummary, { source: string; places: string[] }>(({ input }) => {
          this.readPlaces.push(input.places);
          return new Promise((resolve, reject) => {
            this.#endRead = (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome));
          });
        }),
      },
    });
    const record = ({ event }: { event: AnyEventObject }): void => void this.events.push(event);
    const root = setup({ actors: { source } }).createMachine({
      invoke: { id: 'source', src: 'source', input: { source: 'fs:///mesh', quietMs: 5, coalesceMs: 20 } },
      on: {
        'source.read': { actions: record },
        'source.missing': { actions: record },
        'source.failed': { actions: record },
      },
    });
    this.#root = createActor(root, { clock: this.clock }).start();
  }

  reportChanges(...places: string[]): void {
    for (const place of places) this.#reportChange(place);
  }

  burst(...places: string[]): void {
    for (const place of places) this.#reportChange(place, true);
  }

  get reports(): string[] {
    return this.events.map(({ type }) => type);
  }

  async finishRead(outcome: SourceSummary | Error = nothingNew): Promise<void> {
    this.#endRead(outcome);
    for (let tick = 0; tick < 5; tick++) await Promise.resolve();
  }

  get state(): unknown {
    return this.#root.getSnapshot().children.source?.getSnapshot().value;
  }
}

it('config-source reads everything first, then each changed path once after a quiet time', async () => {
  const world = new World();
  await world.finishRead();
  world.reportChanges('a.yaml', 'a.yaml', 'b.yaml');
  world.clock.increment(4);
  world.reportChanges('c.yaml');
  world.clock.increment(4);
  expect(world.readPlaces).toEqual([[]]);
  world.clock.increment(1);
  expect(world.readPlaces).toEqual([[], ['a.yaml', 'b.yaml', 'c.yaml']]);
  expect(world.state).toEqual({ reading: 'current' });
});

it('config-source reads 20 ms after the first event if events continue', async () => {
  const world = new World();
  await world.finishRead();
  for (let ms = 0; ms < 20; ms++) {
    expect(world.readPlaces).toEqual([[]]);
    world.reportChanges('a.yaml');
    world.clock.increment(1);
  }
  expect(world.readPlaces).toEqual([[], ['a.yaml']]);
});

it('config-source reads again only the paths that changed during a read', async () => {
  const world = new World();
  world.reportChanges('early.yaml');
  await world.finishRead(changedSummary);
  world.clock.increment(20);
  expect(world.readPlaces).toEqual([[], ['early.yaml']]);
  world.reportChanges('late.yaml', 'later.yaml');
  await world.finishRead();
  world.clock.increment(20);
  expect(world.readPlaces.at(-1)).toEqual(['late.yaml', 'later.yaml']);
  await world.finishRead();
  world.clock.increment(1_000);
  expect(world.readPlaces).toHaveLength(3);
});

it('config-source reads everything after an interrupted read, with increasing delays', async () => {
  const world = new World();
  await world.finishRead(changedSummary);
  world.reportChanges('a.yaml');
  world.clock.increment(20);
  for (const wait of [1_000, 2_000, 4_000]) {
    await world.finishRead(new Error('too many open files'));
    world.clock.increment(wait - 1);
    const readsBefore = world.readPlaces.length;
    world.clock.increment(1);
    expect(world.readPlaces.slice(readsBefore)).toEqual([[]]);
  }
  await world.finishRead(new Error('too many open files'));
  world.reportChanges('b.yaml');
  world.clock.increment(20);
  expect(world.readPlaces.at(-1)).toEqual([]);
  await world.finishRead();
  expect(world.state).toBe('current');
  expect(world.events.filter(({ type }) => type === 'source.failed')).toHaveLength(4);
});

it('config-source reads again after it reports a failed read', async () => {
  const world = new World();
  await world.finishRead({ outcome: 'failed', reason: 'connection refused' });
  expect(world.events).toEqual([{ type: 'source.failed', source: 'fs:///mesh', reason: 'connection refused' }]);
  world.clock.increment(1_000);
  expect(world.readPlaces).toEqual([[], []]);
});

it('config-source reads everything again if the first read was interrupted', async () => {
  const world = new World();
  await world.finishRead(new Error('connection refused'));
  expect(world.events).toEqual([{ type: 'source.failed', source: 'fs:///mesh', reason: 'connection refused' }]);
  world.clock.increment(1_000);
  await world.finishRead(changedSummary);
  expect(world.events.at(-1)).toEqual({ type: 'source.read', source: 'fs:///mesh', objects: 3, problems: 0 });
});

it('config-source reads everything if too many paths changed', async () => {
  const world = new World();
  await world.finishRead();
  world.reportChanges(...Array.from({ length: 400 }, (_, index) => `${index}.yaml`));
  world.clock.increment(20);
  expect(world.readPlaces.at(-1)).toEqual([]);
});

it('config-source sends no event after a read without changes', async () => {
  const world = new World();
  await world.finishRead(changedSummary);
  world.reportChanges('a.yaml');
  world.clock.increment(20);
  await world.finishRead();
  expect(world.events).toHaveLength(1);
});

it('config-source reports that its directory is missing, and reads again when the directory appears', async () => {
  const world = new World();
  await world.finishRead({ outcome: 'missing', reason: 'there is no directory' });
  expect(world.events).toEqual([{ type: 'source.missing', source: 'fs:///mesh', reason: 'there is no directory' }]);
  world.reportChanges('');
  world.clock.increment(20);
  await world.finishRead(changedSummary);
  expect([world.state, world.events.at(-1)?.type]).toEqual(['current', 'source.read']);
});

it('config-source reads once, 200 ms after the last event of a burst', async () => {
  const world = new World();
  await world.finishRead(changedSummary);
  world.burst('a.yaml', 'b.yaml');
  for (let ms = 0; ms < 1_000; ms += 100) {
    world.clock.increment(100);
    world.reportChanges(`${ms}.yaml`);
  }
  world.clock.increment(199);
  expect(world.readPlaces).toHaveLength(1);
  world.clock.increment(1);
  expect(world.readPlaces).toHaveLength(2);
  await world.finishRead(changedSummary);
  expect(world.state).toBe('current');
  expect(world.reports).toEqual(['source.read', 'source.read']);
});

it('config-source waits for the end of a burst after the event that turns a batch into a burst', async () => {
  const world = new World();
  await world.finishRead(changedSummary);
  world.reportChanges('a.yaml');
  world.clock.increment(4);
  world.burst('b.yaml');
  expect(world.state).toEqual({ burst: 'debouncing' });
  world.clock.increment(100);
  expect(world.readPlaces).toHaveLength(1);
});

it('config-source reads and reports 10 s after the start of a burst that does not end', async () => {
  const world = new World();
  await world.finishRead(changedSummary);
  world.burst('a.yaml');
  for (let ms = 0; ms < 10_000; ms += 100) {
    expect(world.readPlaces).toHaveLength(1);
    world.clock.increment(100);
    world.burst('a.yaml');
  }
  expect(world.readPlaces).toHaveLength(2);
  world.burst('a.yaml');
  await world.finishRead(changedSummary);
  expect(world.reports).toEqual(['source.read', 'source.read']);
});

it('config-source skips the report of a read during which a burst started, and reports the next read even without changes', async () => {
  const world = new World();
  await world.finishRead(nothingNew);
  world.reportChanges('a.yaml');
  world.clock.increment(5);
  world.burst('b.yaml');
  await world.finishRead(changedSummary);
  expect(world.reports).toEqual([]);
  expect(world.state).toEqual({ burst: 'debouncing' });
  world.clock.increment(200);
  await world.finishRead(nothingNew);
  expect(world.reports).toEqual(['source.read']);
  world.reportChanges('a.yaml');
  world.clock.increment(5);
  await world.finishRead(nothingNew);
  expect(world.reports).toEqual(['source.read']);
});

it('config-source delays at most one report, however many bursts follow', async () => {
  const world = new World();
  await world.finishRead(nothingNew);
  world.reportChanges('a.yaml');
  world.clock.increment(5);
  for (const expected of [[], ['source.read']]) {
    world.burst('b.yaml');
    await world.finishRead(changedSummary);
    expect(world.reports).toEqual(expected);
    world.clock.increment(200);
  }
});

it('config-source immediately reports a missing directory or a failure, even during a burst', async () => {
  const world = new World();
  await world.finishRead(changedSummary);
  world.reportChanges('a.yaml');
  world.clock.increment(5);
  world.burst('b.yaml');
  await world.finishRead({ outcome: 'missing', reason: 'there is no directory' });
  expect(world.reports).toEqual(['source.read', 'source.missing']);
});
