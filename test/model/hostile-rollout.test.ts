/**
 * Make before break with a client that violates the protocol: it acknowledges nothing, or other nonces, subscribes and unsubscribes, and reconnects
 * in each phase, while configuration changes. Once it conforms to the protocol again, it receives the newest version of everything.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clusterType, endpointType, listenerType, routeType } from '../../machines/discovery/xds/ads-types.ts';
import { DepartedClusters } from '../../src/discovery/xds/rollout/departed-clusters.ts';
import { sized } from '../harness/size-of-run.ts';
import { AdsWorld, type ClientResponse } from '../simulation/ads-world.ts';
import { limitedMark, ScriptedSource } from '../simulation/scripted-source.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';

const routes = ['r0', 'r1', 'r2'];
const listeners = ['l0', 'l1'];
const clusters = ['c0', 'c1', 'c2', 'c3'];
/** Longer than the sum of all limits: of a wait, of a fetch, and of a draining listener. */
const restMs = 300_000;

const stepArbitrary = fc.record({
  kind: fc.constantFrom(
    ...(['move', 'move', 'add', 'remove', 'listener', 'read', 'read', 'read', 'silent', 'wrong'] as const),
    ...(['routes', 'endpoints', 'tick', 'tick', 'reconnect'] as const),
  ),
  one: fc.nat(11),
  other: fc.nat(11),
});
type Step = typeof stepArbitrary extends fc.Arbitrary<infer Value> ? Value : never;

/** A client whose requests a test chooses, and a control plane whose configuration changes. */
class HostileRun {
  readonly #isDelta: boolean;
  readonly #source = new ScriptedSource();
  readonly #clock = new VirtualClock();
  readonly #departedClusters = new DepartedClusters(45_000);
  readonly #subscribedNames = new Map<string, readonly string[]>();
  /** Contents by type and name. */
  #contents = new Map<string, Map<string, string>>();
  /** Clusters that routes and listeners name and that therefore stay configured. */
  readonly #namedClusters = new Map<string, string>();
  #world: AdsWorld;

  constructor(delta: boolean) {
    this.#isDelta = delta;
    this.#addCluster('c0', 'assignment');
    for (const name of [...routes, ...listeners]) this.#moveRoute(name, 'c0');
    this.#world = this.#connect();
    this.#subscribe(clusterType, []);
    this.#subscribe(listenerType, []);
  }

  step({ kind, one, other }: Step): void {
    const cluster = clusters[other % clusters.length]!;
    if (kind === 'move') this.#moveTo(routes[one % routes.length]!, cluster, one % 2 === 0 ? 'assignment' : 'warming');
    else if (kind === 'listener') this.#moveTo(listeners[one % listeners.length]!, cluster, 'assignment');
    else if (kind === 'add') {
      this.#addCluster(cluster, one % 2 === 0 ? 'assignment' : 'warming');
      this.#world.push(clusterType, endpointType);
    } else if (kind === 'remove') this.#removeCluster(cluster);
    else if (kind === 'read') this.#read('acknowledges');
    else if (kind === 'silent') this.#read('is silent');
    else if (kind === 'wrong') this.#read('names another nonce');
    else if (kind === 'routes') this.#subscribe(routeType, selectNames(routes, one));
    else if (kind === 'endpoints') this.#subscribe(endpointType, selectNames(clusters, one));
    else if (kind === 'tick') this.#clock.advance(one * 300);
    else this.#reconnect();
  }

  /** Makes the client conform to the protocol. @returns resources that it lacks, or should not have */
  conform(): string[] {
    for (const typeUrl of [clusterType, listenerType]) this.#subscribe(typeUrl, []);
    this.#subscribe(routeType, routes);
    for (let ms = 0; ms < restMs; ms += 1_000) {
      while (this.#read('acknowledges'));
      const expected = [...(this.#contents.get(clusterType)?.keys() ?? [])].sort();
      if (`${expected}` !== `${[...(this.#subscribedNames.get(endpointType) ?? [])].sort()}`)
        this.#subscribe(endpointType, expected);
      this.#clock.advance(1_000);
    }
    while (this.#read('acknowledges'));
    return [clusterType, listenerType, routeType].flatMap((typeUrl) => this.#differencesOf(typeUrl));
  }

  get failure(): unknown {
    return this.#world.failure;
  }

  #differencesOf(typeUrl: string): string[] {
    const contents = this.#contents.get(typeUrl) ?? new Map<string, string>();
    const expected = this.#source.contentsOf(typeUrl);
    const missingEntries = [...expected].filter(
      ([name, content]) => contents.get(name)?.replace(limitedMark, '') !== content,
    );
    // A client that never acknowledges listeners or routes may still use clusters that the previous ones named; debug pages show this.
    const { retained } = this.#world.rollout;
    const isRetained = (name: string): boolean =>
      retained.some((retainedCluster) => retainedCluster.name === name && retainedCluster.unacknowledged.length > 0);
    const extraNames = [...contents.keys()].filter((name) => !expected.has(name) && !isRetained(name));
    return [
      ...missingEntries.map(([name, content]) => `${content}, has ${contents.get(name)}`),
      ...extraNames.map((name) => `-${name}`),
    ];
  }

  #connect(): AdsWorld {
    AdsWorld.instances.length = 0;
    const options = {
      isDelta: this.#isDelta,
      source: this.#source,
      clock: this.#clock,
      departedClusters: this.#departedClusters,
    };
    return new AdsWorld({ ...options, hasMakeBeforeBreak: true, recordsRoutine: false, isRecorded: false });
  }

  #reconnect(): void {
    this.#world.call.emit('cancelled');
    this.#world = this.#connect();
    const subscribedBefore = [...this.#subscribedNames];
    this.#subscribedNames.clear();
    for (const [typeUrl, names] of subscribedBefore) this.#subscribe(typeUrl, names);
  }

  #subscribe(typeUrl: string, names: readonly string[]): void {
    const subscribedBefore = this.#subscribedNames.get(typeUrl);
    this.#subscribedNames.set(typeUrl, names);
    const responseNonce = this.#world.watch(typeUrl)?.nonceSent ?? '';
    const contents = this.#contents.get(typeUrl);
    if (!this.#isDelta) {
      const versionInfo = contents === undefined ? '' : 'v';
      this.#world.sendSotw({ typeUrl, resourceNames: [...names], responseNonce, versionInfo });
      return;
    }
    const isFirst = this.#world.watch(typeUrl) === undefined;
    const initialResourceVersions = isFirst
      ? Object.fromEntries([...(contents?.values() ?? [])].map((content) => content.split('=') as [string, string]))
      : {};
    this.#world.sendDelta({
      typeUrl,
      resourceNamesSubscribe: names.filter((name) => isFirst || subscribedBefore?.includes(name) !== true),
      resourceNamesUnsubscribe: (subscribedBefore ?? []).filter((name) => !names.includes(name)),
      initialResourceVersions,
    });
    // The client removes resources from which it unsubscribes.
    const isWildcard = typeUrl === clusterType || typeUrl === listenerType;
    if (!isWildcard) for (const name of contents?.keys() ?? []) if (!names.includes(name)) contents!.delete(name);
  }

