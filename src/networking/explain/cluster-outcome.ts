import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { type Cluster, Cluster_DiscoveryType as DiscoveryType } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { HealthStatus } from '../../gen/envoy/config/core/v3/health_check_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { UpstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import type { OutcomeShare, RequestOutcome, Target } from './outcome.ts';

export interface CarriedProtocol {
  readonly isHttp: boolean;
  readonly isRedirected: boolean;
  readonly missingStatus?: number;
}

/** Assumes that endpoints are running and their names can be resolved. */
export function clusterOutcome(
  { name, cluster, assignment }: Target,
  carriedProtocol: CarriedProtocol,
): RequestOutcome {
  const status = carriedProtocol.isHttp ? { status: 503 } : {};
  if (cluster === undefined) {
    const missingResponse = carriedProtocol.isHttp
      ? { status: carriedProtocol.missingStatus ?? 503, details: 'cluster_not_found' }
      : {};
    return { kind: 'no cluster', ...missingResponse, flag: 'NC', why: `the proxy has no cluster ${name}` };
  }
  if (!hasServer(cluster, assignment, carriedProtocol)) {
    const details = carriedProtocol.isHttp ? { details: 'no_healthy_upstream' } : {};
    return { kind: 'no endpoints', ...status, ...details, flag: 'UH', why: reasonWithoutServer(cluster, assignment) };
  }
  if (rejectsEveryServer(cluster)) {
    const reason = `the TLS settings of cluster ${name} accept no server certificate`;
    return { kind: 'upstream refused', ...status, flag: 'UF', why: reason };
  }
  return { kind: 'forwarded' };
}

export function combinedOutcome(targets: readonly Target[], carriedProtocol: CarriedProtocol): RequestOutcome {
  const totalWeight = targets.reduce((total, { weight }) => total + weight, 0);
  return dividedOutcome(
    targets.map((target) => ({ share: target.weight / totalWeight, outcome: clusterOutcome(target, carriedProtocol) })),
  );
}

export function dividedOutcome(outcomeShares: readonly OutcomeShare[]): RequestOutcome {
  const mergedShares = new Map<string, OutcomeShare>();
  for (const { share, outcome } of outcomeShares
    .filter((clusterShare) => clusterShare.share > 0)
    .flatMap(flattenShares)) {
    const key = JSON.stringify(outcome);
    mergedShares.set(key, { outcome, share: share + (mergedShares.get(key)?.share ?? 0) });
  }
  const [firstOutcome, ...otherOutcomes] = mergedShares.values();
  if (firstOutcome === undefined) return { kind: 'other', why: 'no cluster has a weight' };
  return otherOutcomes.length === 0
    ? firstOutcome.outcome
    : { kind: 'divided', shares: [firstOutcome, ...otherOutcomes] };
}

function flattenShares({ share, outcome }: OutcomeShare): readonly OutcomeShare[] {
  if (outcome.kind !== 'divided') return [{ share, outcome }];
  return outcome.shares.flatMap((nestedShare) => flattenShares({ ...nestedShare, share: nestedShare.share * share }));
}

function hasServer(
  cluster: Cluster,
  assignment: ClusterLoadAssignment | undefined,
  { isRedirected }: CarriedProtocol,
): boolean {
  const { clusterDiscoveryType: type, commonLbConfig, lbConfig } = cluster;
  if (type.case === 'clusterType') return true;
  if (type.value === DiscoveryType.ORIGINAL_DST) {
    return isRedirected || (lbConfig.case === 'originalDstLbConfig' && lbConfig.value.useHttpHeader);
  }
  const usesLocalityWeights = commonLbConfig?.localityConfigSpecifier.case === 'localityWeightedLbConfig';
  const endpoints = (assignment?.endpoints ?? [])
    .filter(({ loadBalancingWeight }) => !usesLocalityWeights || (loadBalancingWeight ?? 0) > 0)
    .flatMap(({ lbEndpoints }) => lbEndpoints);
  if (endpoints.some(({ healthStatus }) => usableHealth.has(healthStatus))) return true;
  // Below the panic threshold, Envoy uses all endpoints regardless of health.
  const panics = (commonLbConfig?.healthyPanicThreshold?.value ?? defaultPanicPercent) > 0;
  const failsTrafficOnPanic =
    commonLbConfig?.localityConfigSpecifier.case === 'zoneAwareLbConfig' &&
    commonLbConfig.localityConfigSpecifier.value.failTrafficOnPanic;
  return endpoints.length > 0 && panics && !failsTrafficOnPanic;
}

/** Whether the cluster connects to the address to which the request's Host header resolves. */
export function isDynamicForwardProxy({ clusterDiscoveryType: type }: Cluster): boolean {
  return type.case === 'clusterType' && type.value.name === 'envoy.clusters.dynamic_forward_proxy';
}

const defaultPanicPercent = 50;
const usableHealth: ReadonlySet<HealthStatus> = new Set([
  HealthStatus.UNKNOWN,
  HealthStatus.HEALTHY,
  HealthStatus.DEGRADED,
]);

function reasonWithoutServer(
  { name, clusterDiscoveryType: type }: Cluster,
  assignment: ClusterLoadAssignment | undefined,
): string {
  if (type.case === 'type' && type.value === DiscoveryType.ORIGINAL_DST) {
    return `cluster ${name} forwards to the original destination, and this connection was not redirected`;
  }
  const hasEndpoints = assignment?.endpoints.some(({ lbEndpoints }) => lbEndpoints.length > 0);
  return hasEndpoints ? `no endpoint of cluster ${name} is ready` : `cluster ${name} has no endpoints`;
}

/** Whether the TLS context accepts no certificate, because its only accepted hash is all zeros. */
function rejectsEveryServer({ transportSocket }: Cluster): boolean {
  if (transportSocket?.configType.case !== 'typedConfig') return false;
  const context = anyUnpack(transportSocket.configType.value, UpstreamTlsContextSchema)?.commonTlsContext;
  const validation = context?.validationContextType;
  return (
    validation?.case === 'validationContext' && validation.value.verifyCertificateHash.some((hash) => /^0+$/.test(hash))
  );
}
