import { isDeepStrictEqual } from 'node:util';
import { fromCallback } from 'xstate';
import type {
  ClusterSynced,
  ClustersListed,
  ResourceName,
} from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import { type KnownRemote, remoteClustersMachine } from '../../../machines/discovery/remote/remote-clusters.machine.ts';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { InformerEffects } from '../kubernetes/api-server.effects.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import type { ObjectStore } from '../kubernetes/store/object-store.ts';
import type { RegistryOffer, RegistryOffers } from '../registry/registry.ts';
import { RemoteCluster } from './remote-cluster.ts';
import { type NamedCluster, namedClusters } from './remote-secrets.ts';

export interface RemoteSecrets {
  readonly store: ObjectStore;
  /** @param onChanged also called when the Secrets are first known */
  onChanged(onChanged: () => void): void;
}

export interface RemoteClustersOptions {
  /** Absent if there are no remote clusters. */
  readonly secrets: RemoteSecrets | undefined;
  readonly ownCluster: string;
  readonly settings: () => RegistryOptions;
  readonly log: Logger;
}

const maxNamedClusters = 4;

export class RemoteClusters {
  readonly #options: RemoteClustersOptions;
  #namedClusters = new Map<string, { readonly named: NamedCluster; readonly revision: string }>();
  /** Includes clusters whose actor has not started yet. Keyed by {@link RemoteCluster.server}. */
  readonly #clusters = new Map<string, RemoteCluster>();
  readonly #clustersByResource = new Map<ResourceName, RemoteCluster>();
  #startedCount = 0;
  #problems: ReadonlySet<string> = new Set();
  #haveSecretsBeenRead: boolean;
  #hasSentOffers: boolean;
  #sendEvent: ((event: ClustersListed | ClusterSynced) => void) | undefined;
  #onOffers: ((offers: readonly RegistryOffer[]) => void) | undefined;
  #offers: readonly RegistryOffer[] = [];
  #settings: RegistryOptions | undefined;
  #settingsRevision = 0;
  #publishedRemotes: readonly KnownRemote[] = [];