  /** @returns whether there was a response */
  #read(reaction: 'acknowledges' | 'is silent' | 'names another nonce'): boolean {
    const sentResponse = this.#world.read();
    if (sentResponse === undefined) return false;
    this.#applyResponse(sentResponse);
    if (reaction === 'is silent') return true;
    const { typeUrl } = sentResponse;
    const responseNonce = reaction === 'acknowledges' ? sentResponse.nonce : `${sentResponse.nonce}0`;
    const resourceNames = [...(this.#subscribedNames.get(typeUrl) ?? [])];
    if (this.#isDelta) this.#world.sendDelta({ typeUrl, responseNonce });
    else this.#world.sendSotw({ typeUrl, responseNonce, resourceNames });
    return true;
  }

  #applyResponse({ typeUrl, resources, removedNames }: ClientResponse): void {
    const isWildcard = typeUrl === clusterType || typeUrl === listenerType;
    const isFullResponse = !this.#isDelta && isWildcard;
    const contents = (isFullResponse ? undefined : this.#contents.get(typeUrl)) ?? new Map<string, string>();
    this.#contents.set(typeUrl, contents);
    const expected = this.#subscribedNames.get(typeUrl) ?? [];
    const isSubscribed = (name: string): boolean => isWildcard || expected.includes(name);
    for (const [name, content] of resources) if (isSubscribed(name)) contents.set(name, content);
    for (const name of removedNames) contents.delete(name);
  }

  // ---- the configuration

  #addCluster(name: string, after: 'assignment' | 'warming'): void {
    this.#source.usability.set(name, { usableAfter: after, assignment: name, secrets: new Set() });
    this.#source.set(clusterType, name);
    this.#source.set(endpointType, name);
  }

  #removeCluster(name: string): void {
    if ([...this.#namedClusters.values()].includes(name)) return;
    this.#source.remove(clusterType, name);
    this.#source.set(endpointType, name);
    this.#source.emptyAssignments.add(this.#source.contentsOf(endpointType).get(name)!);
    this.#world.push(clusterType, endpointType);
  }

  #moveRoute(name: string, cluster: string): void {
    this.#namedClusters.set(name, cluster);
    this.#source.setNaming(routes.includes(name) ? routeType : listenerType, name, cluster);
  }

  /** @param after when the client can use the cluster, if it is new */
  #moveTo(name: string, cluster: string, after: 'assignment' | 'warming'): void {
    if (this.#source.types.get(clusterType)?.has(cluster) !== true) this.#addCluster(cluster, after);
    this.#moveRoute(name, cluster);
    this.#world.push(clusterType, endpointType, listenerType, routeType);
  }
}

/** Returns the names whose bits are set. */
const selectNames = (names: readonly string[], bits: number): string[] =>
  names.filter((_, index) => (bits & (1 << index)) !== 0);

describe.each([
  ['state of the world', false],
  ['delta', true],
])('%s', (_, delta) => {
  test(
    'a client that temporarily violates the protocol receives the newest resources afterwards',
    () => {
      const steps = fc.array(stepArbitrary, { maxLength: 60, size: 'max' });
      const property = fc.property(steps, (all) => {
        const run = new HostileRun(delta);
        for (const step of all) run.step(step);
        expect(run.conform()).toEqual([]);
        expect(run.failure).toBeUndefined();
      });
      fc.assert(property, { numRuns: sized({ short: 150, full: 1_000 }), seed: 35 });
    },
    sized({ short: 120_000, full: 3_600_000 }),
  );
});
