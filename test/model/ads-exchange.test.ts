/** The reports of an exchange to its chart, and the number of events per push (machines/discovery/xds/ads-exchange.ts). */
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type Exchange,
  type ExchangeEvent,
  type ExchangeReport,
  isExchangeRequest,
  newExchange,
  stepOf,
} from '../../machines/discovery/xds/ads-exchange.ts';
import { clusterType, endpointType, healthType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { isBehind, isSettled } from '../../machines/discovery/xds/ads-watch.ts';
import { AdsWorld, type ClientResponse } from '../simulation/ads-world.ts';

afterEach(() => {
  for (const world of AdsWorld.instances.splice(0)) expect(world.failure).toBeUndefined();
});

const rules = { resendsEndpoints: true, acceptsLateNames: true, maxNames: 10, maxNameChars: 100 };
const request = (typeUrl: string, nonce = '', names: string[] = []): ExchangeEvent => ({
  type: 'request.received',
  request: { protocol: 'sotw', typeUrl, nonce, names, rejection: null },
});
const responseSent = (typeUrl: string, nonce: string, resources = 1): ExchangeEvent => ({
  type: 'response.sent',
  typeUrl,
  nonce,
  version: nonce,
  resources,
  removed: 0,
  sentAt: 1,
});
const push = (...types: string[]): ExchangeEvent => ({ type: 'connection.push', version: 'v', types });

/** Reports to the chart, one list per step. */
function reportsOf(...events: ExchangeEvent[]): string[][] {
  let exchange = newExchange;
  return events.map((event) => {
    const step = stepOf(exchange, event, rules);
    exchange = step.exchange;
    return step.reports.map(({ type }) => type);
  });
}

describe('the exchange chart', () => {
  test('receives no event for a request, a response, or an acknowledged push', () => {
    const run = [request(clusterType), responseSent(clusterType, '1'), request(clusterType, '1')];
    const pushEvents = [push(clusterType), responseSent(clusterType, '2'), request(clusterType, '2')];
    expect(reportsOf(...run, ...pushEvents).flat()).toEqual([]);
  });

  test('receives one event when changes are held back, however many, and one when all are released', () => {
    const heldEvents = [request(clusterType), responseSent(clusterType, '1'), push(clusterType), push(clusterType)];
    expect(reportsOf(...heldEvents, request(clusterType, '1'))).toEqual([
      [],
      [],
      ['changes.held'],
      [],
      ['changes.released'],
    ]);
  });

  test('receives no event for a client that returns with current clusters, because none of them must warm up', () => {
    const requests = [request(clusterType), request(endpointType, '', ['a']), responseSent(endpointType, '1')];
    expect(reportsOf(...requests, responseSent(clusterType, '2', 0)).flat()).toEqual([]);
    expect(reportsOf(...requests, responseSent(clusterType, '2')).flat()).toEqual(['changes.held']);
  });

  test('receives another event for held-back changes after the client reads again', () => {
    const heldEvents = [request(clusterType), responseSent(clusterType, '1'), push(clusterType)];
    const reportTypes = reportsOf(...heldEvents, { type: 'stream.congested' }, { type: 'stream.resumed' });
    expect(reportTypes.slice(2)).toEqual([['changes.held'], ['stream.congested'], ['stream.resumed', 'changes.held']]);
  });

  test('receives no event when it sends held changes on a release, and changes.held if they must still wait', () => {
    const heldEvents = [request(clusterType), responseSent(clusterType, '1'), push(clusterType)];
    expect(reportsOf(...heldEvents, { type: 'changes.release' }).at(-1)).toEqual([]);
    // The order that would send the changes is pending.
    const orderedEvents = [request(clusterType), push(clusterType)];
    expect(reportsOf(...orderedEvents, { type: 'changes.release' })).toEqual([[], ['changes.held'], ['changes.held']]);
  });

  test('receives an event for an ACK during a drain, but none for changes', () => {
    expect(
      reportsOf(request(clusterType), responseSent(clusterType, '1'), request(clusterType, '1'), {
        type: 'stream.drain',
      }),
    ).toEqual([[], [], [], ['client.idle']]);
    const draining: ExchangeEvent[] = [request(clusterType), responseSent(clusterType, '1'), { type: 'stream.drain' }];
    const lateEvents = [push(clusterType), request(clusterType, '1')];
    expect(reportsOf(...draining, push(clusterType), request(clusterType, '1'), ...lateEvents).slice(2)).toEqual([
      [],
      [],
      ['client.idle'],
      [],
      [],
    ]);
  });

  test('receives an event for each rejection, late ACK, unknown type and excess of names', () => {
    const names = Array.from({ length: 11 }, (_, i) => `${i}`);
    const reportTypes = reportsOf(
      request(clusterType),
      request(clusterType, 'old'),
      request('no/Type'),
      request(routeType, '', names),
    );
    expect(reportTypes).toEqual([[], ['request.classified'], ['request.classified'], ['subscription-limit.exceeded']]);
  });

  test('receives an event for each request of a type that is not watched', () => {
    const isForType = (typeUrl: string, onlyType: string | null = null): boolean =>
      isExchangeRequest({ protocol: 'sotw', typeUrl, nonce: '', names: [], rejection: null }, onlyType);
    expect([clusterType, 'no/Type'].map((typeUrl) => isForType(typeUrl))).toEqual([true, true]);
    expect(['', healthType, 'istio.io/debug/syncz'].map((typeUrl) => isForType(typeUrl))).toEqual([
      false,
      false,
      false,
    ]);
    expect([clusterType, endpointType].map((typeUrl) => isForType(typeUrl, clusterType))).toEqual([true, false]);
  });
});

// ---- any run

const typeArbitrary = fc.constantFrom(clusterType, endpointType, routeType);
const eventArbitrary = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('ask' as const), type: typeArbitrary, reject: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('answer' as const), type: typeArbitrary, reject: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('send' as const), type: typeArbitrary, reject: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('push' as const), type: typeArbitrary, reject: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('silence' as const), type: typeArbitrary, reject: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('relief' as const), type: typeArbitrary, reject: fc.boolean() }),
  },
);