  constructor(options: RemoteClustersOptions) {
    this.#options = options;
    this.#haveSecretsBeenRead = options.secrets === undefined;
    this.#hasSentOffers = options.secrets === undefined;
    options.secrets?.onChanged(() => this.#secretsChanged());
  }

  /** Offers nothing, not even an empty list, until the chart has the clusters of all Secrets. Otherwise, startup would continue without them. */
  readonly offers: RegistryOffers = (onOffers) => {
    this.#onOffers = onOffers;
    if (this.#hasSentOffers) onOffers(this.#offers);
    return () => {
      this.#onOffers = undefined;
    };
  };

  /** `NAMESPACE/NAME`, or empty. */
  secretOf(cluster: string): string {
    return this.#namedClusters.get(cluster)?.named.secret ?? '';
  }

  /** Used for requests other than lists and watches. `undefined` if no Secret defines the cluster. */
  serverOf(cluster: string): Pick<ApiServer, 'request'> | undefined {
    return this.#activeCluster(cluster)?.api;
  }

  /** `undefined` if the API server responds, or if no Secret defines the cluster. */
  unreachableReason(cluster: string): string | undefined {
    const followedRemotes =
      this.#activeCluster(cluster) ??
      [...this.#clusters.values()].find(({ namedCluster }) => namedCluster.cluster === cluster);
    return followedRemotes?.unreachableReason;
  }

  #activeCluster(cluster: string): RemoteCluster | undefined {
    const activeRevision = this.#publishedRemotes.find((offer) => offer.cluster === cluster)?.revision;
    return [...this.#clusters.values()].find(({ revision }) => revision === activeRevision);
  }

  /** Empty if all clusters are completely read. */
  get unsyncedText(): string {
    const unsyncedTexts = [...this.#clusters.values()]
      .map((cluster) => cluster.unsyncedText)
      .filter((text) => text !== '');
    const omittedCount = unsyncedTexts.length - maxNamedClusters;
    return [
      ...unsyncedTexts.slice(0, maxNamedClusters),
      ...(omittedCount > 0 ? [`${omittedCount} other remote clusters`] : []),
    ].join(', ');
  }

  machine(): typeof remoteClustersMachine {
    const apiServer = InformerEffects.machineOf({
      effectsOfServer: (server) => this.#clusters.get(server)!.informers,
      effectsOfResource: (resource) => this.#clustersByResource.get(resource)!.informers,
    });
    return remoteClustersMachine.provide({
      actors: {
        apiServer,
        listClusters: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
          this.#sendEvent = sendBack;
          if (this.#haveSecretsBeenRead) this.#reportListed();
          return () => {
            this.#sendEvent = undefined;
            for (const cluster of this.#clusters.values()) cluster.close();
          };
        }),
      },
      actions: { publishClusters: (_, { clusters }) => this.#publish(clusters) },
    });
  }

  /** Recreates registries whose options changed. */
  onSettingsChanged(): void {
    if (this.#settings !== undefined) this.#offerRegistries();
  }

  #secretsChanged(): void {
    const { secrets, ownCluster, log } = this.#options;
    const objects = [...(secrets?.store.entries() ?? [])].map(([, object]) => object);
    const { clusters, rejectedIds: refusedClusters, problems } = namedClusters(objects, ownCluster);
    for (const problem of problems) {
      if (!this.#problems.has(problem)) log.warn('remoteCluster.secretInvalid', { reason: problem });
    }
    this.#problems = new Set(problems);
    const previous = this.#namedClusters;
    this.#namedClusters = new Map();
    for (const [id, namedCluster] of clusters)
      this.#namedClusters.set(id, this.#withRevision(namedCluster, previous.get(id)));
    // If a kubeconfig is invalid, its cluster keeps the previous one.
    for (const id of refusedClusters) if (previous.has(id)) this.#namedClusters.set(id, previous.get(id)!);
    for (const [id, { named }] of previous)
      if (!this.#namedClusters.has(id)) log.info('remoteCluster.removed', { cluster: id, place: named.location });
    this.#haveSecretsBeenRead = true;
    this.#reportListed();
  }

  #withRevision(
    namedCluster: NamedCluster,
    previous: { readonly named: NamedCluster; readonly revision: string } | undefined,
  ) {
    if (previous?.named.digest === namedCluster.digest) return previous;
    const { log } = this.#options;
    const { cluster, access, location } = namedCluster;
    const event = previous === undefined ? 'remoteCluster.added' : 'remoteCluster.changed';
    log.info(event, { cluster, server: access.server.origin, place: location });
    return { named: namedCluster, revision: `${++this.#startedCount}` };
  }

  #reportListed(): void {
    if (this.#sendEvent === undefined) return;
    const clusters = [...this.#namedClusters.values()].map(({ named, revision }) => {
      const { server, informers } = this.#clusterOf(named, revision);
      return { cluster: named.cluster, revision, server, resources: informers.resources };
    });
    this.#sendEvent({ type: 'clusters.listed', clusters });
  }

  #clusterOf(namedCluster: NamedCluster, revision: string): RemoteCluster {
    const existingCluster = [...this.#clusters.values()].find((remoteCluster) => remoteCluster.revision === revision);
    if (existingCluster !== undefined) return existingCluster;
    const { settings, log } = this.#options;
    const onSynced = (): void => {
      log.info('remoteCluster.synced', { cluster: namedCluster.cluster });
      this.#sendEvent?.({ type: 'cluster.synced', cluster: namedCluster.cluster, revision });
    };
    const remote = new RemoteCluster({ namedCluster, revision, settings, onSynced: onSynced, log });
    this.#clusters.set(remote.server, remote);
    for (const resource of remote.informers.resources) this.#clustersByResource.set(resource, remote);
    return remote;
  }

  #publish(followedRemotes: readonly KnownRemote[]): void {
    const revisions = new Set(followedRemotes.map(({ revision }) => revision));
    for (const [server, cluster] of this.#clusters) {
      if (revisions.has(cluster.revision)) continue;
      cluster.close();
      this.#clusters.delete(server);
      for (const resource of cluster.informers.resources) this.#clustersByResource.delete(resource);
    }
    this.#publishedRemotes = [...Map.groupBy(followedRemotes, ({ cluster }) => cluster).values()].map(
      ([first]) => first!,
    );
    this.#offerRegistries();
  }

  #offerRegistries(): void {
    const settings = this.#options.settings();
    if (!isDeepStrictEqual(settings, this.#settings)) {
      this.#settings = settings;
      this.#settingsRevision++;
    }
    const offers = this.#publishedRemotes.map(({ cluster, revision }): RegistryOffer => {
      const remote = [...this.#clusters.values()].find((remoteCluster) => remoteCluster.revision === revision)!;
      return {
        ...{ provider: 'Kubernetes', clusterId: cluster, revision: `${revision}.${this.#settingsRevision}` },
        create: (updates) => remote.createRegistry(updates),
      };
    });
    const isSameOffer = (offer: RegistryOffer, index: number): boolean =>
      offer.clusterId === this.#offers[index]?.clusterId && offer.revision === this.#offers[index]?.revision;
    if (this.#hasSentOffers && offers.length === this.#offers.length && offers.every(isSameOffer)) return;
    this.#hasSentOffers = true;
    this.#offers = offers;
    // Deferred until the chart's current transition has ended.
    queueMicrotask(() => this.#onOffers?.(this.#offers));
  }
}
