/** For each kind, only the elected replica writes to the cluster. */

import { parseConfigKey } from '../../model/config/config.ts';
import type { KindName } from '../../model/kinds/index.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { ClusterSigning } from '../ca/cluster-signing.ts';
import type { AuthoritySecrets } from '../ca/shared-authority.effects.ts';
import type { CertificateSigning } from '../ca/signing.ts';
import type { MeshConfigs } from '../config/snapshots/mesh-configs.ts';
import { problemsText } from '../distribution/cluster-objects.ts';
import type { ObjectDistribution } from '../distribution/distribution.ts';
import type { ObjectWarning } from '../distribution/object-warnings.ts';
import { kindsWithWarningEvents, statusKinds } from '../distribution/status-objects.ts';
import { Elections } from '../election/elections.effects.ts';
import { readProcessClocks } from '../election/leader-term.ts';
import { leaseTimesOf } from '../election/lease-times.ts';
import { presenceLeaseOf } from '../election/replica-presence.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { InformerEffects } from '../kubernetes/api-server.effects.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import type { ClusterSource } from '../kubernetes/readers/cluster-source.ts';
import type { DiscoveryOptions } from '../options/discovery-options.ts';
import { OrphanedEntries } from '../registration/orphaned-entries.ts';
import type { DnsSecrets } from './dns-certificates.ts';
import { type DutySources, dutiesOf, leaseOfRevision } from './duties.ts';
import { RejectionEvents } from './rejection-events.ts';
import { statusLease } from './status/distribution-status.ts';
import { RejectionReports } from './status/rejection-reports.ts';
import type { StatusInputs } from './status/status-inputs.ts';

export interface WrittenCluster {
  readonly server: ApiServer;
  readonly leaseServer: ApiServer;
  readonly informers: InformerEffects;
  readonly sources: ReadonlyMap<string, ClusterSource>;
  readonly workloads?: Pick<ClusterSource, 'onRejected'>;
  readonly identity: string;
  readonly dnsSecrets?: DnsSecrets;
  readonly authoritySecrets?: AuthoritySecrets;
}

export interface ClusterWritesOptions {
  readonly cluster: WrittenCluster;
  readonly distribution: ObjectDistribution;
  readonly options: DiscoveryOptions;
  readonly signing: CertificateSigning | undefined;
  readonly clusterSigning: ClusterSigning;
  readonly statusInputs: StatusInputs;
  readonly limits: Pick<MeshConfigs, 'onLimited'>;
  readonly mesh: () => MeshConfig;
  readonly onMesh: (onChanged: () => void) => void;
  /** `undefined` if neither sidecar injection nor Gateway deployment runs. */
  readonly injection?: DutySources['injection'];
  readonly log: Pick<Logger, 'warn'>;
}

export class ClusterWrites {
  readonly orphans: OrphanedEntries;
  readonly elections: Elections;
  readonly #options: ClusterWritesOptions;
  readonly #distribution: ObjectDistribution;
  readonly #rejectionReports: RejectionReports;
  readonly #events: RejectionEvents;

  constructor(writes: ClusterWritesOptions) {
    this.#options = writes;
    this.#distribution = writes.distribution;
    this.#rejectionReports = this.#createReports();
    this.orphans = this.#createOrphanedEntries();
    this.#events = this.#createRejectionEvents();
    this.elections = this.#createElections();
  }

