import type { PushContext } from '../../model/push-context.ts';

/** What is odd about a context, by the name of the metric that counts it and by what it is about (spec/discovery.md §9.1). */
export type PushStatus = Readonly<Record<string, Readonly<Record<string, { readonly message: string }>>>>;

/** Names of the metrics that this page can show: their gauges are set even when nothing is odd. */
export const pushStatusMetrics = ['pilot_eds_no_instances', 'pilot_dns_cluster_without_endpoints'] as const;

export function pushStatus(context: PushContext): PushStatus {
  const status = Object.fromEntries(pushStatusMetrics.map((name) => [name, {} as Record<string, { message: string }>]));
  for (const service of context.services) {
    if (context.endpointsOf(service.hostname, service.namespace).length > 0) continue;
    const key = `${service.hostname}.${service.namespace}`;
    const message = `${service.namespace}/${service.hostname} has no endpoints`;
    if (service.resolution === 'ClientSideLB') status.pilot_eds_no_instances![key] = { message };
    if (service.resolution === 'DNSLB' || service.resolution === 'DNSRoundRobinLB') {
      status.pilot_dns_cluster_without_endpoints![key] = { message };
    }
  }
  return status;
}
