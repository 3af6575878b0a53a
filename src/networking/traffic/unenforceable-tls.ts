/** TLS servers that cannot verify clients as configured reject all connections. */
import { checksClients, clientAuthority } from '../../model/kinds/destinations/client-authority.ts';
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { hasWorkloadCertificates } from './shape-keys.ts';

export function unenforceableTls(settings: ServerTlsSettings, shape: Pick<ProxyShape, 'metadata'>): string | undefined {
  if (settings.mode === 'ISTIO_MUTUAL' && !hasWorkloadCertificates(shape)) {
    return 'ISTIO_MUTUAL requires workload certificates, and the proxy has no agent';
  }
  return checksClients(settings) && clientAuthority(settings) === undefined
    ? `mode ${settings.mode} requires CA certificates of clients (caCertificates or a credential)`
    : undefined;
}
