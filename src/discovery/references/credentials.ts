/**
 * Secrets and ConfigMaps that TLS settings name exist (spec/discovery.md §8.7), among files. A control plane has only the objects that
 * proxies request: `src/discovery/monitor/proxy-warnings.ts`.
 */
import { onceFor } from '../../model/collections/once-for.ts';
import { type Config, configKeyText, fieldText } from '../../model/config/config.ts';
import { type ConfigSet, objectsByName } from '../../model/config/config-set.ts';
import type { Gateway } from '../../model/kinds/gateway.ts';
import {
  type CredentialName,
  credentialsOfServer,
  parseCredentialName,
  rootsObjectName,
} from '../../networking/secrets/credential-name.ts';
import {
  type CheckSources,
  type ConfigCheck,
  type ConfigWarning,
  isWritten,
  type ObjectPlace,
} from './config-warning.ts';

export const checkCredentials: ConfigCheck = function* (sources) {
  const { configs } = sources;
  const names = namesOf(configs);
  for (const config of configs.Gateway) {
    yield undefined;
    for (const [index, { tls }] of config.spec.servers.entries()) {
      for (const resource of tls === undefined ? [] : credentialsOfServer(tls)) {
        const named = parseCredentialName(resource, config.namespace);
        if (named === undefined) continue;
        const place = credentialPlace(config, index, configs);
        if (place !== undefined) yield warningOf(place, named, isCertain(resource, place.config), names, sources);
      }
    }
  }
};

/** Where a server's credentials are written; `undefined` if no written object has them. */
export function credentialPlace(
  config: Config<Gateway>,
  index: number,
  { KubernetesGateway }: Pick<ConfigSet, 'KubernetesGateway'>,
): Required<ObjectPlace> | undefined {
  const origin = config.madeOf?.[`servers[${index}]`]?.[0];
  const gateway = origin && byName(KubernetesGateway).get(`${origin.key.namespace}/${origin.key.name}`);
  if (gateway) return { config: gateway, field: `${fieldText(origin.path ?? ['spec'])}.tls.certificateRefs` };
  return isWritten(config) ? { config, field: `spec.servers[${index}].tls` } : undefined;
}

const byName = onceFor((gateways: readonly Config[]) => objectsByName(gateways));

/** The text of a warning about an object that does not exist. */
export function absentCredentialText(object: string, advice: string): string {
  return `there is no ${object}, so TLS connections to the server fail: ${advice}`;
}

/** Whether the namespace of the object is known: without one in the name, it is that of the gateway's workload. */
function isCertain(resource: string, { kind }: Config): boolean {
  return kind === 'KubernetesGateway' || resource.slice(resource.indexOf('://') + '://'.length).includes('/');
}

interface Names {
  /** `Secret/namespace/name`. */
  readonly keys: ReadonlySet<string>;
  /** `Secret/name`, of any namespace. */
  readonly anywhere: ReadonlySet<string>;
}

function namesOf({ Secret, ConfigMap }: ConfigSet): Names {
  const all: readonly Config[] = [...Secret, ...ConfigMap];
  return {
    keys: new Set(all.map((config) => configKeyText(config))),
    anywhere: new Set(all.map(({ kind, name }) => `${kind}/${name}`)),
  };
}

function warningOf(
  place: { readonly config: Config; readonly field: string },
  { kind, namespace, name, roots }: CredentialName,
  certain: boolean,
  { keys, anywhere }: Names,
  { known }: CheckSources,
): ConfigWarning | undefined {
  const candidates = roots ? [name, rootsObjectName(name)] : [name];
  const isThere = candidates.some((one) =>
    certain ? keys.has(`${kind}/${namespace}/${one}`) : anywhere.has(`${kind}/${one}`),
  );
  if (isThere || !known.isComplete(kind, certain ? namespace : undefined)) return undefined;
  const where = certain ? `${namespace}/${name}` : name;
  const advice = certain
    ? 'create it, or correct the name'
    : "create it in the namespace of the gateway's workload, or correct the name";
  return {
    ...{ code: 'CREDENTIAL_NOT_FOUND', ...place },
    message: absentCredentialText(`${kind} ${where}`, advice),
  };
}
