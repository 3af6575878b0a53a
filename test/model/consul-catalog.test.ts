/** The catalog of Consul as its charts read and watch it (machines/discovery/consul), under a virtual clock. */
import { afterEach, describe, expect, it } from 'vitest';
import { type Actor, fromCallback, fromPromise } from 'xstate';
import { type CatalogReading, holdReason, needsWholeRead } from '../../machines/discovery/consul/catalog-change.ts';
import { consulMachine } from '../../machines/discovery/consul/consul.machine.ts';
import {
  type ConsulCatalogInput,
  type ConsulWatchOrder,
  consulCatalogMachine,
  type ReadOrder,
  type ReadOutcome,
  type SurveyOutcome,
} from '../../machines/discovery/consul/consul-catalog.machine.ts';
import type {
  DatacentersListed,
  IndexRegressed,
  QueryFailed,
} from '../../machines/discovery/consul/consul-protocol.ts';
import {
  type CatalogSurvey,
  chooseStrategy,
  connectionsAfterThrottling,
  isOutgrown,
  maxConsulConnections,
} from '../../machines/discovery/consul/watch-strategy.ts';
import { maxWaitMs } from '../../src/discovery/consul/consul-client.ts';
import { logEvents } from '../../src/discovery/monitor/event-log.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createLogger } from '../../src/runtime/output/log.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const readingOf = (services: number, overrides: Partial<CatalogReading> = {}): CatalogReading => ({
  ...{ nodes: 2, services, instances: services * 2, restricted: false, emptied: 0 },
  ...overrides,
});

/** The charts with a Consul that responds as scripted by the test. */
class CatalogWorld {
  static readonly instances: CatalogWorld[] = [];
  readonly records: TraceRecord[] = [];
  readonly lines: string[] = [];
  readonly clock = new VirtualClock();
  readonly actor: Actor<typeof consulMachine>;
  readonly readOrders: (ReadOrder & { at: number })[] = [];
  readonly surveyTimes: number[] = [];
  readonly watches: ConsulWatchOrder[] = [];
  failure: unknown;
  appliedCount = 0;
  condition = '';
  survey: CatalogSurvey = { nodes: 2, services: 5, transport: 'HTTP/1.1' };
  /** A number is a status: the request fails. */
  response: CatalogReading | number = readingOf(5);
  list: (event: DatacentersListed) => void = () => {};
  report: (event: object) => void = () => {};
  credentials: () => void = () => {};