/** The state of the chart after a report. */
function expectedState(previousState: string, { type }: ExchangeReport | { type: 'timer' }): string {
  if (type === 'changes.held') return 'waiting';
  return type === 'changes.released' || type === 'stream.resumed' || type === 'timer' ? 'caught up' : previousState;
}

test('the chart always knows whether changes are held back, and a drained stream settles after the last ACK', () => {
  fc.assert(
    fc.property(fc.array(eventArbitrary, { minLength: 5, maxLength: 60 }), (steps) => {
      let exchange: Exchange = newExchange;
      let chart = 'caught up';
      let count = 0;
      const applyEvent = (event: ExchangeEvent): void => {
        const step = stepOf(exchange, event, rules);
        exchange = step.exchange;
        for (const report of step.reports) chart = expectedState(chart, report);
        const hasHeldChanges = Object.values(exchange.watches).some(isBehind);
        expect(chart).toBe(hasHeldChanges ? 'waiting' : 'caught up');
      };
      const acknowledge = (type: string): ExchangeEvent =>
        request(type, exchange.watches[type]?.nonceSent ?? '', ['a']);
      for (const { do: action, type, reject } of steps) {
        if (action === 'ask') applyEvent(request(type, '', [reject ? 'a' : 'b']));
        else if (action === 'answer') applyEvent(acknowledge(type));
        else if (action === 'push') applyEvent(push(type));
        else if (action === 'relief') applyEvent({ type: 'stream.resumed' });
        else if (action === 'silence' && chart === 'waiting') {
          chart = expectedState(chart, { type: 'timer' });
          applyEvent({ type: 'changes.release' });
        } else if (
          action === 'send' &&
          exchange.watches[type] !== undefined &&
          exchange.watches[type].ordered !== 'nothing'
        ) {
          applyEvent(
            reject
              ? { type: 'response.skipped', typeUrl: type, reason: 'unchanged' }
              : responseSent(type, `${++count}`),
          );
        }
      }
      const draining = stepOf(exchange, { type: 'stream.drain' }, rules);
      const isQuiet = Object.values(draining.exchange.watches).every(isSettled);
      expect(draining.reports.map(({ type }) => type)).toEqual(isQuiet ? ['client.idle'] : []);
    }),
    { numRuns: 500 },
  );
});

