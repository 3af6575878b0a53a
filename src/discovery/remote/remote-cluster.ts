/** One remote cluster with one kubeconfig: what is followed there, and the registries that are made of it. */
import type { ResourceName } from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { configKeyOf, parseConfigKey } from '../../model/config/config.ts';
import type { KindName } from '../../model/kinds/index.ts';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import { faultLog } from '../../runtime/fences/uncaught.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { OneByOne, Turns } from '../../runtime/turns.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import { InformerEffects, nameOf } from '../kubernetes/api-server.effects.ts';
import { OutageLog } from '../kubernetes/outage-log.ts';
import { StoredObjects } from '../kubernetes/readers/stored-objects.ts';
import { RefusedObjectLog } from '../kubernetes/store/refused-object-log.ts';
import { usualSelection } from '../kubernetes/store/usual-selection.ts';
import { Http2ApiServer } from '../kubernetes/transport/http2-api-server.ts';
import { KubernetesRegistry } from '../registry/kubernetes-registry.ts';
import type { Registry, XdsUpdater } from '../registry/registry.ts';
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
  readonly #objects: StoredObjects;
  /** Settles when all kinds were handed over. */
  readonly #listed: Promise<unknown>;
  readonly #registries = new Set<RemoteRegistry>();
  readonly #works = new OneByOne();
  readonly #fault: (error: unknown) => void;
  #isToBeRead = false;
  #hasRead = false;
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
    const { informers } = this;
    this.#objects = new StoredObjects({ address: `k8s://${cluster}`, informers, kinds: followedKinds, nameOf: name });
    this.#objects.onChanged(() => this.#moved());
    this.#listed = Promise.all(followedKinds.map((kind) => informers.firstSet(name(kind))));
    // An empty cluster reports no change.
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
    this.#registries.clear();
    this.#outage.close();
    this.api.close();
  }

  #attach(registry: RemoteRegistry): void {
    this.#do(async () => {
      this.#registries.add(registry);
      if (!this.#isSynced) return;
      if (this.#hasRead) {
        const turns = new Turns();
        const all = await turns.through(this.#objects.all());
        await turns.through(registry.changingObjects(all.map((current) => ({ key: configKeyOf(current), current }))));
      } else await this.#read();
      registry.complete();
    });
  }

  #moved(): void {
    if (this.#isToBeRead || this.#isClosed) return;
    this.#isToBeRead = true;
    // A cluster that does not respond is awaited here without a limit, and so are registries that are attached meanwhile.
    void this.#listed.then(() =>
      this.#do(async () => {
        this.#isToBeRead = false;
        if (this.#registries.size > 0) await this.#read();
        if (this.#isSynced) return;
        this.#isSynced = true;
        for (const registry of this.#registries) registry.complete();
        this.#options.synced();
      }),
    );
  }

  /** Not called without a registry: the first one that is attached gets all objects by its first reading. */
  async #read(): Promise<void> {
    this.#hasRead = true;
    const { named, log } = this.#options;
    const [registry] = this.#registries;
    const reading = await new Turns().through(this.#objects.reading((key) => registry?.objectOf(key)));
    for (const { object, field, message } of reading.problems) {
      log.warn('remoteCluster.objectInvalid', { cluster: named.cluster, object, field, reason: message });
    }
    const changes = reading.changes.map(({ key, current }) => ({ key: parseConfigKey(key), current }));
    for (const registry of this.#registries) await new Turns().through(registry.changingObjects(changes));
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
  protected override readonly feed: Feed;

  constructor(options: RegistryOptions, updater: XdsUpdater, feed: Feed) {
    super(options, updater);
    this.feed = feed;
  }
}
