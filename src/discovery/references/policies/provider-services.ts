/**
 * Reports missing default extension providers of the mesh configuration, and providers without their service or port.
 */
import type { Config } from '../../../model/config/config.ts';
import type { DefaultProviders, ExtensionProvider } from '../../../model/mesh/mesh-config.ts';
import { isExportedTo } from '../../../model/services/visibility.ts';
import { providerService } from '../../../networking/traffic/provider-service.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import { namedProviders } from './providers.ts';

export const checkProviderServices: ConfigCheck = function* (sources) {
  const { context, configs, knownObjects, meshConfig } = sources;
  const { extensionProviders, defaultProviders } = context.mesh;
  const addresses = new Map(extensionProviders.map((provider) => [provider.name, addressOf(provider)]));
  const hasReferences = [...addresses.values(), ...Object.values(defaultProviders).flat()].some(Boolean);
  if (!hasReferences || !knownObjects.isComplete('ExtensionProvider')) return;
  const locatedProviders = new Map<string, LocatedProvider>();
  const problems = new Map<string, ProviderProblem | undefined>();
  for (const [name, address] of addresses) {
    yield undefined;
    if (address === undefined) continue;
    const field = `${placeOf(name, meshConfig)}.${address.type}`;
    const problem = problemOf(address, '', sources);
    locatedProviders.set(name, { address, field, problem });
    if (problem !== undefined) yield { ...problem, config: meshConfig, field: `${field}.${problem.field}` };
  }
  yield* defaultsOf(sources);
  for (const kind of ['AuthorizationPolicy', 'Telemetry'] as const) {
    for (const config of configs[kind] as readonly Config<never>[]) {
      yield undefined;
      if (!isWrittenConfig(config)) continue;
      for (const { name, field, effect } of namedProviders(config)) {
        const locatedProvider = locatedProviders.get(name);
        if (locatedProvider === undefined) continue;
        const namespace = config.namespace === context.mesh.rootNamespace ? '' : config.namespace;
        const key = `${namespace} ${name}`;
        if (!problems.has(key))
          problems.set(key, locatedProvider.problem ?? problemOf(locatedProvider.address, namespace, sources));
        const problem = problems.get(key);
        if (problem === undefined) continue;
        yield {
          ...{ code: 'PROVIDER_UNREACHABLE', config, field },
          message: `the extension provider ${name} cannot be used, because ${problem.reason}, so ${effect}: correct the provider in the mesh configuration, or create the service`,
          other: { config: meshConfig, field: `${locatedProvider.field}.${problem.field}` },
        };
      }
    }
  }
};

/** A mesh configuration can be merged from several files, so the index is that in the provider's file if known. */
function placeOf(name: string, { spec }: Config): string {
  const { extensionProviders: writtenProviders } = spec as { extensionProviders?: unknown };
  const index = Array.isArray(writtenProviders)
    ? writtenProviders.findIndex((writtenProvider) => isObject(writtenProvider) && writtenProvider.name === name)
    : -1;
  return `extensionProviders[${index === -1 ? JSON.stringify(name) : index}]`;
}

interface LocatedProvider {
  readonly address: ProviderAddress;
  readonly field: string;
  /** Problem that affects all clients. */
  readonly problem: ProviderProblem | undefined;
}

interface ProviderAddress {
  readonly type: string;
  readonly service: string;
  readonly port: number;
}

function addressOf(provider: ExtensionProvider): ProviderAddress | undefined {
  for (const [type, settings] of Object.entries(provider)) {
    if (typeof settings !== 'object' || settings === null) continue;
    const { service, port } = settings as { service?: unknown; port?: unknown };
    const number = Number(port);
    if (typeof service === 'string' && Number.isInteger(number)) return { type, service, port: number };
  }
  return undefined;
}

interface ProviderProblem extends Pick<ConfigWarning, 'code' | 'message' | 'field'> {
  readonly reason: string;
}

function problemOf(
  { service: writtenService, port }: ProviderAddress,
  namespace: string,
  { context, hosts }: CheckSources,
): ProviderProblem | undefined {
  const { host, isProvidedBy } = providerService(writtenService, namespace, context);
  if (!hosts.isKnownHost(host)) return undefined;
  const problem = (field: string, reason: string): ProviderProblem => ({
    ...{ code: 'PROVIDER_UNREACHABLE', field, reason },
    message: `${reason}, so the provider cannot be used: correct the address, or create the service`,
  });
  const services = hosts.servicesOf(host);
  if (services.length === 0) return problem('service', `no service has the host ${host}`);
  const providedServices = services.filter(
    (providerService) =>
      isProvidedBy(providerService) &&
      (namespace === '' || isExportedTo(providerService.exportTo, providerService.namespace, namespace)),
  );
  // A service in the namespace of a client may provide it.
  if (providedServices.length === 0 && namespace === '' && !writtenService.includes('/')) return undefined;
  if (providedServices.length === 0)
    return problem(
      'service',
      `${host} is a host of namespace ${services[0]!.namespace}, and not one that these clients may use`,
    );
  const ports = providedServices.flatMap((providerService) =>
    providerService.ports.filter(({ protocol }) => protocol !== 'UDP'),
  );
  if (ports.some(({ number }) => number === port)) return undefined;
  const numbersText = [...new Set(ports.map(({ number }) => number))].join(', ');
  return problem('port', `${host} has no port ${port} (its ports: ${numbersText})`);
}

function* defaultsOf({ context: { mesh }, meshConfig }: CheckSources): Generator<ConfigWarning> {
  const names = mesh.extensionProviders.map(({ name }) => name);
  const lists = Object.entries(mesh.defaultProviders) as [keyof DefaultProviders, readonly string[] | undefined][];
  for (const [list, providerNames = []] of lists) {
    for (const [index, name] of providerNames.entries()) {
      // `validate` reports the invalid provider itself.
      if (names.includes(name) || mesh.invalidProviders?.includes(name)) continue;
      yield {
        ...{ code: 'PROVIDER_NOT_FOUND', config: meshConfig, field: `defaultProviders.${list}[${index}]` },
        message: `there is no extension provider ${name} (there are ${names.join(', ')}), so nothing is sent to it: add it to extensionProviders, or correct the name`,
      };
    }
  }
}
