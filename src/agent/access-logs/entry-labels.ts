import {
  accountOf,
  type PeerClaim,
  peerClaimIn,
  type WorkloadLabelValues,
} from '../../model/standard-metrics/peer-claim.ts';
import { type StandardLabel, unknownLabel } from '../../model/standard-metrics/standard-metrics.ts';
import type { MetricRule, Reporter } from '../../model/standard-metrics/stream-rules.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { AccessLogEntry } from './log-entries.ts';

export type Labels = Readonly<Partial<Record<StandardLabel, string>>>;

export type PeerOutcome = 'believed' | 'none' | 'malformed' | 'foreign' | 'excess';

/** Decides whether to use a peer's claim; limits the number of workloads per identity. */
export type ClaimAdmission = (spiffeId: string, claim: PeerClaim) => boolean;

export interface EntryLabels {
  readonly labels: Labels;
  readonly peer: PeerOutcome | undefined;
}

/** Clusters and routes without a service; Istio reports their names as the service name. */
const clustersWithoutService: ReadonlySet<string> = new Set([
  'BlackHoleCluster',
  'PassthroughCluster',
  'InboundPassthroughCluster',
  'InboundPassthroughClusterIpv4',
  'InboundPassthroughClusterIpv6',
]);

export function labelsOf(
  entry: AccessLogEntry,
  reporter: Reporter,
  localWorkload: WorkloadLabelValues,
  admit: ClaimAdmission,
): EntryLabels {
  const commonLabels = { reporter, ...serviceLabels(entry), ...protocolLabels(entry) };
  if (reporter === 'source') {
    const labels = {
      ...commonLabels,
      ...sourceLabels(localWorkload),
      source_principal: entry.upstreamLocal || unknownLabel,
      ...destinationLabels(endpointIn(entry.workload)),
      destination_principal: entry.upstreamPeer || unknownLabel,
      connection_security_policy: unknownLabel,
    };
    return { labels, peer: undefined };
  }
  const { outcome, workload } = peerOf(entry, admit);
  const labels = {
    ...commonLabels,
    ...sourceLabels(workload),
    source_principal: entry.peerUri || unknownLabel,
    ...destinationLabels(localWorkload),
    destination_principal: (entry.peerUri && entry.localUri) || unknownLabel,
    connection_security_policy: entry.peerUri === '' ? 'none' : 'mutual_tls',
  };
  return { labels, peer: outcome };
}

const unknownWorkload: WorkloadLabelValues = {
  workload: unknownLabel,
  namespace: unknownLabel,
  service: unknownLabel,
  revision: unknownLabel,
  app: unknownLabel,
  version: unknownLabel,
  cluster: unknownLabel,
};

/** The namespace is that of the certificate. The claim is accepted only if its namespace and account match it. */
function peerOf(
  { peerUri, claim }: AccessLogEntry,
  admit: ClaimAdmission,
): { outcome: PeerOutcome; workload: WorkloadLabelValues } {
  const certifiedAccount = peerUri === '' ? undefined : accountOf(peerUri);
  const unnamedWorkload = { ...unknownWorkload, ...(certifiedAccount && { namespace: certifiedAccount.namespace }) };
  const result = (peerOutcome: PeerOutcome) => ({ outcome: peerOutcome, workload: unnamedWorkload });
  if (claim === '' || claim === '-') return result('none');
  const claimedWorkload = peerClaimIn(claim);
  if (claimedWorkload === undefined) return result('malformed');
  if (certifiedAccount?.namespace !== claimedWorkload.namespace || certifiedAccount.account !== claimedWorkload.account)
    return result('foreign');
  if (!admit(peerUri, claimedWorkload)) return result('excess');
  return { outcome: 'believed', workload: claimedWorkload };
}

/** Parses `workload;namespace;canonical service;canonical revision;cluster`, which the control plane writes for each endpoint. */
function endpointIn(text: string): WorkloadLabelValues {
  const [workload, namespace, service, revision, cluster] = text.split(';');
  if (cluster === undefined) return unknownWorkload;
  const labelOf = (value: string | undefined): string => value || unknownLabel;
  return {
    workload: labelOf(workload),
    namespace: labelOf(namespace),
    service: labelOf(service),
    revision: labelOf(revision),
    app: labelOf(service),
    version: labelOf(revision),
    cluster: labelOf(cluster),
  };
}

