/**
 * Reports Secrets and ConfigMaps in TLS settings that the files do not contain. A control plane reads only objects that
 * proxies request, see `src/discovery/monitor/diagnostics/proxy-warnings.ts`.
 */
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import { type Config, configKeyText, fieldText } from '../../../model/config/config.ts';
import { type ConfigSet, objectsByName } from '../../../model/config/config-set.ts';
import type { DestinationRule } from '../../../model/kinds/destinations/destination-rule.ts';
import type { Gateway } from '../../../model/kinds/gateway/gateway.ts';
import {
  type CredentialName,
  credentialResourceName,
  parseCredentialName,
  rootsObjectName,
  serverCredentials,
} from '../../../networking/secrets/credential-name.ts';
import {
  type CheckSources,
  type ConfigCheck,
  type ConfigWarning,
  isWrittenConfig,
  type ObjectLocation,
} from '../config-warning.ts';

export const checkCredentials: ConfigCheck = function* (sources) {
  const { configs } = sources;
  const names = namesOf(configs);
  for (const config of configs.Gateway) {
    yield undefined;
    for (const [index, { tls }] of config.spec.servers.entries()) {
      for (const { resource, field } of tls === undefined ? [] : serverCredentials(tls)) {
        const credentialName = parseCredentialName(resource, config.namespace);
        if (credentialName === undefined) continue;
        const credentialField = locateCredential(config, index, field, configs);
        if (credentialField !== undefined)
          yield warningOf(credentialField, credentialName, isCertain(resource, credentialField.config), names, sources);
      }
    }
  }
  for (const config of configs.DestinationRule) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const { credential, field } of clientCredentials(config.spec)) {
      const resource = credentialResourceName(credential);
      const credentialName = parseCredentialName(resource, config.namespace);
      // A rule with a selector applies only to clients of its namespace, one without also to gateways of any namespace.
      const isCertainlyMissing = config.spec.workloadSelector !== undefined || isCertain(resource, config);
      if (credentialName !== undefined)
        yield warningOf({ config, field }, credentialName, isCertainlyMissing, names, sources);
    }
  }
};

function* clientCredentials({
  trafficPolicy,
  subsets = [],
}: DestinationRule): Generator<{ readonly credential: string; readonly field: string }> {
  const policies = [
    { policy: trafficPolicy, path: 'spec.trafficPolicy' },
    ...subsets.map((subset, index) => ({ policy: subset.trafficPolicy, path: `spec.subsets[${index}].trafficPolicy` })),
  ];
  for (const { policy, path } of policies) {
    const levels = policy?.portLevelSettings ?? [];
    const tlsSettings = [
      { tls: policy?.tls, path },
      ...levels.map(({ tls }, index) => ({ tls, path: `${path}.portLevelSettings[${index}]` })),
    ];
    for (const { tls, path: tlsPath } of tlsSettings) {
      if (tls?.credentialName && (tls.mode === 'SIMPLE' || tls.mode === 'MUTUAL'))
        yield { credential: tls.credentialName, field: `${tlsPath}.tls.credentialName` };
    }
  }
}

export function locateCredential(
  config: Config<Gateway>,
  index: number,
  field: string,
  configs: Pick<ConfigSet, 'KubernetesGateway' | 'Ingress'>,
): Required<ObjectLocation> | undefined {
  const origin = config.partOrigins?.[`servers[${index}]`]?.[0];
  const isFromIngress = config.generatedFrom === 'Ingress';
  const objects: readonly Config[] = isFromIngress ? configs.Ingress : configs.KubernetesGateway;
  const writtenObject = origin && gatewayByName(objects).get(`${origin.key.namespace}/${origin.key.name}`);
  if (writtenObject) {
    const path = fieldText(origin.path ?? ['spec']);
    return {
      config: writtenObject,
      field: isFromIngress ? `${path}.secretName` : `${path}.tls.certificateRefs[${indexOf(field)}]`,
    };
  }
  return isWrittenConfig(config) ? { config, field: `spec.servers[${index}].tls.${field}` } : undefined;
}

/** A generated server has `credentialName` for one reference of its listener, and `credentialNames` for several. */
function indexOf(field: string): string {
  return /\[(\d+)\]$/.exec(field)?.[1] ?? '0';
}

const gatewayByName = memoizeByObject((gateways: readonly Config[]) => objectsByName(gateways));

export function absentCredentialText(object: string, advice: string): string {
  return `there is no ${object}, so TLS connections fail: ${advice}`;
}

/** If the name contains no namespace, that of the gateway's workload is meant. */
function isCertain(resource: string, { kind }: Config): boolean {
  return kind === 'KubernetesGateway' || resource.slice(resource.indexOf('://') + '://'.length).includes('/');
}

interface CredentialNames {
  /** Keys of the form `Secret/namespace/name`. */
  readonly keys: ReadonlySet<string>;
  /** Keys of the form `Secret/name`, which match any namespace. */
  readonly keysInAnyNamespace: ReadonlySet<string>;
}

function namesOf({ Secret, ConfigMap }: ConfigSet): CredentialNames {
  const credentialConfigs: readonly Config[] = [...Secret, ...ConfigMap];
  return {
    keys: new Set(credentialConfigs.map((config) => configKeyText(config))),
    keysInAnyNamespace: new Set(credentialConfigs.map(({ kind, name }) => `${kind}/${name}`)),
  };
}

function warningOf(
  credentialField: { readonly config: Config; readonly field: string },
  { kind, namespace, name, roots }: CredentialName,
  isSure: boolean,
  { keys, keysInAnyNamespace }: CredentialNames,
  { knownObjects }: CheckSources,
): ConfigWarning | undefined {
  const candidates = roots ? [name, rootsObjectName(name)] : [name];
  const hasCredential = candidates.some((secretName) =>
    isSure ? keys.has(`${kind}/${namespace}/${secretName}`) : keysInAnyNamespace.has(`${kind}/${secretName}`),
  );
  if (hasCredential || !knownObjects.isComplete(kind, isSure ? namespace : undefined)) return undefined;
  const secretText = isSure ? `${namespace}/${name}` : name;
  const advice = isSure
    ? 'create it, or correct the name'
    : "create it in the namespace of the gateway's or client's workload, or correct the name";
  return {
    ...{ code: 'CREDENTIAL_NOT_FOUND', ...credentialField },
    message: absentCredentialText(`${kind} ${secretText}`, advice),
  };
}
