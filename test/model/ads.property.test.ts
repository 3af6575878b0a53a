/**
 * Any sequence of requests, acknowledgements, rejections, stale acknowledgements, changes and pushes, in both protocols, against the
 * real chart and stream effect. The client is a model: it applies what it reads and sends its subscriptions.
 */
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { adsConnectionMachine } from '../../machines/discovery/xds/ads-connection.machine.ts';
import { clusterType, endpointType, isByName, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { isOutstanding } from '../../machines/discovery/xds/ads-watch.ts';
import { sized } from '../harness/size-of-run.ts';
import { AdsWorld, type ClientResponse } from '../simulation/ads-world.ts';
import { replayDifference } from '../simulation/replayed.ts';

const types = [clusterType, endpointType, routeType];
const names = ['a', 'b', 'c'];

type Step =
  | { do: 'subscribe'; type: string; names: string[] }
  | { do: 'unsubscribe'; type: string }
  | { do: 'read'; reject: boolean }
  | { do: 'repeat'; type: string }
  | { do: 'stale'; type: string }
  | { do: 'set' | 'remove'; type: string; name: string }
  | { do: 'push'; types: string[] };

const typeArbitrary = fc.constantFrom(...types);
const namesArbitrary = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1 });
const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('subscribe' as const), type: typeArbitrary, names: namesArbitrary }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('unsubscribe' as const), type: typeArbitrary }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('read' as const), reject: fc.constantFrom(false, false, false, true) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('repeat' as const), type: typeArbitrary }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stale' as const), type: typeArbitrary }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('set' as const, 'set' as const, 'remove' as const),
      type: typeArbitrary,
      name: fc.constantFrom(...names),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('push' as const), types: fc.subarray(types, { minLength: 1 }) }),
  },
);

/** The client's state of a type. */
interface ClientTypeState {
  subscribed: string[];
  resources: Map<string, string>;
  lastNonce: string;
  /** Contents that it rejected; a server does not send these again unasked. `name=` for a removal. */
  rejectedContents: Set<string>;
}

class ModelClient {
  readonly world: AdsWorld;
  readonly stateByType = new Map<string, ClientTypeState>(
    types.map((type) => [
      type,
      { subscribed: [], resources: new Map(), lastNonce: '', rejectedContents: new Set<string>() },
    ]),
  );
  readonly nonces: string[] = [];
  readonly #isDelta: boolean;
  readonly #subscribesLate: boolean;

  constructor(delta: boolean, subscribesLate: boolean) {
    this.#isDelta = delta;
    this.#subscribesLate = subscribesLate;
    // Without the extra endpoints after clusters, because here every response must have a reason in its own type.
    this.world = new AdsWorld({ isDelta: delta, resendsEndpoints: false, acceptsLateNames: subscribesLate });
    for (const type of types) for (const name of names) this.world.source.set(type, name);
  }

  step(step: Step): void {
    switch (step.do) {
      case 'subscribe':
        this.subscribe(step.type, step.names);
        break;
      case 'unsubscribe':
        this.subscribe(step.type, []);
        break;
      case 'read':
        this.read(step.reject);
        break;
      case 'repeat':
        this.#repeatRequest(step.type);
        break;
      case 'stale':
        this.#sendStaleRequest(step.type);
        break;
      case 'set':
        this.world.source.set(step.type, step.name);
        break;
      case 'remove':
        this.world.source.remove(step.type, step.name);
        break;
      case 'push':
        this.#push(step.types);
        break;
    }
  }

  subscribe(type: string, subscribedNames: string[], responseNonce = ''): void {
    const typeState = this.stateByType.get(type)!;
    const previouslySubscribed = typeState.subscribed;
    typeState.subscribed = subscribedNames;
    if (this.#isDelta) {
      for (const name of typeState.resources.keys())
        if (!subscribedNames.includes(name)) typeState.resources.delete(name);
      const addedNames = subscribedNames.filter((name) => !previouslySubscribed.includes(name));
      const removedNames = previouslySubscribed.filter((name) => !subscribedNames.includes(name));
      // The first subscription of a type to nothing would be a wildcard.
      if (addedNames.length + removedNames.length === 0) return;
      const request = { resourceNamesSubscribe: addedNames, resourceNamesUnsubscribe: removedNames };
      this.world.sendDelta({ typeUrl: type, responseNonce, ...request });
    } else {
      // Its resources stay in its cache: a server that ignores the request as stale does not learn of the unsubscription.
      this.#request(type);
    }
  }