function sourceLabels({ workload, namespace, service, revision, app, version, cluster }: WorkloadLabelValues): Labels {
  return {
    source_workload: workload || unknownLabel,
    source_workload_namespace: namespace || unknownLabel,
    source_canonical_service: service || unknownLabel,
    source_canonical_revision: revision || 'latest',
    source_app: app || unknownLabel,
    source_version: version || unknownLabel,
    source_cluster: cluster || unknownLabel,
  };
}

function destinationLabels({
  workload,
  namespace,
  service,
  revision,
  app,
  version,
  cluster,
}: WorkloadLabelValues): Labels {
  return {
    destination_workload: workload || unknownLabel,
    destination_workload_namespace: namespace || unknownLabel,
    destination_canonical_service: service || unknownLabel,
    destination_canonical_revision: revision || 'latest',
    destination_app: app || unknownLabel,
    destination_version: version || unknownLabel,
    destination_cluster: cluster || unknownLabel,
  };
}

/** Ignores the Host header, which clients choose. */
function serviceLabels({ route, cluster, services }: AccessLogEntry): Labels {
  if (route === 'block_all') return namedService('BlackHoleCluster');
  if (route === 'allow_any') return namedService('PassthroughCluster');
  if (clustersWithoutService.has(cluster)) return namedService(cluster);
  const [firstService] = parseServices(services);
  if (firstService === undefined) return namedService(unknownLabel);
  const { host, name, namespace } = firstService;
  return {
    destination_service: host || unknownLabel,
    destination_service_name: name || host.split('.')[0] || unknownLabel,
    destination_service_namespace: namespace || unknownLabel,
  };
}

function namedService(name: string): Labels {
  return {
    destination_service: unknownLabel,
    destination_service_name: name,
    destination_service_namespace: unknownLabel,
  };
}

function parseServices(json: string): { host: string; name: string; namespace: string }[] {
  if (json === '' || json === '-') return [];
  try {
    const parsedServices: unknown = JSON.parse(json);
    return (Array.isArray(parsedServices) ? parsedServices : []).filter(isObject).map(({ host, name, namespace }) => {
      return { host: String(host ?? ''), name: String(name ?? ''), namespace: String(namespace ?? '') };
    });
  } catch {
    return [];
  }
}

function protocolLabels({ protocol, contentType, code, grpcStatus, flags }: AccessLogEntry): Labels {
  if (protocol === 'tcp') return { request_protocol: 'tcp', response_flags: flags };
  const isGrpc = contentType.startsWith('application/grpc');
  return {
    request_protocol: isGrpc ? 'grpc' : 'http',
    response_flags: flags,
    response_code: String(code),
    grpc_response_status: isGrpc && /^\d{1,2}$/.test(grpcStatus) ? grpcStatus : '',
  };
}

/** Labels of the series that counts label sets beyond the limit. They have few values, but are sufficient for error rates. */
export function overflowLabelsOf(labels: Labels): Labels {
  const retainedLabels: readonly string[] = ['reporter', 'request_protocol', 'connection_security_policy'];
  const overflowEntries = Object.entries(labels).map(([label, value]) => [
    label,
    retainedLabels.includes(label) ? value : unknownLabel,
  ]);
  const { response_code: code } = labels;
  return {
    ...Object.fromEntries(overflowEntries),
    ...(code !== undefined && { response_code: `${code[0]}xx`, grpc_response_status: '' }),
  };
}

/** @param values of the rules' expressions, by number */
export function labelText(labels: Labels, rule: MetricRule | undefined, values: readonly string[]): string {
  const valueByLabel = new Map<string, string>(Object.entries(labels));
  for (const label of rule?.removed ?? []) valueByLabel.delete(label);
  for (const [label, value] of Object.entries(rule?.set ?? {})) {
    valueByLabel.set(labelName(label), 'text' in value ? value.text : values[value.tag] || unknownLabel);
  }
  let text = '';
  for (const [label, value] of valueByLabel) text += `${text === '' ? '' : ','}${label}="${escapeLabel(value)}"`;
  return text;
}

/** Prometheus allows letters, digits and underscores; `le` is reserved for histograms. */
function labelName(label: string): string {
  const name = label.replace(/\W/g, '_').replace(/^(?=\d)/, '_');
  return name === 'le' || name.startsWith('__') ? `tag_${name}` : name;
}

const maxValueLength = 256;

function escapeLabel(value: string): string {
  const truncatedValue = value.length > maxValueLength ? value.slice(0, maxValueLength) : value;
  return /["\\\n]/.test(truncatedValue)
    ? truncatedValue.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')
    : truncatedValue;
}
