/** Reports egress hosts in Sidecars if their services do not exist, are not exported, or do not have the listener's port. */
import type { Config } from '../../../model/config/config.ts';
import { isHostWithin, isShortName, isWildcard } from '../../../model/fields/hostname.ts';
import type { EgressListener, Sidecar } from '../../../model/kinds/workloads/sidecar.ts';
import type { Service } from '../../../model/services/service.ts';
import { isAlias } from '../../../model/services/service-alias.ts';
import { isExportedTo } from '../../../model/services/visibility.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { objectOfService } from '../known-objects.ts';

export const checkSidecarHosts: ConfigCheck = function* (sources) {
  const importedByHost = new Map<string, ImportedHost>();
  for (const config of sources.configs.Sidecar) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const [index, listener] of (config.spec.egress ?? []).entries()) {
      const importedHosts: ImportedHost[] = [];
      for (const [hostIndex, writtenHost] of listener.hosts.entries()) {
        yield undefined;
        if (writtenHost.startsWith('~')) continue;
        const importedHost = importedBy(config, writtenHost, importedByHost, sources);
        importedHosts.push(importedHost);
        yield hostWarning(config, `spec.egress[${index}].hosts[${hostIndex}]`, importedHost, sources);
      }
      yield portWarning(config, index, listener, importedHosts);
    }
  }
};

interface ImportedHost {
  readonly host: string;
  /** `*` means any namespace. */
  readonly namespace: string;
  /** Any service with the host, which proves that one exists. */
  readonly service: Service | undefined;
  /** Visible to clients of the Sidecar. */
  readonly exportedService: Service | undefined;
  /** `undefined` for a wildcard or an alias. */
  readonly ports: ReadonlySet<number> | undefined;
  readonly isComplete: boolean;
}

/** @param importedByHost a cache, because many Sidecars import the same hosts */
function importedBy(
  config: Config<Sidecar>,
  writtenHost: string,
  importedByHost: Map<string, ImportedHost>,
  sources: CheckSources,
): ImportedHost {
  const { hosts, context } = sources;
  const slash = writtenHost.indexOf('/');
  const host = writtenHost.slice(slash + 1);
  // A Sidecar in the root namespace applies to clients of all namespaces.
  const isMeshWide = config.namespace === context.mesh.rootNamespace;
  const writtenNamespace = writtenHost.slice(0, slash);
  const namespace = writtenNamespace !== '.' ? writtenNamespace : isMeshWide ? '*' : config.namespace;
  // `ns/*` also imports future services, so it is never reported.
  if (host === '*')
    return { host, namespace, service: undefined, exportedService: undefined, ports: undefined, isComplete: false };
  const key = `${config.namespace} ${namespace} ${host}`;
  const cachedImport = importedByHost.get(key);
  if (cachedImport !== undefined) return cachedImport;
  const isWildcardHost = isWildcard(host);
  const isInNamespace = (candidate: Service): boolean => namespace === '*' || candidate.namespace === namespace;
  const isExported = (candidate: Service): boolean =>
    isMeshWide || isExportedTo(candidate.exportTo, candidate.namespace, config.namespace);
  const services = isWildcardHost
    ? hosts.servicesWithin(host, namespace === '*' ? undefined : namespace)
    : hosts.servicesOf(host).filter(isInNamespace);
  const exportedServices = isWildcardHost ? [] : services.filter(isExported);
  const hasPorts = exportedServices.length > 0 && !exportedServices.some(isAlias);
  const importedHost = {
    ...{ host, namespace, service: services[0], exportedService: exportedServices[0] ?? services.find(isExported) },
    ports: hasPorts ? new Set(exportedServices.flatMap(({ ports }) => ports.map(({ number }) => number))) : undefined,
    isComplete: isComplete(host, namespace, sources),
  };
  importedByHost.set(key, importedHost);
  return importedHost;
}

function isComplete(host: string, namespace: string, { context, hosts, knownObjects }: CheckSources): boolean {
  const suffix = `.svc.${context.domain}`;
  const namespaceFilter = namespace === '*' ? undefined : namespace;
  if (!isWildcard(host)) return hosts.isKnownHost(host) && (hosts.namespaceOf(host) === undefined || isKnownService());
  // Partial wildcards are not checked.
  if (!host.startsWith('*.')) return false;
  const owner = host.endsWith(suffix) ? host.slice(2, -suffix.length).split('.').at(-1) : undefined;
  return (
    knownObjects.isComplete('ServiceEntry', namespaceFilter) &&
    (!isClusterHost() || knownObjects.isComplete('Service', owner || namespaceFilter))
  );

  function isClusterHost(): boolean {
    return isHostWithin(host, `*${suffix}`) || isHostWithin(`*${suffix}`, host);
  }

  /** A ServiceEntry for the host may exist in another namespace. */
  function isKnownService(): boolean {
    return namespace === '*' || namespace === hosts.namespaceOf(host) || knownObjects.isComplete('Service', namespace);
  }
}

function hostWarning(
  config: Config<Sidecar>,
  field: string,
  { host, namespace, service: hidden, exportedService, isComplete: isSure }: ImportedHost,
  { context, configs, hosts }: CheckSources,
): ConfigWarning | undefined {
  if (exportedService !== undefined || host === '*') return undefined;
  const warning = (message: string, service?: Service): ConfigWarning => {
    const serviceConfig = service && objectOfService(service, configs);
    return {
      code: 'HOST_NOT_FOUND',
      config,
      field,
      message,
      ...(serviceConfig && { other: { config: serviceConfig } }),
    };
  };
  if (hidden !== undefined) {
    return warning(
      `${hidden.hostname} of namespace ${hidden.namespace} is not exported to namespace ${config.namespace}, so the host imports nothing: add the namespace to its exportTo`,
      hidden,
    );
  }
  const [qualifiedService] = hosts.servicesOf(
    context.hostNames.qualify(host, namespace === '*' ? config.namespace : namespace),
  );
  if (isShortName(host) && qualifiedService !== undefined)
    return warning(
      `${host} is the host of no service, so it imports nothing: short names are not completed here, write ${qualifiedService.hostname}`,
      qualifiedService,
    );
  if (!isSure) return undefined;
  const [otherService] = isWildcard(host) ? hosts.servicesWithin(host) : hosts.servicesOf(host);
  if (otherService !== undefined)
    return warning(
      `no service of namespace ${namespace} has the host ${host}, so it imports nothing: it is a host of namespace ${otherService.namespace}`,
      otherService,
    );
  return warning(
    `no service has the host ${host}, so it imports nothing: correct the name, or create the Service or ServiceEntry`,
  );
}

/** A listener with a port serves only services that have the port. */
function portWarning(
  config: Config<Sidecar>,
  index: number,
  { port, hosts }: EgressListener,
  importedHosts: readonly ImportedHost[],
): ConfigWarning | undefined {
  if (port === undefined || port.number === 0 || port.protocol === 'HTTP_PROXY') return undefined;
  const arePortsKnown = importedHosts.every(({ ports }) => ports !== undefined && !ports.has(port.number));
  if (!arePortsKnown || importedHosts.length === 0) return undefined;
  const numbers = new Set(importedHosts.flatMap(({ ports = [] }) => [...ports]));
  return {
    ...{ code: 'PORT_NOT_FOUND', config, field: `spec.egress[${index}].port.number` },
    message: `no service of ${hosts.join(', ')} has the port ${port.number}, so the listener shows none: choose one of ${[...numbers].join(', ')}, or remove the port`,
  };
}
