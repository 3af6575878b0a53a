/** Which proxies an object concerns, and in which types: as a change of it would be pushed to them (spec/discovery.md §6.5). */
import type { Config, ConfigKey } from '../../model/config/config.ts';
import { configKeyOf, configKeyText } from '../../model/config/config.ts';
import type { ServiceEntry } from '../../model/kinds/workloads/service-entry.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PushedType, typesToPush } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import { serviceKey } from '../../model/services/service.ts';

/** By what pushes name an object: a ServiceEntry by its hosts. */
function pushedKeysOf(config: Config): readonly ConfigKey[] {
  const key = configKeyOf(config);
  if (config.kind !== 'ServiceEntry') return [key];
  const { hosts } = config.spec as ServiceEntry;
  return hosts.map((hostname) => serviceKey({ hostname, namespace: config.namespace }));
}

/** A change names it, by its own name or as pushes do. */
export function isNamed(config: Config, changed: ReadonlySet<string>): boolean {
  return [configKeyOf(config), ...pushedKeysOf(config)].some((one) => changed.has(configKeyText(one)));
}

const nothing: ReadonlySet<PushedType> = new Set();

/** Lists of policies by the kind that is in them. */
const listOf: Readonly<Record<string, Exclude<keyof WorkloadPolicies, 'id' | 'peerAuthentications'>>> = {
  RequestAuthentication: 'requestAuthentications',
  AuthorizationPolicy: 'authorizationPolicies',
  Telemetry: 'telemetries',
  WasmPlugin: 'wasmPlugins',
  EnvoyFilter: 'envoyFilters',
};

/** Types of what a proxy of a shape has that the object may be in; none: it does not concern it. */
export function typesConcerned(config: Config, shape: ProxyShape, context: PushContext): ReadonlySet<PushedType> {
  if (!mayHold(config, shape, context)) return nothing;
  const seen = { shape, context };
  return typesToPush({ forced: false, keys: pushedKeysOf(config) }, seen, seen);
}

/** A change of a policy is pushed to its whole namespace; it holds for the workloads that it selects. */
function mayHold({ kind, namespace, name }: Config, shape: ProxyShape, context: PushContext): boolean {
  const isIt = (one: Config): boolean => one.name === name && one.namespace === namespace;
  if (kind === 'Gateway') return shape.type === 'router' && context.gatewaysFor(shape).some(isIt);
  const list = Object.hasOwn(listOf, kind) ? listOf[kind] : undefined;
  return list === undefined || context.policiesFor(shape)[list].some(isIt);
}
