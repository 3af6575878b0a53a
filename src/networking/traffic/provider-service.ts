import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';

export interface ProviderService {
  readonly host: string;
  isProvidedBy(service: Pick<Service, 'namespace'>): boolean;
}

/**
 * Providers authorize requests and receive traces and logs, so a tenant must not be able to replace one with a ServiceEntry. A host
 * `NAME.NAMESPACE.svc.DOMAIN` belongs to that namespace, even if its Service does not exist or is not exported to the client. The root namespace and
 * the client's namespace may also define it.
 *
 * @param name `HOST`, or `NAMESPACE/HOST`, which names the owner explicitly
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
  const trustedNamespaces = slash === -1 ? [mesh.rootNamespace, clientNamespace] : [];
  return {
    host,
    isProvidedBy: ({ namespace }) =>
      owner === undefined || namespace === owner || trustedNamespaces.includes(namespace),
  };
}
