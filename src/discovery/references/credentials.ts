/**
 * Secrets and ConfigMaps that TLS settings name exist (spec/discovery.md §8.7). A control plane reports that at the gateways that are connected: it
 * reads only objects that something names to it.
 */
import { type Config, configKeyText, fieldText } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import {
  type CredentialName,
  credentialsOfServer,
  parseCredentialName,
  rootsObjectName,
} from '../../networking/secrets/credential-name.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWritten } from './config-warning.ts';

export const checkCredentials: ConfigCheck = function* (sources) {
  const { configs } = sources;
  const names = namesOf(configs);
  const written = new Map(configs.KubernetesGateway.map((one) => [`${one.namespace}/${one.name}`, one]));
  for (const config of configs.Gateway) {
    yield undefined;
    for (const [index, { tls }] of config.spec.servers.entries()) {
      for (const resource of tls === undefined ? [] : credentialsOfServer(tls)) {
        const named = parseCredentialName(resource, config.namespace);
        if (named === undefined) continue;
        const origin = config.madeOf?.[`servers[${index}]`]?.[0];
        const gateway = origin && written.get(`${origin.key.namespace}/${origin.key.name}`);
        const place = gateway
          ? {
              config: gateway,
              field: `${fieldText(origin.path ?? ['spec'])}.tls.certificateRefs`,
            }
          : { config: config as Config, field: `spec.servers[${index}].tls` };
        if (!gateway && !isWritten(config)) continue;
        yield warningOf(place, named, isCertain(resource, gateway), names, sources);
      }
    }
  }
};

/** Whether the namespace of the object is known: without one in the name, it is that of the gateway's workload. */
function isCertain(resource: string, kubernetesGateway: Config | undefined): boolean {
  return kubernetesGateway !== undefined || resource.slice(resource.indexOf('://') + '://'.length).includes('/');
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
    message: `there is no ${kind} ${where}, so TLS connections to the server fail: ${advice}`,
  };
}
