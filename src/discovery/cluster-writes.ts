/** What replicas write in a cluster, each thing by the one that is elected to: what they must know for it, and all their duties. */

import type { KindName } from '../model/kinds/index.ts';
import type { MeshConfig } from '../model/mesh/mesh-config.ts';
import type { Logger } from '../runtime/output/log.ts';
import type { Signing } from './authority/signing.ts';
import type { ClusterSigning } from './cluster-signing.ts';
import { clusterConfig } from './config/config-sources.ts';
import type { MeshConfigs } from './config/mesh-configs.ts';
import type { DiscoveryOptions } from './discovery-options.ts';
import { ClusterObjects, problemsText } from './distribution/cluster-objects.ts';
import { ObjectDistribution } from './distribution/distribution.ts';
import type { ObjectDistributionOptions } from './distribution/distribution-options.ts';
import { statusKinds } from './distribution/status-objects.ts';
import type { FollowedCluster } from './followed-cluster.ts';
import { resourceOf } from './kubernetes/api-resource.ts';
import { type DutySources, dutiesOf, leaseOfRevision } from './leader/duties.ts';
import { Elections } from './leader/elections.ts';
import { processMoment } from './leader/leader-term.ts';
import { leaseTimesOf } from './leader/lease-times.ts';
import { OtherReplicas } from './leader/other-replicas.ts';
import { RejectionEvents } from './leader/rejection-events.ts';
import { presenceLeaseOf } from './leader/replica-presence.ts';
import { ReplicaWords } from './leader/status/replica-words.ts';
import type { StatusInputs } from './leader/status/status-inputs.ts';
import { OrphanedEntries } from './registration/orphaned-entries.ts';

export interface ClusterWritesOptions extends Pick<ObjectDistributionOptions, 'configs' | 'proxies' | 'made'> {
  readonly cluster: FollowedCluster;
  readonly options: DiscoveryOptions;
  /** Undefined: nothing is signed here. */
  readonly signing: Signing | undefined;
  readonly clusterSigning: ClusterSigning;
  readonly statusInputs: StatusInputs;
  readonly limits: Pick<MeshConfigs, 'onLimited'>;
  readonly mesh: () => MeshConfig;
  /** @param changed the mesh configuration may be another */
  readonly onMesh: (changed: () => void) => void;
  /** Is called when other replicas may serve proxies than before. */
  readonly replicasChanged: () => void;
  /** Warns of what is written into statuses. */
  readonly log: Pick<Logger, 'warn'>;
}

export class ClusterWrites {
  /** What has become of the cluster's objects in proxies. */
  readonly distribution: ObjectDistribution;
  /** What replicas that have died have left. */
  readonly orphans: OrphanedEntries;
  /** Elections, one for each duty. */
  readonly elections: Elections;
  readonly #writes: ClusterWritesOptions;
  readonly #others: OtherReplicas;
  readonly #words: ReplicaWords;

  constructor(writes: ClusterWritesOptions) {
    this.#writes = writes;
    const { cluster, options, replicasChanged } = writes;
    this.#others = new OtherReplicas({
      ...{ server: cluster.server, namespace: options.namespace, identity: cluster.identity },
      ...{ leaseMs: options.leaseMs, now: () => performance.now(), changed: replicasChanged },
    });
    this.distribution = this.#makeDistribution();
    this.#words = this.#makeWords();
    this.orphans = this.#makeOrphans();
    this.elections = this.#makeElections();
  }

  /** Whether no other replica may serve proxies, as far as is known; starts a new look at the Leases. */
  isOnlyReplica(): boolean {
    void this.#others.look();
    return this.#others.mayServe?.length === 0;
  }

  #makeDistribution(): ObjectDistribution {
    const { cluster, configs, limits, proxies, made } = this.#writes;
    return new ObjectDistribution({
      objects: new ClusterObjects({
        source: cluster.sources.get(clusterConfig)!,
        limits,
        objectOf: (kind, key) => cluster.informers.storeOf(resourceOf(kind)).get(key),
      }),
      ...{ configs, proxies, made },
      others: this.#others,
      now: () => performance.now(),
    });
  }

  #makeWords(): ReplicaWords {
    const { informers, identity } = this.#writes.cluster;
    const words = new ReplicaWords(identity);
    for (const kind of statusKinds) informers.addReader(resourceOf(kind), (changes) => words.read(kind, changes));
    return words;
  }

  #makeOrphans(): OrphanedEntries {
    const { server, informers, identity } = this.#writes.cluster;
    const { namespace, leaseMs, registration } = this.#writes.options;
    return new OrphanedEntries({
      ...{ server, namespace, identity, leaseMs, graceMs: registration.graceMs, words: this.#words },
      entries: () => (registration.enabled ? informers.storeOf(resourceOf('WorkloadEntry')).values() : []),
      now: () => performance.now(),
    });
  }

  #makeEvents(): RejectionEvents {
    const { cluster, options, limits, log } = this.#writes;
    const { informers, identity, sources } = cluster;
    const events = new RejectionEvents({
      ...{ lease: leaseOfRevision('chartpilot-rejection-events', options.revision), identity, log },
      objectOf: (kind, key) => informers.storeOf(resourceOf(kind as KindName)).get(key),
    });
    for (const source of sources.values()) {
      source.onRefused(({ kind, key, errors }) =>
        events.report(`${kind}/${key}`, errors.length === 0 ? undefined : problemsText(errors)),
      );
    }
    limits.onLimited((key, limited) => events.report(key, limited && problemsText([limited.problem])));
    return events;
  }

  #makeElections(): Elections {
    const { cluster, options, signing, clusterSigning, statusInputs: inputs, mesh, onMesh, log } = this.#writes;
    const { server, leaseServer, informers, identity, dnsSecrets } = cluster;
    const { namespace, leaseMs, revision, rootConfigMap, domain } = options;
    const { signer } = clusterSigning;
    const shared = this.#sharedRoot();
    return new Elections({
      ...{ server, leaseServer, namespace, identity },
      duties: dutiesOf({
        ...{ informers, revision, rootConfigMap, distribution: this.distribution },
        ...{ ...(signing && { signing }), ...(shared && { shared }), ...(dnsSecrets && { dnsSecrets }) },
        ...(signer && { registrar: signer }),
        ...{ mesh, onMesh, words: this.#words, orphans: this.orphans, events: this.#makeEvents() },
        presence: presenceLeaseOf(identity)!,
        leads: (lease) => this.elections.leads(lease),
        ofGatewayClass: options.createsGatewayClass,
        status: {
          ...{ server, inputs, domain, namespace, log },
          ofGatewayApi: options.writesGatewayApiStatus,
          ofAddresses: options.features.autoAllocate,
        },
      }),
      times: leaseTimesOf(leaseMs),
      now: processMoment,
      draw: Math.random,
    });
  }

  /** The authority that replicas share, and its settings. */
  #sharedRoot(): DutySources['shared'] {
    const { cluster, options, clusterSigning } = this.#writes;
    const { authority } = options;
    if (authority === undefined || cluster.authoritySecrets === undefined || clusterSigning.shared === undefined) {
      return undefined;
    }
    const { namespace, name } = cluster.authoritySecrets;
    return {
      ...{ authority: clusterSigning.shared, namespace, name },
      ...{ gracePercent: authority.gracePercent, longestLeafMs: authority.leaves.maxMs },
    };
  }
}
