/** Remote clusters as the chart `remote-clusters` has them: what Secrets name is told, what counts is offered as registries. */
import { isDeepStrictEqual } from 'node:util';
import { fromCallback } from 'xstate';
import type {
  ClusterSynced,
  ClustersListed,
  ResourceName,
} from '../../../machines/discovery/kubernetes/kubernetes-protocol.ts';
import {
  type FollowedRemote,
  remoteClustersMachine,
} from '../../../machines/discovery/remote/remote-clusters.machine.ts';
import type { RegistryOptions } from '../../model/services/service-registry.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { InformerEffects } from '../kubernetes/api-server.effects.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import type { ObjectStore } from '../kubernetes/store/object-store.ts';
import type { RegistryOffer, RegistryOffers } from '../registry/registry.ts';
import { RemoteCluster } from './remote-cluster.ts';
import { type NamedCluster, namedClusters } from './remote-secrets.ts';

/** Where Secrets that name clusters are known. */
export interface RemoteSecrets {
  readonly store: ObjectStore;
  /** @param changed whenever they are others, and when they are known for the first time */
  onChanged(changed: () => void): void;
}

export interface RemoteClustersOptions {
  /** Absent: there are no remote clusters, and never will be. */
  readonly secrets: RemoteSecrets | undefined;
  readonly ownCluster: string;
  /** What registries are told, now. */
  readonly settings: () => RegistryOptions;
  readonly log: Logger;
}

/** So many are named of those that are missing. */
const mostNamed = 4;

export class RemoteClusters {
  readonly #options: RemoteClustersOptions;
  /** What Secrets name, by id, each with the number of its kubeconfig. */
  #named = new Map<string, { readonly named: NamedCluster; readonly revision: string }>();
  /** By {@link RemoteCluster.server}: all whose charts run, and those that are about to. */
  readonly #clusters = new Map<string, RemoteCluster>();
  readonly #ofResource = new Map<ResourceName, RemoteCluster>();
  #started = 0;
  #problems: ReadonlySet<string> = new Set();
  /** What Secrets say, all of them. */
  #isKnown: boolean;
  #hasOffered: boolean;
  #tell: ((event: ClustersListed | ClusterSynced) => void) | undefined;
  #offered: ((offers: readonly RegistryOffer[]) => void) | undefined;
  #offers: readonly RegistryOffer[] = [];
  /** Those of the registries that are offered. */
  #settings: RegistryOptions | undefined;
  #settingsMade = 0;
  #inForce: readonly FollowedRemote[] = [];