  /** @param isJudged whether its run is checked against the diagrams; false if a test sends events itself, because they come from no actor */
  constructor(datacenters: string[] = [''], isJudged = true) {
    if (isJudged) CatalogWorld.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    recorder.observe((record) => this.records.push(record));
    logEvents(recorder, createLogger({ write: (line) => this.lines.push(line) }), this.clock.now);
    const failure = (status: number) =>
      ({ outcome: 'failed', failure: { reason: `HTTP status ${status}`, status }, draw: 0.5 }) as const;
    const machine = consulMachine.provide({
      actors: {
        listDatacenters: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
          this.list = sendBack;
          sendBack({ type: 'datacenters.listed', datacenters });
        }),
        consulCatalog: consulCatalogMachine.provide({
          actors: {
            watchCredentials: fromCallback<{ type: never }, ConsulCatalogInput>(({ sendBack }) => {
              this.credentials = () => sendBack({ type: 'consul-credentials.changed' });
            }),
            surveyCatalog: fromPromise<SurveyOutcome, ConsulCatalogInput>(async () => {
              this.surveyTimes.push(this.clock.now());
              const { response } = this;
              return typeof response === 'number' ? failure(response) : { outcome: 'read', survey: this.survey };
            }),
            readCatalog: fromPromise<ReadOutcome, ReadOrder>(async ({ input }) => {
              this.readOrders.push({ ...input, at: this.clock.now() });
              const { response } = this;
              return typeof response === 'number' ? failure(response) : { outcome: 'read', reading: response };
            }),
            watchCatalog: fromCallback<{ type: never }, ConsulWatchOrder>(({ input, sendBack }) => {
              this.watches.push(input);
              this.report = sendBack as never;
            }),
          },
          actions: {
            applyCatalog: () => {
              this.appliedCount++;
              this.condition = 'synced';
            },
            publishHeld: (_, { reason }) => {
              this.condition = `held: ${reason}`;
            },
            publishFailing: (_, { reason }) => {
              this.condition = `failing: ${reason}`;
            },
          },
        }),
      },
    });
    this.actor = startRoot(machine, {
      ...{ id: 'consul', input: undefined, clock: this.clock as never, recorder },
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  /** Lets promises settle, then advances time. */
  async passTime(ms = 0): Promise<void> {
    await flushMicrotasks();
    for (let remainingMs = ms; remainingMs > 0; remainingMs -= 100) {
      this.clock.advance(Math.min(remainingMs, 100));
      await flushMicrotasks();
    }
  }

  /** Reports to the parent, in order. */
  get reports(): string[] {
    return this.records.flatMap((record) =>
      record.kind === 'event' && record.to === 'consul' && record.from.startsWith('consul-catalog')
        ? [record.event.type]
        : [],
    );
  }
}

async function flushMicrotasks(): Promise<void> {
  for (let tick = 0; tick < 10; tick++) await Promise.resolve();
}

eachWorldFollowsTheDiagrams(['consul', 'consul-catalog'], [], {
  instances: CatalogWorld.instances,
  machine: consulMachine,
});

let world: CatalogWorld;
afterEach(() => void world?.actor.stop());

describe('the catalog of a datacenter', () => {
  it('counts, reads, serves and watches, and reports the chosen strategy once', async () => {
    world = new CatalogWorld();
    await world.passTime();
    expect(world.reports).toEqual(['strategy.chosen', 'catalog.synced']);
    expect(world.readOrders).toMatchObject([{ strategy: 'nodes', consistent: false }]);
    world.report({ type: 'catalog.changed', reading: readingOf(6) });
    world.report({ type: 'catalog.changed', reading: readingOf(5) });
    expect(world.appliedCount).toBe(3);
    world.report({ type: 'index.regressed', query: 'nodes' });
    await world.passTime();
    expect(world.readOrders).toHaveLength(2);
    expect(world.reports).toHaveLength(2);
  });

  it('retries after 0.5 s with increasing delays, and keeps serving the last catalog', async () => {
    world = new CatalogWorld();
    await world.passTime();
    world.response = 500;
    world.report({ type: 'query.failed', failure: { reason: 'reset', status: 0 }, draw: 0.5 });
    await world.passTime(60_000);
    const pauses = world.surveyTimes.slice(1).map((at, index) => (at - world.surveyTimes[index]!) / 1_000);
    expect(pauses.map((pause) => Math.round(pause * 10) / 10)).toEqual([0.5, 1, 2, 4, 8, 16]);
    expect(world.condition).toBe('failing: HTTP status 500');
    expect(world.appliedCount).toBe(1);
    world.response = readingOf(5);
    await world.passTime(40_000);
    expect(world.condition).toBe('synced');
    expect(world.reports.at(-1)).toBe('catalog.recovered');
  });

  it('holds back a response that would remove everything until it has been repeated for 5 min', async () => {
    world = new CatalogWorld();
    await world.passTime();
    world.response = readingOf(0);
    world.report({ type: 'catalog.changed', reading: readingOf(0) });
    await world.passTime(295_000);
    expect(world.condition).toBe('held: the response would remove all 5 services');
    expect(world.appliedCount).toBe(1);
    await world.passTime(10_000);
    expect(world.condition).toBe('synced');
    expect(world.appliedCount).toBe(2);
    expect(world.readOrders.slice(2).every(({ consistent }) => consistent)).toBe(true);
    expect(world.reports).toEqual(['strategy.chosen', 'catalog.synced', 'catalog.held', 'catalog.released']);
  });

  it('restarts the 5 min after a failed read, and ignores restricted reads', async () => {
    world = new CatalogWorld([''], false);
    await world.passTime();
    world.response = readingOf(0);
    world.report({ type: 'catalog.changed', reading: readingOf(0) });
    await world.passTime(250_000);
    world.response = 500;
    await world.passTime(10_000);
    world.response = readingOf(0);
    await world.passTime(250_000);
    expect(world.appliedCount).toBe(1);
    world.response = readingOf(0, { restricted: true });
    await world.passTime(600_000);
    expect(world.appliedCount).toBe(1);
    world.actor.send({ type: 'catalog.accept', datacenter: '' });
    await world.passTime();
    expect(world.appliedCount).toBe(2);
    expect(world.condition).toBe('synced');
  });

  it('serves again immediately if the next read removes little', async () => {
    world = new CatalogWorld();
    await world.passTime();
    world.response = readingOf(1);
    world.credentials();
    await world.passTime();
    expect(world.condition).toContain('would leave 1 of 5 services');
    world.response = readingOf(4);
    await world.passTime(10_500);
    expect(world.condition).toBe('synced');
    expect(world.appliedCount).toBe(2);
  });

  it('is not synced by a first response that contains no nodes', async () => {
    world = new CatalogWorld();
    world.response = readingOf(0, { nodes: 0, restricted: true });
    await world.passTime(600_000);
    expect(world.reports).toEqual(['catalog.held']);
    world.response = readingOf(5);
    await world.passTime(10_500);
    expect(world.reports).toContain('catalog.synced');
  });

  it('uses fewer connections after status 429', async () => {
    world = new CatalogWorld();
    await world.passTime();
    world.survey = { nodes: 100, services: 500, transport: 'HTTP/1.1' };
    world.credentials();
    await world.passTime();
    expect(world.watches.at(-1)).toMatchObject({ strategy: 'nodes', maxConnections: 150 });
    world.report({ type: 'query.failed', failure: { reason: 'too many', status: 429 }, draw: 0.5 });
    await world.passTime(1_000);
    expect(world.watches.at(-1)).toMatchObject({ strategy: 'coarse', maxConnections: 51 });
  });

  it('watches each datacenter separately, and stops one that is no longer listed', async () => {
    world = new CatalogWorld(['a', 'b']);
    await world.passTime();
    expect(world.appliedCount).toBe(2);
    world.list({ type: 'datacenters.listed', datacenters: ['b', 'c'] });
    await world.passTime();
    const { children } = world.actor.getSnapshot() as { children: Record<string, unknown> };
    expect(Object.keys(children).filter((name) => name.startsWith('consul-catalog'))).toEqual([
      'consul-catalog-2',
      'consul-catalog-3',
    ]);
  });
});

describe('a catalog with any pending query', () => {
  /** A query waits for up to a sixteenth longer than requested. */
  const maxQueryMs = maxWaitMs + maxWaitMs / 16;

  /** Changes Consul during queries. @returns state and log after a minute */
  async function conditionAfterMinute(
    response: CatalogReading | number,
    event: IndexRegressed | QueryFailed,
  ): Promise<string> {
    world = new CatalogWorld();
    await world.passTime();
    world.response = response;
    await world.passTime(maxQueryMs);
    world.report(event);
    await world.passTime(60_000 - maxQueryMs);
    expect(world.appliedCount).toBe(1);
    return `${world.condition}\n${world.lines.filter((line) => line.includes('\twarn\t')).join('\n')}`;
  }

  it('reports a wiped server within 1 min, and removes nothing', async () => {
    const conditionText = await conditionAfterMinute(readingOf(0), { type: 'index.regressed', query: 'nodes' });
    expect(conditionText).toMatch(/^held: the response would remove all 5 services\n.*Consul response held back/);
  });

  it('reports a revoked token within 1 min, and removes nothing', async () => {
    const failure = { reason: 'HTTP status 403: token not found', status: 403 };
    const conditionText = await conditionAfterMinute(403, { type: 'query.failed', failure, draw: 1 });
    expect(conditionText).toMatch(/^failing: HTTP status 403\n.*Consul not responding/);
  });
});

describe('the query strategy', () => {
  const strategyText = (nodes: number, services: number, transport: CatalogSurvey['transport'] = 'HTTP/1.1') => {
    const { strategy, connections } = chooseStrategy({ nodes, services, transport }, maxConsulConnections);
    return `${strategy} ${connections}`;
  };

  it('uses as few connections as possible, and at most 150 with HTTP/1.1', () => {
    expect(strategyText(50, 2_000)).toBe('nodes 52');
    expect(strategyText(100, 10)).toBe('services 11');
    expect(strategyText(149, 2_000)).toBe('coarse 3');
    expect(strategyText(50, 2_000, 'HTTP/2')).toBe('nodes 1');
    expect(strategyText(50, 1_999, 'HTTP/2')).toBe('services 8');
    expect(strategyText(50, 100_000, 'HTTP/2')).toBe('nodes 1');
    expect(strategyText(5_000, 100_000, 'HTTP/2')).toBe('coarse 1');
  });

  it('is chosen again when there are too many nodes for the connections, and uses fewer connections after status 429', () => {
    const nodeStrategy = { strategy: 'nodes', transport: 'HTTP/1.1', connections: 52 } as const;
    expect(isOutgrown(nodeStrategy, { nodes: 148, services: 9 }, 150)).toBe(false);
    expect(isOutgrown(nodeStrategy, { nodes: 149, services: 9 }, 150)).toBe(true);
    expect(isOutgrown({ ...nodeStrategy, strategy: 'coarse' }, { nodes: 9_999, services: 9 }, 150)).toBe(false);
    expect([
      connectionsAfterThrottling(52, 150),
      connectionsAfterThrottling(0, 150),
      connectionsAfterThrottling(10, 150),
    ]).toEqual([26, 75, 8]);
  });
});

describe('a read result', () => {
  const appliedReading = readingOf(10);

  it('is held back if it would remove everything, or most of it without evidence', () => {
    expect(holdReason(appliedReading, readingOf(0), 'growth')).toMatch(/remove all 10 services/);
    expect(holdReason(appliedReading, readingOf(4), 'reconnect')).toMatch(/leave 4 of 10 services/);
    expect(holdReason(appliedReading, readingOf(4), 'growth')).toBeUndefined();
    expect(holdReason(appliedReading, readingOf(5), 'reconnect')).toBeUndefined();
    expect(holdReason(appliedReading, readingOf(10, { instances: 9 }), 'new credentials')).toMatch(/9 of 20 instances/);
    expect(holdReason(readingOf(3), readingOf(1), 'reconnect')).toBeUndefined();
    expect(holdReason(appliedReading, readingOf(0), 'accepted')).toBeUndefined();
    expect(holdReason(null, readingOf(0), 'start')).toBeUndefined();
    expect(holdReason(null, readingOf(0, { restricted: true }), 'start')).toMatch(/ACLs hide results/);
    expect(holdReason(null, readingOf(0, { nodes: 0 }), 'start')).toMatch(/no nodes/);
  });

  it('is applied immediately if it is from a watch, others remain, and the token is unrestricted', () => {
    expect(needsWholeRead(appliedReading, readingOf(1))).toBe(false);
    expect(needsWholeRead(appliedReading, readingOf(0))).toBe(true);
    expect(needsWholeRead(appliedReading, readingOf(9, { restricted: true }))).toBe(true);
    const restricted = { ...appliedReading, restricted: true };
    expect(needsWholeRead(restricted, readingOf(9, { restricted: true }))).toBe(false);
    expect(needsWholeRead(restricted, readingOf(9, { restricted: true, emptied: 1 }))).toBe(true);
  });
});
