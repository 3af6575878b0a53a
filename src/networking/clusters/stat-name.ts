import type { Port, Service } from '../../model/services/service.ts';
import { ownValue } from '../../runtime/json-object.ts';

/** Separates the cluster name from the rest of the metric name, for tag extraction. */
const partDelimiter = ';';

export interface StatNameParts {
  readonly service: Pick<Service, 'hostname' | 'namespace'>;
  readonly port: Port;
  readonly subset: string;
  readonly targetPort?: number;
}

/** @param pattern mesh setting `outboundClusterStatName` or `inboundClusterStatName`; empty for the cluster's own name */
export function clusterStatName(clusterName: string, pattern: string, nameParts: StatNameParts): string {
  if (pattern === '') return clusterName + partDelimiter;
  const values: Readonly<Record<string, string>> = {
    SERVICE: shortName(nameParts.service),
    SERVICE_FQDN: nameParts.service.hostname,
    SERVICE_PORT: String(nameParts.port.number),
    TARGET_PORT: String(nameParts.targetPort ?? nameParts.port.number),
    SERVICE_PORT_NAME: nameParts.port.name,
    SUBSET_NAME: nameParts.subset,
  };
  return (
    pattern.replace(/%(\w+)%/g, (placeholder, key: string) => ownValue(values, key) ?? placeholder) + partDelimiter
  );
}

/** Hosts outside the cluster are unchanged. */
function shortName({ hostname, namespace }: Pick<Service, 'hostname' | 'namespace'>): string {
  const suffix = hostname.indexOf(`.${namespace}.svc.`);
  return suffix === -1 ? hostname : hostname.slice(0, suffix + 1 + namespace.length);
}
