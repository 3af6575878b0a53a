import { create } from '@bufbuild/protobuf';
import { type TransportSocket, TransportSocketSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import { QuicDownstreamTransportSchema } from '../../gen/envoy/extensions/transport_sockets/quic/v3/quic_transport_pb.ts';
import { SubjectAltNameMatcher_SanType } from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import type { SdsSecretConfig } from '../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { DownstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { checksClients, clientAuthority } from '../../model/kinds/destinations/client-authority.ts';
import type { ServerTlsSettings } from '../../model/kinds/gateway/gateway.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import { type CommonTlsInit, fileSource, subjectAltNames, type ValidationInit } from '../clusters/tls-socket.ts';
import type { ProxyContext } from '../inputs/connection-context.ts';
import { typedExtension } from '../messages/any.ts';
import { adsSecret, agentSecret } from '../messages/config-source-message.ts';
import { fileCertificateSecret, fileRootSecret, revocationRootSecret } from '../messages/file-secret.ts';
import { tlsParameters, workloadServerParameters } from '../messages/tls-parameters.ts';
import { credentialResourceName, rootsResourceName } from '../secrets/credential-name.ts';
import { checksRevocationLists, hasWorkloadCertificates } from '../traffic/shape-keys.ts';
import { unenforceableTls } from '../traffic/unenforceable-tls.ts';

export const httpAlpn: readonly string[] = ['h2', 'http/1.1'];

const http3Alpn: readonly string[] = ['h3'];

/** ALPN for TCP between proxies of the mesh. */
const bytesAlpn: readonly string[] = ['istio-peer-exchange', ...httpAlpn];

export function workloadTls(content: 'requests' | 'bytes', mesh: MeshConfig): TransportSocket {
  return tlsSocket({
    requireClientCertificate: true,
    commonTlsContext: {
      tlsCertificateSdsSecretConfigs: [agentSecret('default')],
      ...combinedValidation({ matchTypedSubjectAltNames: meshIdentities(mesh) }, agentSecret('ROOTCA')),
      alpnProtocols: [...(content === 'requests' ? httpAlpn : bytesAlpn)],
      tlsParams: workloadServerParameters(mesh.meshMTLS),
    },
  });
}

/**
 * Returns `undefined` if client certificates are required but cannot be verified, because Envoy would then accept any (measured with Envoy 1.40).
 *
 * @param alpn ALPN values; empty for TCP
 * @param proxy without workload certificates, ISTIO_MUTUAL is not supported, because Envoy would wait for them indefinitely
 */
export function downstreamTls(
  settings: ServerTlsSettings,
  alpn: readonly string[],
  proxy: Pick<ProxyContext, 'shape' | 'push'>,
): TransportSocket | undefined {
  const context = downstreamContext(settings, alpn, proxy);
  return context && tlsSocket(context);
}

/** Like {@link downstreamTls}, for QUIC and without client certificates. */
export function quicTls(settings: ServerTlsSettings, proxy: Pick<ProxyContext, 'shape' | 'push'>): TransportSocket {
  const downstreamTlsContext = downstreamContext(settings, http3Alpn, proxy)!;
  return create(
    TransportSocketSchema,
    typedExtension('envoy.transport_sockets.quic', QuicDownstreamTransportSchema, { downstreamTlsContext }),
  );
}

function downstreamContext(
  settings: ServerTlsSettings,
  alpn: readonly string[],
  proxy: Pick<ProxyContext, 'shape' | 'push'>,
): DownstreamInit | undefined {
  const { mesh } = proxy.push;
  const usesMutualTls = settings.mode === 'MUTUAL' || settings.mode === 'ISTIO_MUTUAL';
  const hasAgent = hasWorkloadCertificates(proxy.shape);
  if (unenforceableTls(settings, proxy.shape) !== undefined) return undefined;
  const tlsParams =
    settings.mode === 'ISTIO_MUTUAL'
      ? workloadServerParameters(mesh.meshMTLS, settings)
      : tlsParameters(mesh.tlsDefaults, settings);
  return {
    requireClientCertificate: usesMutualTls,
    commonTlsContext: {
      ...certificates(settings, hasAgent),
      ...validation(settings, mesh, { hasAgent, checksLists: checksRevocationLists(proxy.shape) }),
      alpnProtocols: [...alpn],
      tlsParams,
    },
  };
}

interface DownstreamInit {
  readonly requireClientCertificate: boolean;
  readonly commonTlsContext: CommonTlsInit;
}

function tlsSocket(context: DownstreamInit): TransportSocket {
  return create(
    TransportSocketSchema,
    typedExtension('envoy.transport_sockets.tls', DownstreamTlsContextSchema, context),
  );
}

/** Matches all workloads of the mesh, in the trust domain and its aliases. */
function meshIdentities(mesh: MeshConfig): NonNullable<ValidationInit['matchTypedSubjectAltNames']> {
  return trustDomainsOf(mesh).map((domain) => ({
    sanType: SubjectAltNameMatcher_SanType.URI,
    matcher: { matchPattern: { case: 'prefix', value: `spiffe://${domain}/` } },
  }));
}

/** An agent serves files and watches them. Without an agent, Envoy reads files only once, when it creates the listener. */
function certificates(settings: ServerTlsSettings, hasAgent: boolean): CommonTlsInit {
  if (settings.mode === 'ISTIO_MUTUAL') return { tlsCertificateSdsSecretConfigs: [agentSecret('default')] };
  const credentials = credentialNames(settings);
  if (credentials.length > 0) {
    return { tlsCertificateSdsSecretConfigs: credentials.map((name) => adsSecret(credentialResourceName(name))) };
  }
  const pairs = (settings.tlsCertificates ?? [settings]).flatMap(({ serverCertificate, privateKey }) =>
    serverCertificate && privateKey ? [{ serverCertificate, privateKey }] : [],
  );
  if (hasAgent) {
    return {
      tlsCertificateSdsSecretConfigs: pairs.map((pair) =>
        fileCertificateSecret(pair.serverCertificate, pair.privateKey),
      ),
    };
  }
  return {
    tlsCertificates: pairs.map((pair) => ({
      certificateChain: fileSource(pair.serverCertificate),
      privateKey: fileSource(pair.privateKey),
    })),
  };
}

function credentialNames(settings: ServerTlsSettings): readonly string[] {
  if (settings.credentialNames?.length) return settings.credentialNames;
  return settings.credentialName ? [settings.credentialName] : [];
}

function validation(
  settings: ServerTlsSettings,
  mesh: MeshConfig,
  { hasAgent, checksLists }: { hasAgent: boolean; checksLists: boolean },
): CommonTlsInit {
  const { mode, subjectAltNames: names = [] } = settings;
  if (mode !== 'ISTIO_MUTUAL' && !checksClients(settings)) return {};
  const context: ValidationInit = {
    matchTypedSubjectAltNames: subjectAltNames(names),
    verifyCertificateSpki: [...(settings.verifyCertificateSpki ?? [])],
    verifyCertificateHash: [...(settings.verifyCertificateHash ?? [])],
    ...(settings.caCrl && { crl: fileSource(settings.caCrl) }),
  };
  if (mode === 'ISTIO_MUTUAL') {
    const meshContext = names.length > 0 ? context : { ...context, matchTypedSubjectAltNames: meshIdentities(mesh) };
    return combinedValidation(meshContext, agentSecret('ROOTCA'));
  }
  const authority = clientAuthority(settings)!;
  if (authority.kind === 'credential') return combinedValidation(context, adsSecret(rootsResourceName(authority.name)));
  if (hasAgent) {
    const { crl, ...otherFields } = context;
    const revocationSecret = settings.caCrl && checksLists && revocationRootSecret(authority.path, settings.caCrl);
    return revocationSecret
      ? combinedValidation(otherFields, revocationSecret)
      : combinedValidation(context, fileRootSecret(authority.path));
  }
  return {
    validationContextType: { case: 'validationContext', value: { ...context, trustedCa: fileSource(authority.path) } },
  };
}

function combinedValidation(context: ValidationInit, roots: SdsSecretConfig): CommonTlsInit {
  return {
    validationContextType: {
      case: 'combinedValidationContext',
      value: { defaultValidationContext: context, validationContextSdsSecretConfig: roots },
    },
  };
}
