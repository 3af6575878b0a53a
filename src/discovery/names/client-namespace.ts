import type { TLSSocket } from 'node:tls';
import { singleWorkloadOf } from '../../identity/spiffe-id.ts';
import type { Authenticator, PeerCertificate } from '../xds/access/authenticator.ts';
import { clientCertificate } from '../xds/access/client-certificate.ts';
import { chainOf } from '../xds/admission/grpc-http2.ts';

export interface ClientNamespaceOptions {
  readonly trustDomains: () => readonly string[];
  /** Whether a certificate that TLS rejects was issued by an accepted root of another trust domain. */
  readonly acceptsOther: (chain: readonly Uint8Array[]) => boolean;
  readonly isRevoked: (serialNumber: string) => boolean;
}

/** The returned function returns `undefined` for a client without certificate, and throws if the certificate is not accepted. */
export function clientNamespaces({
  trustDomains,
  acceptsOther,
  isRevoked,
}: ClientNamespaceOptions): (socket: TLSSocket) => string | undefined {
  const certificateAuthenticator: Authenticator = clientCertificate(isRevoked);
  return (socket) => {
    const chain = chainOf(socket);
    if (chain.length === 0) return undefined;
    if (!socket.authorized && !acceptsOther(chain)) throw new Error('client certificate not accepted');
    const certificate: PeerCertificate = socket.getPeerCertificate();
    const authentication = certificateAuthenticator.authenticate({ ...noPeer, certificate });
    if (authentication instanceof Promise || 'failure' in authentication)
      throw new Error('client certificate not accepted');
    const workload = singleWorkloadOf(authentication.identities);
    if (workload === undefined || !trustDomains().includes(workload.trustDomain)) {
      throw new Error('client certificate of another trust domain');
    }
    return workload.namespace;
  };
}

const noPeer = { host: '', address: '', metadata: () => [] };