// ---- number of events

/** A client that has received all clusters, endpoints and a route. */
function createClientWorld(delta: boolean, recordsRoutine: boolean): AdsWorld {
  const world = new AdsWorld({ isDelta: delta, recordsRoutine });
  for (const type of [clusterType, endpointType, routeType])
    for (const name of ['a', 'b']) world.source.set(type, name);
  const send = delta ? world.sendDelta.bind(world) : world.sendSotw.bind(world);
  send({ typeUrl: clusterType });
  const names = delta ? { resourceNamesSubscribe: ['a', 'b'] } : { resourceNames: ['a', 'b'] };
  for (const typeUrl of [endpointType, routeType]) send({ typeUrl, ...names });
  acknowledgeAll(world, delta);
  return world;
}

function acknowledgeAll(world: AdsWorld, delta: boolean): ClientResponse[] {
  const all: ClientResponse[] = [];
  for (let sentResponse = world.read(); sentResponse !== undefined; sentResponse = world.read()) {
    all.push(sentResponse);
    const { typeUrl, nonce: responseNonce } = sentResponse;
    if (delta) world.sendDelta({ typeUrl, responseNonce });
    else world.sendSotw({ typeUrl, responseNonce, resourceNames: typeUrl === clusterType ? [] : ['a', 'b'] });
  }
  return all;
}

describe.each([
  ['state of the world', false],
  ['delta', true],
] as const)('%s', (_, delta) => {
  test('an acknowledged push never causes an event of the chart', () => {
    const world = createClientWorld(delta, false);
    const inspectionsBefore = world.inspectionCount;
    for (let i = 0; i < 20; i++) {
      world.source.set(endpointType, 'a');
      world.source.set(routeType, 'b');
      world.push();
      expect(acknowledgeAll(world, delta).map(({ typeUrl }) => typeUrl)).toEqual([endpointType, routeType]);
    }
    expect(world.inspectionCount - inspectionsBefore).toBe(0);
  });

  test('a push that waits for the client causes two events, however many pushes wait', () => {
    const world = createClientWorld(delta, false);
    const records = world.records.length;
    world.source.set(endpointType, 'a');
    world.push();
    for (let i = 0; i < 10; i++) {
      world.source.set(endpointType, 'b');
      world.push();
    }
    acknowledgeAll(world, delta);
    const events = world.records.slice(records).filter((record) => record.kind === 'event');
    expect(events.map(({ event }) => event.type)).toEqual(['changes.held', 'changes.released']);
  });

  test('a detailed trace contains each message and the resulting state', () => {
    const world = createClientWorld(delta, true);
    const records = world.records.length;
    world.source.set(endpointType, 'a');
    world.push(endpointType);
    acknowledgeAll(world, delta);
    const events = world.records.slice(records).filter((record) => record.kind === 'event');
    expect(events.map(({ event, to }) => [event.type, to])).toEqual(
      [
        'connection.push',
        'watch.changed',
        'responses.scheduled',
        'response.sent',
        'watch.changed',
        'request.received',
        'watch.changed',
      ].map((type) => [type, 'ads-connection-1']),
    );
    expect(world.actor.getSnapshot().context.watches).toEqual(world.watches);
  });

  test('a detailed trace does not change behavior', () => {
    const worlds = [createClientWorld(delta, true), createClientWorld(delta, false)] as const;
    const states = worlds.map((world) => {
      const observedStates: string[] = [];
      const note = (): void =>
        void observedStates.push(`${world.state()} ${world.pendingWriteCount} ${JSON.stringify(world.watches)}`);
      for (const type of [endpointType, clusterType, endpointType]) {
        world.source.set(type, 'a');
        world.push();
        note();
      }
      world.clock.advance(10_000);
      note();
      acknowledgeAll(world, delta);
      note();
      world.source.set(routeType, 'a');
      world.push();
      world.drain(1_000);
      note();
      acknowledgeAll(world, delta);
      note();
      return observedStates;
    });
    expect(states[1]).toEqual(states[0]);
    expect(states[0]!.at(-1)).toMatch(/^closed/);
  });
});
