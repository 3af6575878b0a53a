/** One remote cluster with one kubeconfig: what is followed there, and the registries that are made of it. */
import type { ResourceName } from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { parseConfigKey } from '../../model/config/config.ts';
import type { KindName } from '../../model/kinds/index.ts';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import { faultLog } from '../../runtime/fences/uncaught.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { OneByOne, Turns } from '../../runtime/turns.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import { ClusterSource } from '../kubernetes/cluster-source.ts';
import { Http2ApiServer } from '../kubernetes/http2-api-server.ts';
import { InformerEffects, nameOf } from '../kubernetes/informer-effects.ts';
import { OutageLog } from '../kubernetes/outage-log.ts';
import { RefusedObjectLog } from '../kubernetes/refused-object-log.ts';
import { usualSelection } from '../kubernetes/usual-selection.ts';
import { KubernetesRegistry } from '../registry/kubernetes-registry.ts';
import type { Registry, RegistryEvents, XdsUpdater } from '../registry/registry.ts';
import type { NamedCluster } from './remote-secrets.ts';

export interface RemoteClusterOptions {
  readonly named: NamedCluster;
  /** Which kubeconfig of the cluster it is. */
  readonly revision: string;
  /** What registries are told, at the moment when one is made. */
  readonly settings: () => RegistryOptions;
  /** All that the cluster has was read once. */
  readonly synced: () => void;
  readonly log: Logger;
}

/** Kinds that the registry of a cluster is made of. */
const followedKinds: readonly KindName[] = ['Service', 'EndpointSlice', 'Pod', 'Node', 'Namespace'];

export class RemoteCluster {
  /** How the chart of its API server calls it. */
  readonly server: string;
  readonly informers: InformerEffects;
  readonly #options: RemoteClusterOptions;
  /** What is asked beside what is followed has connections of its own. */
  readonly api: Http2ApiServer;
  readonly #source: ClusterSource;
  readonly #registries = new Set<RemoteRegistry>();
  readonly #works = new OneByOne();
  readonly #fault: (error: unknown) => void;
  #isToBeRead = false;
  #isSynced = false;
  #isClosed = false;
  readonly #outage: OutageLog;

  constructor(options: RemoteClusterOptions) {
    this.#options = options;
    const { named, revision, log } = options;
    this.#outage = new OutageLog(log, { cluster: named.cluster });
    const { cluster, access } = named;
    this.server = `${cluster} ${revision} ${access.server.origin}${access.server.pathname}`;
    this.api = new Http2ApiServer(access);
    const report = faultLog(log, 'kubernetes.changeFailed');
    this.#fault = (error) => report(error, { cluster });
    // No other server's kind may have the name.
    const name = (kind: KindName): ResourceName => `${cluster}/${revision}/${nameOf(resourceOf(kind))}`;
    const refusals = new RefusedObjectLog((fields) => log.warn('object.limitExceeded', { cluster, ...fields }));
    this.informers = new InformerEffects({
      server: this.api,
      refused: (kind, key, reason) => refusals.refused(kind, key, reason),
      kinds: followedKinds.map((kind) => {
        const resource = resourceOf(kind);
        return { resource, name: name(kind), selection: usualSelection(resource) };
      }),
      draw: Math.random,
      now: () => performance.now(),
      lost: (reason) => this.#outage.report(reason),
      fault: this.#fault,
    });
    this.#source = new ClusterSource({
      ...{ address: `k8s://${cluster}`, informers: this.informers, kinds: followedKinds, nameOf: name, revision: '' },
    });
    this.#source.watch({ changed: () => this.#moved(), failed: this.#fault });
    // Of a cluster that has nothing, nobody says that it changed.
    this.#moved();
  }

  get named(): NamedCluster {
    return this.#options.named;
  }

  get revision(): string {
    return this.#options.revision;
  }

  /** Why not all of it was read yet, as far as that is known; empty: all was. */
  get awaited(): string {
    if (this.#isSynced) return '';
    const { reason = '' } = this.informers.awaited.find(({ reason }) => reason !== undefined) ?? {};
    const why = this.unreachable ?? reason;
    return `remote cluster ${this.named.cluster}${why === '' ? '' : ` (${why})`}`;
  }

  /** Why its API server does not respond; undefined: it does, or no request was sent yet. */
  get unreachable(): string | undefined {
    return this.#outage.reason;
  }

  /** A registry of what the cluster has; it is synced as soon as that is known. */
  make(updates: XdsUpdater): Registry {
    const options = { ...this.#options.settings(), clusterId: this.named.cluster };
    return new RemoteRegistry(options, updates, {
      attach: (registry) => this.#attach(registry),
      detach: (registry) => void this.#registries.delete(registry),
    });
  }

  /** Nothing is asked any more, and nobody is told anything. */
  close(): void {
    this.#isClosed = true;
    this.#source.watch({ changed: () => {}, failed: () => {} })();
    this.#registries.clear();
    this.#outage.close();
    this.api.close();
  }

  #attach(registry: RemoteRegistry): void {
    this.#do(async () => {
      this.#registries.add(registry);
      const all = [...this.#source.snapshot.byKey].map(([key, current]) => ({ key: parseConfigKey(key), current }));
      await new Turns().through(registry.changingObjects(all));
      if (this.#isSynced) registry.complete();
    });
  }

  #moved(): void {
    if (this.#isToBeRead) return;
    this.#isToBeRead = true;
    // A cluster that does not answer is waited for here, however long: whoever is attached meanwhile waits, too.
    void this.#source.synced.then(() => this.#do(() => this.#read()));
  }

  async #read(): Promise<void> {
    this.#isToBeRead = false;
    const reading = await this.#source.read();
    const { named, log } = this.#options;
    if (reading.outcome !== 'read') return;
    for (const { object, field, message } of reading.problems) {
      log.warn('remoteCluster.objectInvalid', { cluster: named.cluster, object, field, reason: message });
    }
    const { byKey } = this.#source.snapshot;
    const changes = [...reading.touched].map((key) => ({ key: parseConfigKey(key), current: byKey.get(key) }));
    for (const registry of this.#registries) await new Turns().through(registry.changingObjects(changes));
    if (this.#isSynced) return;
    this.#isSynced = true;
    for (const registry of this.#registries) registry.complete();
    this.#options.synced();
  }

  #do(work: () => Promise<void>): void {
    this.#works.do(async () => (this.#isClosed ? undefined : work())).catch(this.#fault);
  }
}

interface Feed {
  attach(registry: RemoteRegistry): void;
  detach(registry: RemoteRegistry): void;
}

/** Services of a remote cluster: as of any cluster, and synced when all of them were handed over. */
class RemoteRegistry extends KubernetesRegistry {
  readonly #feed: Feed;
  #isComplete = false;

  constructor(options: RegistryOptions, updater: XdsUpdater, feed: Feed) {
    super(options, updater);
    this.#feed = feed;
  }

  override run(events?: RegistryEvents): void {
    super.run(events);
    this.#feed.attach(this);
  }

  override stop(): void {
    super.stop();
    this.#feed.detach(this);
  }

  override hasSynced(): boolean {
    return this.#isComplete && super.hasSynced();
  }

  /** All that the cluster has was handed over. */
  complete(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    this.tellSynced();
  }
}