  read(reject = false): void {
    const sentResponse = this.world.read();
    if (sentResponse === undefined) return;
    expect(this.nonces).not.toContain(sentResponse.nonce);
    this.nonces.push(sentResponse.nonce);
    const typeState = this.stateByType.get(sentResponse.typeUrl)!;
    typeState.lastNonce = sentResponse.nonce;
    // Names in a rejection do not count (S1): a state-of-the-world server ignores them.
    if (reject && (this.#isDelta || this.#isSubscriptionKnown(sentResponse.typeUrl)))
      this.#rejectResponse(sentResponse, typeState);
    else {
      this.#apply(sentResponse, typeState);
      this.#acknowledge(sentResponse);
    }
  }

  /** Pushes everything once, whatever is pending; then all messages in the network arrive and are accepted. */
  settle(): void {
    this.#push(types);
    for (let i = 0; this.world.pendingWriteCount > 0; i++) {
      expect(i, 'responses without end').toBeLessThan(100);
      this.read();
    }
  }

  /** A plain acknowledgement gets a response only if a push was waiting for it. */
  #acknowledge(sentResponse: ClientResponse): void {
    const watch = this.world.watch(sentResponse.typeUrl)!;
    const waitsForIt = Object.values(this.world.watches).some(({ due }) => due.changed);
    const waitingBefore = this.world.pendingWriteCount;
    const isCurrent = watch.nonceSent === sentResponse.nonce;
    const sameNames = this.#isSubscriptionKnown(sentResponse.typeUrl);
    if (this.#isDelta) this.world.sendDelta({ typeUrl: sentResponse.typeUrl, responseNonce: sentResponse.nonce });
    else this.#request(sentResponse.typeUrl);
    if (!isCurrent || (sameNames && !waitsForIt)) expect(this.world.pendingWriteCount).toBe(waitingBefore);
    if (isCurrent)
      expect(this.world.watch(sentResponse.typeUrl)).toMatchObject({
        nonceAcked: sentResponse.nonce,
        versionAcked: sentResponse.version,
      });
  }

  /** Whether the server knows the client's subscription. */
  #isSubscriptionKnown(typeUrl: string): boolean {
    const knownNames = this.world.watch(typeUrl)?.names ?? [];
    return knownNames.toSorted().join() === this.stateByType.get(typeUrl)!.subscribed.toSorted().join();
  }

  #rejectResponse(sentResponse: ClientResponse, typeState: ClientTypeState): void {
    for (const content of sentResponse.resources.values()) typeState.rejectedContents.add(content);
    for (const name of sentResponse.removedNames) typeState.rejectedContents.add(`${name}=`);
    // Resources missing from a complete response are removed.
    if (!this.#isDelta && !isByName(sentResponse.typeUrl))
      for (const name of names) typeState.rejectedContents.add(`${name}=`);
    const errorDetail = { code: 13, message: 'no' };
    if (this.#isDelta)
      this.world.sendDelta({ typeUrl: sentResponse.typeUrl, responseNonce: sentResponse.nonce, errorDetail });
    else
      this.world.sendSotw({
        typeUrl: sentResponse.typeUrl,
        responseNonce: sentResponse.nonce,
        resourceNames: typeState.subscribed,
        errorDetail,
      });
  }

  #apply(sentResponse: ClientResponse, typeState: ClientTypeState): void {
    if (!this.#isDelta && !isByName(sentResponse.typeUrl)) typeState.resources.clear();
    for (const [name, content] of sentResponse.resources)
      if (typeState.subscribed.includes(name)) typeState.resources.set(name, content);
    for (const name of sentResponse.removedNames) typeState.resources.delete(name);
  }

  #request(typeUrl: string): void {
    const { subscribed, lastNonce } = this.stateByType.get(typeUrl)!;
    this.world.sendSotw({
      typeUrl,
      resourceNames: subscribed.length === 0 ? [''] : subscribed,
      responseNonce: lastNonce,
    });
  }

  /** Repeats the last acknowledgement. */
  #repeatRequest(typeUrl: string): void {
    const { lastNonce } = this.stateByType.get(typeUrl)!;
    const watch = this.world.watch(typeUrl);
    if (lastNonce === '' || watch === undefined || isOutstanding(watch)) return;
    const waitingBefore = this.world.pendingWriteCount;
    const isSubscriptionKnown = this.#isSubscriptionKnown(typeUrl);
    if (this.#isDelta) this.world.sendDelta({ typeUrl, responseNonce: lastNonce });
    else this.#request(typeUrl);
    if (isSubscriptionKnown) expect(this.world.pendingWriteCount).toBe(waitingBefore);
  }

  /**
   * Sends an acknowledgement of an earlier response with another subscription: ignored entirely in state of the world; in delta its subscription may
   * count.
   */
  #sendStaleRequest(typeUrl: string): void {
    const watch = this.world.watch(typeUrl);
    if (watch === undefined) return;
    if (this.#subscribesLate) {
      const { subscribed } = this.stateByType.get(typeUrl)!;
      this.subscribe(
        typeUrl,
        subscribed.includes('a') ? subscribed.filter((name) => name !== 'a') : [...subscribed, 'a'],
        'stale',
      );
      return;
    }
    const waitingBefore = this.world.pendingWriteCount;
    if (this.#isDelta) this.world.sendDelta({ typeUrl, responseNonce: 'stale', resourceNamesSubscribe: ['x'] });
    else this.world.sendSotw({ typeUrl, responseNonce: 'stale', resourceNames: ['x'] });
    expect(this.world.watch(typeUrl)).toEqual(watch);
    expect(this.world.pendingWriteCount).toBe(waitingBefore);
  }

  /** Pushes; a type whose last response is not acknowledged is not sent. */
  #push(pushedTypes: string[]): void {
    const openTypes = types.filter((type) => {
      const watch = this.world.watch(type);
      return watch !== undefined && isOutstanding(watch);
    });
    const nonces = openTypes.map((type) => this.world.watch(type)!.nonceSent);
    this.world.push(...pushedTypes);
    expect(openTypes.map((type) => this.world.watch(type)!.nonceSent)).toEqual(nonces);
  }
}

