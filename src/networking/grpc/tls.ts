/**
 * TLS with the certificates of the bootstrap file, for clients and servers (A29). Contains both current and deprecated
 * fields, because older clients only support the latter.
 */
import {
  type CommonTlsContextSchema,
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { type TypedExtension, typedExtension } from '../messages/any.ts';
import type { Init } from '../messages/init.ts';

/** gRPC accepts no other name. */
const tlsSocketName = 'envoy.transport_sockets.tls';

/** The certificate provider in the bootstrap file. */
const instanceName = 'default';
const certificate = { instanceName, certificateName: 'default' };
const roots = { instanceName, certificateName: 'ROOTCA' };

/**
 * @param names accepted names of the server's certificate. Without names, any certificate that the roots sign is
 * accepted.
 */
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

/** gRPC servers do not match client names in TLS, but by RBAC. */
export const serverTls: TypedExtension = typedExtension(tlsSocketName, DownstreamTlsContextSchema, {
  commonTlsContext: commonContext([]),
  requireClientCertificate: true,
});