  #createReports(): RejectionReports {
    const { informers, identity } = this.#options.cluster;
    const reports = new RejectionReports(identity);
    for (const kind of statusKinds) informers.addReader(resourceOf(kind), (changes) => reports.read(kind, changes));
    return reports;
  }

  #createOrphanedEntries(): OrphanedEntries {
    const { server, informers, identity } = this.#options.cluster;
    const { namespace, leaseMs, registration } = this.#options.options;
    return new OrphanedEntries({
      ...{ server, namespace, identity, leaseMs, graceMs: registration.graceMs, records: this.#rejectionReports },
      entries: () => (registration.enabled ? informers.storeOf(resourceOf('WorkloadEntry')).values() : []),
      now: () => performance.now(),
    });
  }

  get writesStatuses(): boolean {
    return this.elections.isLeader(statusLease);
  }

  reportWarnings(warnings: ReadonlyMap<string, ObjectWarning>): void {
    const [eventWarnings, statusWarnings] = partitionMap(warnings, (key) =>
      kindsWithWarningEvents.has(parseConfigKey(key).kind),
    );
    this.#distribution.setWarnings(statusWarnings);
    this.#events.setWarnings(eventWarnings);
  }

  #createRejectionEvents(): RejectionEvents {
    const { cluster, options, limits, log } = this.#options;
    const { informers, identity, sources, workloads } = cluster;
    const events = new RejectionEvents({
      ...{ lease: leaseOfRevision('chartpilot-rejection-events', options.revision), identity, log },
      objectOf: (kind, key) => informers.storeOf(resourceOf(kind as KindName)).get(key),
    });
    for (const source of [...sources.values(), ...(workloads === undefined ? [] : [workloads])]) {
      source.onRejected(({ kind, key, errors }) =>
        events.report(`${kind}/${key}`, errors.length === 0 ? undefined : problemsText(errors)),
      );
    }
    limits.onLimited((key, limitedEntry) => events.report(key, limitedEntry && problemsText([limitedEntry.problem])));
    return events;
  }

  #createElections(): Elections {
    const { cluster, options, signing, clusterSigning, statusInputs: inputs, mesh, onMesh, log } = this.#options;
    const { server, leaseServer, informers, identity, dnsSecrets } = cluster;
    const { namespace, leaseMs, revision, rootConfigMap, domain, deploysGateways, ownNames: hosts } = options;
    const { injection } = this.#options;
    const servesWebhooks = options.webhooksAddress !== undefined && options.securePort?.files === undefined;
    const { signer } = clusterSigning;
    const sharedRoot = this.#sharedRoot();
    const presence = presenceLeaseOf(identity)!;
    return new Elections({
      ...{ server, leaseServer, namespace, identity, presence },
      duties: dutiesOf({
        ...{ informers, revision, rootConfigMap, distribution: this.#distribution },
        ...{
          ...(signing && { signing }),
          ...(sharedRoot && { sharedAuthority: sharedRoot }),
          ...(dnsSecrets && { dnsSecrets }),
        },
        ...(signer && { registrar: signer }),
        ...(injection && deploysGateways && { injection }),
        ...(servesWebhooks && { webhooks: { namespace, hosts } }),
        ...{ mesh, onMesh, reports: this.#rejectionReports, orphans: this.orphans, events: this.#events },
        presence,
        identity,
        isLeaderOf: (lease) => this.elections.isLeader(lease),
        managesGatewayClass: options.createsGatewayClass,
        status: {
          ...{ server, inputs, domain, namespace, log },
          writesGatewayApi: options.writesGatewayApiStatus,
          writesAddresses: options.features.autoAllocate,
        },
      }),
      times: leaseTimesOf(leaseMs),
      now: readProcessClocks,
      draw: Math.random,
    });
  }

  #sharedRoot(): DutySources['sharedAuthority'] {
    const { cluster, options, clusterSigning } = this.#options;
    const { authority } = options;
    if (authority === undefined || cluster.authoritySecrets === undefined || clusterSigning.shared === undefined) {
      return undefined;
    }
    const { namespace, name } = cluster.authoritySecrets;
    return {
      ...{ authority: clusterSigning.shared, namespace, name },
      ...{ gracePercent: authority.gracePercent, maxLeafMs: authority.leaves.maxMs },
    };
  }
}

function partitionMap<T>(
  entries: ReadonlyMap<string, T>,
  isFirst: (key: string) => boolean,
): readonly [ReadonlyMap<string, T>, ReadonlyMap<string, T>] {
  const [first, secondMap] = [new Map<string, T>(), new Map<string, T>()];
  for (const [key, value] of entries) (isFirst(key) ? first : secondMap).set(key, value);
  return [first, secondMap];
}