afterEach(() => {
  AdsWorld.instances.splice(0);
});

describe.each([
  ['state of the world', false, false],
  ['delta', true, false],
  ['delta, with names in late answers', true, true],
])('%s', (_, delta, subscribesLate) => {
  test('a random run violates no rule, and the client eventually has all subscribed resources', () => {
    fc.assert(
      fc.property(fc.array(stepArbitrary, { minLength: 10, maxLength: 80, size: 'max' }), (steps) => {
        const client = new ModelClient(delta, subscribesLate);
        for (const step of steps) client.step(step);
        client.settle();
        expect(client.world.failure).toBeUndefined();
        for (const [type, { subscribed, resources, rejectedContents }] of client.stateByType) {
          const source = client.world.source.types.get(type)!;
          for (const name of subscribed) {
            const should = source.has(name) ? contentOf(source, name) : undefined;
            if (rejectedContents.has(should ?? `${name}=`)) continue;
            // State of the world cannot remove a resource that is subscribed by name.
            if (should === undefined && !delta && isByName(type)) continue;
            expect(resources.get(name), `${name} of ${type}`).toBe(should);
          }
        }
        expect(replayDifference(client.world.records, adsConnectionMachine)).toBe('');
        AdsWorld.instances.splice(0);
      }),
      { numRuns: sized({ short: 60, full: 1_000 }) },
    );
  });
});

/** `name=<version>`, as generated by ScriptedSource. */
function contentOf(source: ReadonlyMap<string, { readonly version: string }>, name: string): string {
  return `${name}=${source.get(name)!.version}`;
}