  constructor(options: RemoteClustersOptions) {
    this.#options = options;
    this.#isKnown = options.secrets === undefined;
    this.#hasOffered = options.secrets === undefined;
    options.secrets?.onChanged(() => this.#secretsChanged());
  }

  /**
   * Nothing is offered, not even none, before the chart has taken up what all Secrets say: the start would go on without clusters that
   * there are.
   */
  readonly offers: RegistryOffers = (offered) => {
    this.#offered = offered;
    if (this.#hasOffered) offered(this.#offers);
    return () => {
      this.#offered = undefined;
    };
  };

  /** `namespace/name` of the Secret that names a cluster; empty: none does. */
  secretOf(cluster: string): string {
    return this.#named.get(cluster)?.named.secret ?? '';
  }

  /** What the API server of a cluster is asked beside what is followed: with the kubeconfig that counts. Undefined: no Secret names it. */
  serverOf(cluster: string): Pick<ApiServer, 'request'> | undefined {
    return this.#followed(cluster)?.api;
  }

  /** Why the API server of a remote cluster does not respond; undefined: it does, or no Secret names the cluster. */
  unreachable(cluster: string): string | undefined {
    const followed =
      this.#followed(cluster) ?? [...this.#clusters.values()].find(({ named }) => named.cluster === cluster);
    return followed?.unreachable;
  }

  #followed(cluster: string): RemoteCluster | undefined {
    const inForce = this.#inForce.find((one) => one.cluster === cluster)?.revision;
    return [...this.#clusters.values()].find(({ revision }) => revision === inForce);
  }

  /** Those of which not all was read yet, and why; empty: none. */
  get awaited(): string {
    const awaited = [...this.#clusters.values()].map((cluster) => cluster.awaited).filter((text) => text !== '');
    const more = awaited.length - mostNamed;
    return [...awaited.slice(0, mostNamed), ...(more > 0 ? [`${more} other remote clusters`] : [])].join(', ');
  }

  machine(): typeof remoteClustersMachine {
    const apiServer = InformerEffects.machineOf({
      ofServer: (server) => this.#clusters.get(server)!.informers,
      ofResource: (resource) => this.#ofResource.get(resource)!.informers,
    });
    return remoteClustersMachine.provide({
      actors: {
        apiServer,
        listClusters: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
          this.#tell = sendBack;
          if (this.#isKnown) this.#tellListed();
          return () => {
            this.#tell = undefined;
            for (const cluster of this.#clusters.values()) cluster.close();
          };
        }),
      },
      actions: { publishClusters: (_, { clusters }) => this.#publish(clusters) },
    });
  }

  /** The mesh configuration is another: registries that are told otherwise are made anew. */
  settingsChanged(): void {
    if (this.#settings !== undefined) this.#offer();
  }

  #secretsChanged(): void {
    const { secrets, ownCluster, log } = this.#options;
    const objects = [...(secrets?.store.entries() ?? [])].map(([, object]) => object);
    const { clusters, refused, problems } = namedClusters(objects, ownCluster);
    for (const problem of problems) {
      if (!this.#problems.has(problem)) log.warn('remoteCluster.secretInvalid', { reason: problem });
    }
    this.#problems = new Set(problems);
    const before = this.#named;
    this.#named = new Map();
    for (const [id, named] of clusters) this.#named.set(id, this.#revised(named, before.get(id)));
    // What a Secret says now will not do: what it said before goes on.
    for (const id of refused) if (before.has(id)) this.#named.set(id, before.get(id)!);
    for (const [id, { named }] of before)
      if (!this.#named.has(id)) log.info('remoteCluster.removed', { cluster: id, place: named.place });
    this.#isKnown = true;
    this.#tellListed();
  }

  #revised(named: NamedCluster, before: { readonly named: NamedCluster; readonly revision: string } | undefined) {
    if (before?.named.digest === named.digest) return before;
    const { log } = this.#options;
    const { cluster, access, place } = named;
    const event = before === undefined ? 'remoteCluster.added' : 'remoteCluster.changed';
    log.info(event, { cluster, server: access.server.origin, place });
    return { named, revision: `${++this.#started}` };
  }

  #tellListed(): void {
    if (this.#tell === undefined) return;
    const clusters = [...this.#named.values()].map(({ named, revision }) => {
      const { server, informers } = this.#clusterOf(named, revision);
      return { cluster: named.cluster, revision, server, resources: informers.resources };
    });
    this.#tell({ type: 'clusters.listed', clusters });
  }

  #clusterOf(named: NamedCluster, revision: string): RemoteCluster {
    const known = [...this.#clusters.values()].find((one) => one.revision === revision);
    if (known !== undefined) return known;
    const { settings, log } = this.#options;
    const synced = (): void => {
      log.info('remoteCluster.synced', { cluster: named.cluster });
      this.#tell?.({ type: 'cluster.synced', cluster: named.cluster, revision });
    };
    const made = new RemoteCluster({ named, revision, settings, synced, log });
    this.#clusters.set(made.server, made);
    for (const resource of made.informers.resources) this.#ofResource.set(resource, made);
    return made;
  }

  #publish(followed: readonly FollowedRemote[]): void {
    const revisions = new Set(followed.map(({ revision }) => revision));
    for (const [server, cluster] of this.#clusters) {
      if (revisions.has(cluster.revision)) continue;
      cluster.close();
      this.#clusters.delete(server);
      for (const resource of cluster.informers.resources) this.#ofResource.delete(resource);
    }
    this.#inForce = [...Map.groupBy(followed, ({ cluster }) => cluster).values()].map(([first]) => first!);
    this.#offer();
  }

  #offer(): void {
    const settings = this.#options.settings();
    if (!isDeepStrictEqual(settings, this.#settings)) {
      this.#settings = settings;
      this.#settingsMade++;
    }
    const offers = this.#inForce.map(({ cluster, revision }): RegistryOffer => {
      const made = [...this.#clusters.values()].find((one) => one.revision === revision)!;
      return {
        ...{ provider: 'Kubernetes', clusterId: cluster, revision: `${revision}.${this.#settingsMade}` },
        make: (updates) => made.make(updates),
      };
    });
    const isSame = (one: RegistryOffer, index: number): boolean =>
      one.clusterId === this.#offers[index]?.clusterId && one.revision === this.#offers[index]?.revision;
    if (this.#hasOffered && offers.length === this.#offers.length && offers.every(isSame)) return;
    this.#hasOffered = true;
    this.#offers = offers;
    // A chart is in the midst of its step.
    queueMicrotask(() => this.#offered?.(this.#offers));
  }
}
