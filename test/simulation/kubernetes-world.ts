/**
 * The charts of an API server and its kinds, with their own effects and stores, in front of a simulated API server under a virtual
 * clock. After each step every store is compared with the server's state at that version: it must be complete, must have existed,
 * and must not be older than before.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Actor, AnyActorRef } from 'xstate';
import { apiServerMachine } from '../../machines/discovery/kubernetes/api-server.machine.ts';
import { informerMachine } from '../../machines/discovery/kubernetes/informer.machine.ts';
import type { InformerRecord } from '../../machines/discovery/kubernetes/informer-rules.ts';
import { type ApiResource, customResourceDefinitions } from '../../src/discovery/kubernetes/api-resource.ts';
import { type InformerCharts, InformerEffects, nameOf } from '../../src/discovery/kubernetes/api-server.effects.ts';
import type { ApiServer, KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import type { ObjectChange } from '../../src/discovery/kubernetes/store/object-store.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { SimulatedApiServer } from './simulated-api-server.ts';
import { VirtualClock } from './virtual-clock.ts';

const customResource = { group: 'networking.istio.io', version: 'v1', namespaced: true } as const;
export const services: ApiResource = {
  group: '',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  namespaced: true,
};
export const pods: ApiResource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
export const routes: ApiResource = { ...customResource, plural: 'virtualservices', kind: 'VirtualService' };
export { customResourceDefinitions as definitions };

export interface WorldOptions {
  readonly resources?: readonly ApiResource[];
  /** Charts with deliberate faults. */
  readonly charts?: Partial<InformerCharts>;
  /** A layer between the effects and the server that adds deliberate faults. */
  readonly port?: (server: ApiServer) => ApiServer;
  /** Whether no trace is recorded, for many worlds. */
  readonly recordsNothing?: boolean;
}

/** Limit for all kinds together; each may have to try its alternatives immediately. */
const maxPerSecond = 60;

interface FollowedResource {
  readonly resource: ApiResource;
  /** Objects built only from the changes that a reader received. */
  readonly receivedObjects: Map<string, KubernetesObject>;
  readonly changes: ObjectChange[];
  /** The latest era to which the known state can belong. */
  era: number;
}

export class KubernetesWorld {
  static readonly instances: KubernetesWorld[] = [];
  readonly clock = new VirtualClock();
  readonly server: SimulatedApiServer;
  readonly records: TraceRecord[] = [];
  readonly violations: string[] = [];
  readonly lostReasons: (string | undefined)[] = [];
  readonly faults: unknown[] = [];
  readonly actor: Actor<typeof apiServerMachine>;
  readonly effects: InformerEffects;
  /** A reader that has not processed its changes delays the sync of a kind. */
  pendingHandling: Promise<void> | undefined;
  syncedCount = 0;
  failure: unknown;
  readonly #followedResources: readonly FollowedResource[];
  #drawCount = 0;

