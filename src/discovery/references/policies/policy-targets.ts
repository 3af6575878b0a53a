import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { Config } from '../../../model/config/config.ts';
import { type ConfigSet, objectsByName } from '../../../model/config/config-set.ts';
import { gatewayApiGroup } from '../../../model/kinds/gateway-api/fields.ts';
import type { GatewayClass } from '../../../model/kinds/gateway-api/gateway-class.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { PolicyTargetReference } from '../../../model/kinds/policies/policy-target.ts';
import { controllerName, defaultClass } from '../../../model/translation/gateway-api/translation-context.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';
import type { ReferencedKind } from '../known-objects.ts';

const kindsWithTargets = [
  'RequestAuthentication',
  'AuthorizationPolicy',
  'Telemetry',
  'WasmPlugin',
  'EnvoyFilter',
] as const satisfies readonly KindName[];

type TargetKind = 'Gateway' | 'KubernetesGateway' | 'Service' | 'ServiceEntry' | 'GatewayClass';

const targetKinds: Readonly<Record<string, TargetKind>> = {
  [`${gatewayApiGroup}/Gateway`]: 'KubernetesGateway',
  [`${gatewayApiGroup}/GatewayClass`]: 'GatewayClass',
  'networking.istio.io/Gateway': 'Gateway',
  'networking.istio.io/ServiceEntry': 'ServiceEntry',
  '/Service': 'Service',
};

export const checkPolicyTargets: ConfigCheck = function* (sources) {
  const { configs } = sources;
  for (const kind of kindsWithTargets) {
    for (const config of configs[kind]) {
      yield undefined;
      if (!isWrittenConfig(config)) continue;
      for (const [index, target] of (config.spec.targetRefs ?? []).entries())
        yield missingTarget(config, `spec.targetRefs[${index}].name`, target, sources);
    }
  }
  for (const config of configs.BackendTLSPolicy) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const [index, target] of config.spec.targetRefs.entries()) {
      const field = `spec.targetRefs[${index}]`;
      if (target.group !== '' || target.kind !== 'Service') continue;
      yield missingTarget(config, `${field}.name`, target, sources) ??
        missingSection(config, `${field}.sectionName`, target, sources);
    }
  }
};

function missingTarget(
  config: Config,
  field: string,
  { group, kind, name }: PolicyTargetReference,
  { configs, knownObjects }: CheckSources,
): ConfigWarning | undefined {
  const target = targetKinds[`${group}/${kind}`];
  if (target === undefined) return undefined;
  const namespace = target === 'GatewayClass' ? '' : config.namespace;
  const targetObject = objectByName(configs[target] as readonly Config[]).get(`${namespace}/${name}`);
  if (targetObject !== undefined)
    return target === 'KubernetesGateway' ? foreignGateway(config, field, targetObject, configs) : undefined;
  if (target === 'GatewayClass' && name === defaultClass) return undefined;
  if (!knownObjects.isComplete(target satisfies ReferencedKind, namespace)) return undefined;
  const of = group === '' ? kind : `${kind} (${group})`;
  return {
    ...{ code: 'TARGET_NOT_FOUND', config, field },
    message: `there is no ${of} ${namespace === '' ? name : `${namespace}/${name}`}, so the object does not apply there: correct the name, or create the ${kind}`,
  };
}

function foreignGateway(
  config: Config,
  field: string,
  gateway: Config,
  { GatewayClass }: Pick<ConfigSet, 'GatewayClass'>,
): ConfigWarning | undefined {
  const { gatewayClassName } = gateway.spec as { gatewayClassName: string };
  const gatewayClass = objectByName(GatewayClass).get(`/${gatewayClassName}`);
  if (gatewayClass === undefined || (gatewayClass.spec as GatewayClass).controllerName === controllerName)
    return undefined;
  return {
    ...{ code: 'TARGET_NOT_FOUND', config, field },
    message: `Gateway ${gateway.namespace}/${gateway.name} is of class ${gatewayClassName}, which another controller serves, so the object does not apply there: change the class of the Gateway, or the target`,
    other: { config: gateway, field: 'spec.gatewayClassName' },
  };
}

function missingSection(
  config: Config,
  field: string,
  { name, sectionName }: { readonly name: string; readonly sectionName?: string },
  { configs }: CheckSources,
): ConfigWarning | undefined {
  const service = objectByName(configs.Service).get(`${config.namespace}/${name}`) as
    | ConfigSet['Service'][number]
    | undefined;
  if (service === undefined || sectionName === undefined) return undefined;
  const names = service.spec.spec.ports.map((port) => port.name);
  if (names.includes(sectionName)) return undefined;
  const namesText = names.filter((portName) => portName !== '').join(', ') || 'none has a name';
  return {
    ...{ code: 'TARGET_NOT_FOUND', config, field },
    message: `Service ${config.namespace}/${name} has no port named ${sectionName} (its ports: ${namesText}), so the object does not apply there and connections to the port are plaintext: correct the name`,
    other: { config: service, field: 'spec.ports' },
  };
}

const objectByName = memoizeByObject((objects: readonly Config[]) => objectsByName(objects));
