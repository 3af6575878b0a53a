/** Each metric of the agent and the control plane with its labels, as the programs define them. */
import { MeshMetrics } from '../../src/agent/access-logs/mesh-metrics.ts';
import { DnsCounts } from '../../src/agent/dns/dns-counts.ts';
import { SecretCounts } from '../../src/agent/secrets/secret-counts.ts';
import { AgentMetrics } from '../../src/agent/status/agent-metrics.ts';
import { WasmCounts } from '../../src/agent/wasm/wasm-counts.ts';
import { IssuanceCounts } from '../../src/discovery/ca/issuing/issuance-counts.ts';
import { DiscoveryMetrics } from '../../src/discovery/monitor/metrics/metrics.ts';
import { NameServerCounts } from '../../src/discovery/names/name-server.ts';
import {
  connectionLabels,
  requestLabels,
  standardMetricIds,
  standardMetrics,
} from '../../src/model/standard-metrics/standard-metrics.ts';
import type { MetricDefinition } from '../../src/runtime/output/metric-definitions.ts';
import { givenPlane } from '../fixtures/given-plane.ts';

/** Metrics of Node and the process, which the metrics library adds. */
export const isProcessMetric = ({ name }: MetricDefinition): boolean => /^(process|nodejs)_/.test(name);

export function controlPlaneMetrics(): MetricDefinition[] {
  const { state, cache } = givenPlane('');
  const metrics = new DiscoveryMetrics({
    ...{ version: '1', state, cache },
    connectedVersions: () => [],
    configSources: () => [],
    datacenters: () => [],
    nameQueries: new NameServerCounts(),
    webhooks: { injection: new Map(), validation: { passed: new Map(), failed: new Map() }, refused: new Map() },
    certificates: { expiry: () => undefined, issuance: new IssuanceCounts() },
    refusedObjects: () => [],
  });
  return [...metrics.definitions];
}

/** Labels of series that have no sample before a certain event. */
const laterLabels: Readonly<Record<string, readonly string[]>> = {
  istio_agent_cert_expiry_seconds: ['resource_name'],
  istio_agent_revocation_list_expiry_seconds: ['resource_name'],
  istio_agent_access_log_lost_total: ['reason'],
  istio_agent_peer_claims_total: ['outcome'],
  istio_agent_metric_label_sets: ['metric'],
  istio_agent_metric_folded_total: ['metric'],
};

export async function agentMetrics(): Promise<MetricDefinition[]> {
  const ownLabels = { workload: '', namespace: '', service: '', revision: '', app: '', version: '', cluster: '' };
  const vault = { newestPairs: () => [].values(), allNewestLists: () => [].values() };
  const texts = [
    new DnsCounts().text(),
    new SecretCounts(vault as never).text(),
    new WasmCounts().text(),
    [...new MeshMetrics({ localWorkload: ownLabels, version: '1' }).text()].join(''),
  ];
  return [...(await new AgentMetrics().definitions()), ...texts.flatMap(definitionsIn)];
}

function definitionsIn(text: string): MetricDefinition[] {
  return [...text.matchAll(/# HELP (\w+) (.*)\n# TYPE \w+ (\w+)/g)].map(([, name = '', help = '', type = '']) => {
    const sample = new RegExp(`^${name}(?:_bucket)?\\{(.*)\\}`, 'm').exec(text)?.[1] ?? '';
    const foundLabels = [...sample.matchAll(/(\w+)="/g)].flatMap(([, label]) => (label === 'le' ? [] : label!));
    return { name, help, type, labels: foundLabels.length > 0 ? foundLabels : (laterLabels[name] ?? []) };
  });
}

export function meshMetrics(): MetricDefinition[] {
  return standardMetricIds.map((id) => {
    const { name, type, meaning, protocol } = standardMetrics[id];
    return { name, type, help: meaning, labels: [...connectionLabels, ...(protocol === 'http' ? requestLabels : [])] };
  });
}
