import type { ResourceName } from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { configKeyOf, parseConfigKey } from '../../model/config/config.ts';
import type { KindName } from '../../model/kinds/index.ts';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import { faultLog } from '../../runtime/fences/uncaught.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { SerialQueue, Turns } from '../../runtime/turns.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import { InformerEffects, nameOf } from '../kubernetes/api-server.effects.ts';
import { OutageLog } from '../kubernetes/outage-log.ts';
import { StoredObjects } from '../kubernetes/readers/stored-objects.ts';
import { RejectedObjectLog } from '../kubernetes/store/refused-object-log.ts';
import { defaultSelection } from '../kubernetes/store/usual-selection.ts';
import { Http2ApiServer } from '../kubernetes/transport/http2-api-server.ts';
import { KubernetesRegistry } from '../registry/kubernetes-registry.ts';
import type { Registry, XdsUpdater } from '../registry/registry.ts';
import type { NamedCluster } from './remote-secrets.ts';

export interface RemoteClusterOptions {
  readonly namedCluster: NamedCluster;
  readonly revision: string;
  readonly settings: () => RegistryOptions;
  readonly onSynced: () => void;
  readonly log: Logger;
}

const followedKinds: readonly KindName[] = ['Service', 'EndpointSlice', 'Pod', 'Node', 'Namespace'];

export class RemoteCluster {
  readonly server: string;
  readonly informers: InformerEffects;
  readonly #options: RemoteClusterOptions;
  /** Used for requests other than lists and watches, which have separate connections. */
  readonly api: Http2ApiServer;
  readonly #objects: StoredObjects;
  readonly #listedPromise: Promise<unknown>;
  readonly #registries = new Set<RemoteRegistry>();
  readonly #serialWork = new SerialQueue();
  readonly #fault: (error: unknown) => void;
  #isReadPending = false;
  #hasReadOnce = false;
  #isSynced = false;
  #isClosed = false;
  readonly #outage: OutageLog;

  constructor(options: RemoteClusterOptions) {
    this.#options = options;
    const { namedCluster, revision, log } = options;
    this.#outage = new OutageLog(log, { cluster: namedCluster.cluster });
    const { cluster, access } = namedCluster;
    this.server = `${cluster} ${revision} ${access.server.origin}${access.server.pathname}`;
    this.api = new Http2ApiServer(access);
    const report = faultLog(log, 'kubernetes.changeFailed');
    this.#fault = (error) => report(error, { cluster });
    // The name contains cluster and revision, so that it is unique among all servers.
    const name = (kind: KindName): ResourceName => `${cluster}/${revision}/${nameOf(resourceOf(kind))}`;
    const rejectedObjectLog = new RejectedObjectLog((fields) =>
      log.warn('object.limitExceeded', { cluster, ...fields }),
    );
    this.informers = new InformerEffects({
      server: this.api,
      onRejected: (kind, key, reason) => rejectedObjectLog.report(kind, key, reason),
      kinds: followedKinds.map((kind) => {
        const resource = resourceOf(kind);
        return { resource, name: name(kind), selection: defaultSelection(resource) };
      }),
      random: Math.random,
      now: () => performance.now(),
      onLost: (reason) => this.#outage.report(reason),
      fault: this.#fault,
    });
    const { informers } = this;
    this.#objects = new StoredObjects({ address: `k8s://${cluster}`, informers, kinds: followedKinds, nameOf: name });
    this.#objects.onChanged(() => this.#scheduleRead());
    this.#listedPromise = Promise.all(followedKinds.map((kind) => informers.waitForFirstSet(name(kind))));
    // Required for an empty cluster, which reports no change.
    this.#scheduleRead();
  }

  get namedCluster(): NamedCluster {
    return this.#options.namedCluster;
  }

  get revision(): string {
    return this.#options.revision;
  }

  /** Empty if the cluster is completely read. */
  get unsyncedText(): string {
    if (this.#isSynced) return '';
    const { reason = '' } = this.informers.unsyncedKinds.find(({ reason }) => reason !== undefined) ?? {};
    const unreachableReason = this.unreachableReason ?? reason;
    return `remote cluster ${this.namedCluster.cluster}${unreachableReason === '' ? '' : ` (${unreachableReason})`}`;
  }

  /** `undefined` if the API server responds, or before the first request. */
  get unreachableReason(): string | undefined {
    return this.#outage.reason;
  }

  /** The registry is synced when all objects are known. */
  createRegistry(updates: XdsUpdater): Registry {
    const options = { ...this.#options.settings(), clusterId: this.namedCluster.cluster };
    return new RemoteRegistry(options, updates, {
      attach: (registry) => this.#attach(registry),
      detach: (registry) => void this.#registries.delete(registry),
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#registries.clear();
    this.#outage.close();
    this.api.close();
  }

  #attach(registry: RemoteRegistry): void {
    this.#runSerially(async () => {
      this.#registries.add(registry);
      if (!this.#isSynced) return;
      if (this.#hasReadOnce) {
        const workTurns = new Turns();
        const allUpdates = await workTurns.runSteps(this.#objects.readAll());
        await workTurns.runSteps(
          registry.changeObjectsInSteps(allUpdates.map((current) => ({ key: configKeyOf(current), current }))),
        );
      } else await this.#readObjects();
      registry.complete();
    });
  }

  #scheduleRead(): void {
    if (this.#isReadPending || this.#isClosed) return;
    this.#isReadPending = true;
    // Waits without limit for a cluster that does not respond. Registries that are added in the meantime wait too.
    void this.#listedPromise.then(() =>
      this.#runSerially(async () => {
        this.#isReadPending = false;
        if (this.#registries.size > 0) await this.#readObjects();
        if (this.#isSynced) return;
        this.#isSynced = true;
        for (const registry of this.#registries) registry.complete();
        this.#options.onSynced();
      }),
    );
  }

  /** Called only if there is a registry. The first registry receives all objects in its first read. */
  async #readObjects(): Promise<void> {
    this.#hasReadOnce = true;
    const { namedCluster, log } = this.#options;
    const [registry] = this.#registries;
    const objectsReading = await new Turns().runSteps(this.#objects.readInSteps((key) => registry?.objectOf(key)));
    for (const { object, field, message } of objectsReading.problems) {
      log.warn('remoteCluster.objectInvalid', { cluster: namedCluster.cluster, object, field, reason: message });
    }
    const changes = objectsReading.changes.map(({ key, current }) => ({ key: parseConfigKey(key), current }));
    for (const registry of this.#registries) await new Turns().runSteps(registry.changeObjectsInSteps(changes));
  }

  #runSerially(task: () => Promise<void>): void {
    this.#serialWork.run(async () => (this.#isClosed ? undefined : task())).catch(this.#fault);
  }
}

interface RemoteFeed {
  attach(registry: RemoteRegistry): void;
  detach(registry: RemoteRegistry): void;
}

class RemoteRegistry extends KubernetesRegistry {
  protected override readonly feed: RemoteFeed;

  constructor(options: RegistryOptions, updater: XdsUpdater, feed: RemoteFeed) {
    super(options, updater);
    this.feed = feed;
  }
}
