/** TLS that ends at a gateway, or at an ingress listener of a sidecar (spec/discovery.md §8.7). */
import { create } from '@bufbuild/protobuf';
import { type TransportSocket, TransportSocketSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import { TlsParameters_TlsProtocol as TlsVersion } from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import {
  type CommonTlsContextSchema,
  DownstreamTlsContextSchema,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import type { ServerTlsSettings, TlsProtocol } from '../../model/kinds/gateway.ts';
import { typedExtension } from '../any.ts';
import { file, subjectAltNames } from '../clusters/upstream-tls.ts';
import { adsSecret, agentSecret } from '../config-source.ts';
import type { Init } from '../init.ts';

type CommonTlsInit = Init<typeof CommonTlsContextSchema>;

/** What is offered to clients of HTTP. */
export const httpAlpn: readonly string[] = ['h2', 'http/1.1'];

/** @param alpn what is offered to the client; empty for plain TCP behind the TLS. */
export function downstreamTls(settings: ServerTlsSettings, alpn: readonly string[]): TransportSocket {
  const mutual = settings.mode === 'MUTUAL' || settings.mode === 'ISTIO_MUTUAL';
  return create(
    TransportSocketSchema,
    typedExtension('envoy.transport_sockets.tls', DownstreamTlsContextSchema, {
      requireClientCertificate: mutual,
      commonTlsContext: {
        ...certificates(settings),
        ...validation(settings),
        alpnProtocols: [...alpn],
        tlsParams: {
          tlsMinimumProtocolVersion: version(settings.minProtocolVersion, TlsVersion.TLSv1_2),
          tlsMaximumProtocolVersion: version(settings.maxProtocolVersion, TlsVersion.TLSv1_3),
          cipherSuites: [...(settings.cipherSuites ?? [])],
        },
      },
    }),
  );
}

/**
 * Certificates by file name are read when the listener is made and not again: the agent restarts Envoy when they
 * change. A credential's name is asked of the control plane, and follows it.
 */
function certificates(settings: ServerTlsSettings): CommonTlsInit {
  if (settings.mode === 'ISTIO_MUTUAL') return { tlsCertificateSdsSecretConfigs: [agentSecret('default')] };
  const credentials = credentialNames(settings);
  if (credentials.length > 0) {
    return { tlsCertificateSdsSecretConfigs: credentials.map((name) => adsSecret(secretName(name))) };
  }
  const pairs = settings.tlsCertificates ?? [settings];
  return {
    tlsCertificates: pairs.flatMap(({ serverCertificate, privateKey }) =>
      serverCertificate && privateKey
        ? [{ certificateChain: file(serverCertificate), privateKey: file(privateKey) }]
        : [],
    ),
  };
}

function credentialNames(settings: ServerTlsSettings): readonly string[] {
  if (settings.credentialNames?.length) return settings.credentialNames;
  return settings.credentialName ? [settings.credentialName] : [];
}

function validation(settings: ServerTlsSettings): CommonTlsInit {
  const { mode } = settings;
  if (mode !== 'MUTUAL' && mode !== 'OPTIONAL_MUTUAL' && mode !== 'ISTIO_MUTUAL') return {};
  const wanted = {
    matchTypedSubjectAltNames: subjectAltNames(settings.subjectAltNames ?? []),
    verifyCertificateSpki: [...(settings.verifyCertificateSpki ?? [])],
    verifyCertificateHash: [...(settings.verifyCertificateHash ?? [])],
    ...(settings.caCrl && { crl: file(settings.caCrl) }),
  };
  const combined = (secret: ReturnType<typeof adsSecret>): CommonTlsInit => ({
    validationContextType: {
      case: 'combinedValidationContext',
      value: { defaultValidationContext: wanted, validationContextSdsSecretConfig: secret },
    },
  });
  if (mode === 'ISTIO_MUTUAL') return combined(agentSecret('ROOTCA'));
  if (settings.caCertCredentialName) return combined(adsSecret(secretName(settings.caCertCredentialName)));
  const credential = credentialNames(settings)[0];
  if (credential !== undefined) return combined(adsSecret(`${secretName(credential)}-cacert`));
  const roots =
    settings.caCertificates ?? settings.tlsCertificates?.find((pair) => pair.caCertificates)?.caCertificates;
  if (!roots) return {};
  return { validationContextType: { case: 'validationContext', value: { ...wanted, trustedCa: file(roots) } } };
}

function secretName(credential: string): string {
  return credential.includes('://') ? credential : `kubernetes://${credential}`;
}

const versions: Readonly<Record<TlsProtocol, TlsVersion | undefined>> = {
  TLS_AUTO: undefined,
  TLSV1_0: TlsVersion.TLSv1_0,
  TLSV1_1: TlsVersion.TLSv1_1,
  TLSV1_2: TlsVersion.TLSv1_2,
  TLSV1_3: TlsVersion.TLSv1_3,
};

function version(wanted: TlsProtocol | undefined, otherwise: TlsVersion): TlsVersion {
  return (wanted && versions[wanted]) ?? otherwise;
}
