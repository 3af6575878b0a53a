/** Determines to which proxies and types a change of an object is pushed. */
import type { Config, ConfigKey } from '../../model/config/config.ts';
import { configKeyOf, configKeyText } from '../../model/config/config.ts';
import type { ServiceEntry } from '../../model/kinds/workloads/service-entry.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type PushedType, typesToPush } from '../../model/proxy/types-to-push.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WorkloadPolicies } from '../../model/push-context/workload-policies.ts';
import { serviceKey } from '../../model/services/service.ts';

/** A ServiceEntry has the keys of its hosts. */
function pushedKeysOf(config: Config): readonly ConfigKey[] {
  const key = configKeyOf(config);
  if (config.kind !== 'ServiceEntry') return [key];
  const { hosts } = config.spec as ServiceEntry;
  return hosts.map((hostname) => serviceKey({ hostname, namespace: config.namespace }));
}

export function isNamedByKeys(config: Config, changedKeys: ReadonlySet<string>): boolean {
  return [configKeyOf(config), ...pushedKeysOf(config)].some((configKey) => changedKeys.has(configKeyText(configKey)));
}

const noTypes: ReadonlySet<PushedType> = new Set();

const listOf: Readonly<Record<string, Exclude<keyof WorkloadPolicies, 'id' | 'peerAuthentications'>>> = {
  RequestAuthentication: 'requestAuthentications',
  AuthorizationPolicy: 'authorizationPolicies',
  Telemetry: 'telemetries',
  WasmPlugin: 'wasmPlugins',
  EnvoyFilter: 'envoyFilters',
};

export function affectedTypes(config: Config, shape: ProxyShape, context: PushContext): ReadonlySet<PushedType> {
  if (!mayApply(config, shape, context)) return noTypes;
  const seenProxy = { shape, context };
  return typesToPush({ forced: false, keys: pushedKeysOf(config) }, seenProxy, seenProxy);
}

/** A changed policy is pushed to its whole namespace, but applies only to selected workloads. */
function mayApply({ kind, namespace, name }: Config, shape: ProxyShape, context: PushContext): boolean {
  const isSameObject = (isSearchedObject: Config): boolean =>
    isSearchedObject.name === name && isSearchedObject.namespace === namespace;
  if (kind === 'Gateway') return shape.type === 'router' && context.gatewaysFor(shape).some(isSameObject);
  const list = Object.hasOwn(listOf, kind) ? listOf[kind] : undefined;
  return list === undefined || context.policiesFor(shape)[list].some(isSameObject);
}
