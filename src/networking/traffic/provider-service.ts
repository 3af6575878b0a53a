/** The service that an extension provider of the mesh configuration names. */
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';

export interface ProviderService {
  readonly host: string;
  isProvidedBy(service: Pick<Service, 'namespace'>): boolean;
}

/**
 * A provider authorizes requests and receives traces and logs, so a tenant must not replace it with a ServiceEntry for
 * its host. A host in the cluster, `name.namespace.svc.<domain>`, belongs to that namespace even if its Service does
 * not exist or is not exported to the client. The root namespace and the client's own namespace may define it as well.
 * Any other host without a namespace is the service that the client sees under this name. `namespace/host` names the
 * owner explicitly.
 *
 * @param name `host`, or `namespace/host`
 */
export function providerService(
  name: string,
  clientNamespace: string,
  { domain, mesh }: Pick<PushContext, 'domain' | 'mesh'>,
): ProviderService {
  const slash = name.indexOf('/');
  const host = name.slice(slash + 1);
  const suffix = `.svc.${domain}`;
  const owner =
    slash !== -1
      ? name.slice(0, slash)
      : host.endsWith(suffix)
        ? host.slice(0, -suffix.length).split('.').at(-1)
        : undefined;
  const trusted = slash === -1 ? [mesh.rootNamespace, clientNamespace] : [];
  return {
    host,
    isProvidedBy: ({ namespace }) => owner === undefined || namespace === owner || trusted.includes(namespace),
  };
}
