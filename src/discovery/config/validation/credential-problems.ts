import type { Config } from '../../../model/config/config.ts';
import { type Problem, violationIn } from '../../../model/config/problem.ts';
import { HostNames, isHostWithin } from '../../../model/fields/hostname.ts';
import { credentialWarnings } from '../../../model/kinds/destinations/destination-rule.decode.ts';
import type { Gateway } from '../../../model/kinds/gateway/gateway.ts';
import type { ReferenceGrant } from '../../../model/kinds/gateway-api/reference-grant.ts';
import type { ConfigMap } from '../../../model/kinds/kubernetes/config-map.ts';
import type { Secret } from '../../../model/kinds/kubernetes/secret.ts';
import type { VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { CredentialIndex } from '../../../model/push-context/credential-index.ts';
import { ReferenceGrants } from '../../../model/push-context/reference-grants.ts';
import { destinationHosts, resolveVirtualService } from '../../../model/push-context/resolve-virtual-service.ts';
import { unservedCredential } from '../../../networking/secrets/build.ts';
import { serverCredentials } from '../../../networking/secrets/credential-name.ts';
import { problemFieldsOf } from './about-object.ts';
import type { TranslatedFiles } from './translated-files.ts';

/**
 * A gateway in another namespace uses that namespace's Secrets, and a Secret that is missing in the files may exist in the cluster, so there are only
 * warnings.
 */
export function credentialProblems(configs: readonly Config[]): Problem[] {
  const configsOfKind = <Spec>(kind: string) =>
    configs.filter((config) => config.kind === kind) as readonly Config<Spec>[];
  const credentials = new CredentialIndex({
    Secret: configsOfKind<Secret>('Secret'),
    ConfigMap: configsOfKind<ConfigMap>('ConfigMap'),
  });
  const referenceGrants = new ReferenceGrants(configsOfKind<ReferenceGrant>('ReferenceGrant'));
  return configsOfKind<Gateway>('Gateway').flatMap((gateway) =>
    gateway.spec.servers.flatMap(({ tls }, index) =>
      (tls ? serverCredentials(tls) : []).flatMap(({ resource, field }): Problem[] => {
        const unservedReason = unservedCredential(resource, gateway.namespace, { credentials, referenceGrants });
        // Missing objects are reported as CREDENTIAL_NOT_FOUND.
        if (unservedReason?.cause !== 'content') return [];
        return [
          {
            severity: 'warning',
            code: 'CREDENTIAL_INVALID',
            ...problemFieldsOf(gateway),
            field: `spec.servers[${index}].tls.${field}`,
            message: `${unservedReason.text}, so TLS connections to the server fail`,
          },
        ];
      }),
    ),
  );
}

/**
 * Finds client credentials without effect: sidecars do not receive the Secret of a DestinationRule without a selector, and no gateway in the files
 * routes to the rule's host.
 */
export function clientCredentialProblems({ writtenConfigs, generatedConfigs, domain }: TranslatedFiles): Problem[] {
  const hostNames = new HostNames(domain);
  const generatedRoutes = [...generatedConfigs.values()].filter(isVirtualService);
  const routedHosts = hostsOfGateways([...writtenConfigs.VirtualService, ...generatedRoutes], hostNames);
  return writtenConfigs.DestinationRule.flatMap((rule) => {
    const ruleHost = hostNames.qualify(rule.spec.host, rule.namespace);
    const reachesGateway = routedHosts.some((host) => isHostWithin(host, ruleHost));
    return (reachesGateway ? [] : credentialWarnings(rule.spec)).map(
      ({ path, ...violation }): Problem => ({
        severity: 'warning',
        ...problemFieldsOf(rule),
        field: `spec.${path}`,
        ...violationIn(violation),
      }),
    );
  });
}

const isVirtualService = (config: Config): config is Config<VirtualService> => config.kind === 'VirtualService';

/** Includes routes of delegates. */
function hostsOfGateways(configs: readonly Config<VirtualService>[], hostNames: HostNames): readonly string[] {
  const ofGateways = configs.filter(({ spec }) => spec.gateways?.some((gateway) => gateway !== 'mesh') === true);
  const delegates = new Set(
    ofGateways.flatMap(({ namespace, spec }) =>
      (spec.http ?? []).flatMap(({ delegate }) =>
        delegate === undefined ? [] : `${delegate.namespace || namespace}/${delegate.name}`,
      ),
    ),
  );
  const ofDelegates = configs.filter(({ namespace, name }) => delegates.has(`${namespace}/${name}`));
  return [...ofGateways, ...ofDelegates].flatMap((config) => [
    ...destinationHosts(resolveVirtualService(config, hostNames).spec),
  ]);
}
