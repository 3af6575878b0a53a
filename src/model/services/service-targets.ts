import { compareText } from '../config/config.ts';
import type { TargetRef } from './proxy-lookup.ts';
import type { Service, ServiceTarget } from './service.ts';

/**
 * Returns each service port once per transport, oldest service first.
 * @param namespace of the workload: services of other namespaces are never targets
 */
export function serviceTargets(
  namespace: string,
  refs: readonly TargetRef[],
  servicesOf: (hostname: string, namespace: string) => readonly Service[],
): readonly ServiceTarget[] {
  const targets = new Map<string, ServiceTarget>();
  for (const { hostname, portName, targetPort } of refs) {
    const service = servicesOf(hostname, namespace)[0];
    const port = service?.ports.find((candidate) => candidate.name === portName);
    if (service === undefined || port === undefined) continue;
    // TCP and UDP can use the same port number, as in DNS.
    const id = `${hostname}/${port.number}/${port.protocol === 'UDP' ? 'UDP' : 'TCP'}`;
    if (!targets.has(id)) targets.set(id, { service, port, targetPort });
  }
  return [...targets.values()].sort(compareServiceAndPort);
}

function compareServiceAndPort(a: ServiceTarget, b: ServiceTarget): number {
  return (
    a.service.creationTime - b.service.creationTime ||
    compareText(a.service.hostname, b.service.hostname) ||
    a.port.number - b.port.number
  );
}
