import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Ca } from '../ca/make-ca.ts';
import type { DiscoveryOptions } from '../options/discovery-options.ts';
import { clientNamespaces } from './client-namespace.ts';
import { MeshNames } from './mesh-names.ts';
import { nameServerWithEffects } from './name-server.effects.ts';
import { NameServerCounts } from './name-server.ts';

export interface NamesParts {
  readonly options: Pick<DiscoveryOptions, 'namesAddress' | 'domain' | 'clusterId'>;
  readonly context: () => PushContext | undefined;
  readonly mesh: () => MeshConfig;
  readonly ca: Ca;
}

/** @returns `undefined` if no address is configured */
export function makeNames({ options, context, mesh, ca }: NamesParts) {
  const { namesAddress: address, domain, clusterId } = options;
  if (address === undefined) return undefined;
  const counts = new NameServerCounts();
  const names = new MeshNames({ context, domain, clusterId });
  return {
    counts,
    actor: () =>
      nameServerWithEffects(address, () => {
        const { portCertificate, signing } = ca;
        return {
          ...{ names, counts },
          followTls: (onChanged) => portCertificate!.follow(onChanged),
          namespaceOf: clientNamespaces({
            trustDomains: () => trustDomainsOf(mesh()),
            acceptsOther: (chain) => portCertificate!.credentials.acceptsOtherClient(chain),
            isRevoked: (serial) => signing?.revokedFile.isCertificateRevoked(serial) === true,
          }),
        };
      }),
  };
}