  constructor({
    resources = [services, routes, customResourceDefinitions],
    charts,
    port = (server) => server,
    recordsNothing = false,
  }: WorldOptions = {}) {
    if (!recordsNothing) KubernetesWorld.instances.push(this);
    this.server = new SimulatedApiServer(this.clock, resources);
    this.#followedResources = resources.map((resource) => ({
      resource,
      receivedObjects: new Map(),
      changes: [],
      era: 0,
    }));
    this.effects = new InformerEffects({
      server: port(this.server),
      kinds: resources.map((resource) => ({ resource })),
      random: () => (this.#drawCount++ * 0.618) % 1,
      now: this.clock.now,
      onSynced: () => void this.syncedCount++,
      onLost: (reason) => void this.lostReasons.push(reason),
      fault: (error) => void this.faults.push(error),
    });
    for (const followed of this.#followedResources) {
      this.effects.addReader(followed.resource, (changes) => {
        this.#handleChanges(followed, changes);
        return this.pendingHandling;
      });
    }
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    recorder.observe((record) => this.records.push(record));
    const chart = this.effects.machine({ server: apiServerMachine, informer: informerMachine, ...charts });
    this.actor = startRoot(chart, {
      id: 'api-server-0',
      input: { server: 'https://cluster', resources: this.effects.resources, firstInformer: 1 },
      ...(!recordsNothing && { recorder }),
      clock: this.clock as never,
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  async passTime(ms: number): Promise<void> {
    const untilMs = this.clock.now() + ms;
    await this.#settle();
    for (let next = this.clock.nextDueMs(); next !== undefined && next <= untilMs; next = this.clock.nextDueMs()) {
      while (this.clock.nextDueMs() === next) this.clock.fireNext();
      await this.#settle();
    }
    this.clock.advance(untilMs - this.clock.now());
  }

  state(): string {
    return pathOf(this.actor.getSnapshot().value);
  }

  informer(resource: ApiResource): AnyActorRef {
    const number = this.#followedResources.findIndex((followed) => followed.resource === resource) + 1;
    return this.actor.getSnapshot().children[`informer-${number}`] as unknown as AnyActorRef;
  }

  stateOf(resource: ApiResource): string {
    return pathOf((this.informer(resource).getSnapshot() as { value: unknown }).value);
  }

  recordOf(resource: ApiResource): InformerRecord {
    return (this.informer(resource).getSnapshot() as { context: InformerRecord }).context;
  }

  names(resource: ApiResource): string[] {
    return [...this.effects.storeOf(resource).entries()].map(([key]) => key.split('/')[1]!).sort();
  }

  changesOf(resource: ApiResource): string[] {
    const { changes } = this.#followedResources.find((followed) => followed.resource === resource)!;
    return changes.map(({ event, key }) => `${event} ${key.split('/')[1]}`);
  }

  /** Differences between stores and the server. */
  differences(): string[] {
    return this.#followedResources.flatMap(({ resource }) => {
      const cachedContent = contentOf(this.effects.storeOf(resource).entries());
      const serverContent = contentOf(this.server.objectsOf(resource).entries());
      // An absent kind is requested at intervals.
      const isAbsent = this.recordOf(resource).handed === 'absence' && !this.server.isDefined(resource);
      const isIdle = isAbsent || /watching|absent/.test(this.stateOf(resource));
      if (isDeepStrictEqual(cachedContent, serverContent) && isIdle) return [];
      return [`${nameOf(resource)} in ${this.stateOf(resource)}: has ${cachedContent}, and there are ${serverContent}`];
    });
  }

  end(): void {
    this.actor.stop();
  }

  async #settle(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#checkInvariants();
  }

  #handleChanges(followed: FollowedResource, changes: readonly ObjectChange[]): void {
    followed.changes.push(...changes);
    for (const change of changes) {
      const { key, event } = change;
      const knownObject = followed.receivedObjects.get(key);
      if ((event === 'add') !== (knownObject === undefined))
        this.violations.push(`${event} of ${key} is no difference`);
      if (event !== 'add' && knownObject !== change.previous)
        this.violations.push(`the previous object of ${key} is not the one that was received before`);
      if (event === 'update' && change.object.metadata.uid !== change.previous.metadata.uid)
        this.violations.push(`an update of ${key} has another uid`);
      if (event === 'delete') followed.receivedObjects.delete(key);
      else followed.receivedObjects.set(key, change.object);
    }
  }

  #checkInvariants(): void {
    const recent = this.server.requests.slice(-maxPerSecond - 1);
    if (recent.length > maxPerSecond && recent.at(-1)!.at - recent[0]!.at < 1_000)
      this.violations.push(`asks ${recent.length} times a second: ${JSON.stringify(recent.slice(-3))}`);
    if (this.failure !== undefined) this.violations.push(`a chart failed: ${this.failure}`);
    for (const followed of this.#followedResources) {
      const { resource, receivedObjects } = followed;
      const knownContent = contentOf(this.effects.storeOf(resource).entries());
      if (!isDeepStrictEqual(contentOf(receivedObjects.entries()), knownContent))
        this.violations.push(
          `${nameOf(resource)}: received ${contentOf(receivedObjects.entries())}, but the store has ${knownContent}`,
        );
      const { version, handed } = this.recordOf(resource);
      const at = version === '' || handed === 'nothing' ? 0 : Number(version);
      const eras = Array.from({ length: this.server.era + 1 }, (_, era) => era).filter((era) =>
        isDeepStrictEqual(contentOf((this.server.stateAt(resource, at, era) ?? new Map()).entries()), knownContent),
      );
      const era = eras.find((one) => one >= followed.era);
      if (at === 0 ? knownContent.length > 0 && handed !== 'nothing' : era === undefined) {
        this.violations.push(`${nameOf(resource)} has at ${version} what never was: ${knownContent}`);
      }
      followed.era = Math.max(followed.era, era ?? 0);
    }
  }
}

const contentOf = (objects: Iterable<[string, KubernetesObject]>): string[] =>
  [...objects].map(([key, { metadata }]) => `${key}@${metadata.uid}.${metadata.resourceVersion}`).sort();

function pathOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Object.entries(value as object)
    .map(([name, inner]) => `${name}.${pathOf(inner)}`)
    .join();
}
