/**
 * Configures TLS with the certificates of the gRPC bootstrap file (A29). Sets current and deprecated fields, because older clients support only the
 * latter.
 */
import {
  type CommonTlsContextSchema,
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { type TypedExtension, typedExtension } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';

/** gRPC accepts only this name. */
const tlsSocketName = 'envoy.transport_sockets.tls';

const instanceName = 'default';
const certificate = { instanceName, certificateName: 'default' };
const roots = { instanceName, certificateName: 'ROOTCA' };

/** @param names accepted names of the server certificate; if empty, every certificate signed by the roots is accepted */
function commonContext(names: readonly string[]): Init<typeof CommonTlsContextSchema> {
  return {
    tlsCertificateProviderInstance: certificate,
    tlsCertificateCertificateProviderInstance: certificate,
    validationContextType: {
      case: 'combinedValidationContext',
      value: {
        defaultValidationContext: {
          caCertificateProviderInstance: roots,
          matchSubjectAltNames: names.map((value) => ({ matchPattern: { case: 'exact', value } })),
        },
        validationContextCertificateProviderInstance: roots,
      },
    },
  };
}

export function clientTls(names: readonly string[]): TypedExtension {
  return typedExtension(tlsSocketName, UpstreamTlsContextSchema, { commonTlsContext: commonContext(names) });
}

/** gRPC servers check client names with RBAC, not in TLS. */
export const serverTls: TypedExtension = typedExtension(tlsSocketName, DownstreamTlsContextSchema, {
  commonTlsContext: commonContext([]),
  requireClientCertificate: true,
});
