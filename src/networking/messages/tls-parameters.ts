/** Versions, ciphers and curves of TLS, with what the mesh says of them (spec/discovery.md §3.2, §8.4). */
import {
  type TlsParametersSchema,
  TlsParameters_TlsProtocol as TlsVersion,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import type { TlsProtocol } from '../../model/kinds/gateway/gateway.ts';
import type { TlsDefaults } from '../../model/mesh/mesh-config.ts';
import type { Init } from './init.ts';

/** What one server or client says for itself; absent fields are the mesh's. */
export interface OwnTlsParameters {
  readonly minProtocolVersion?: TlsProtocol | undefined;
  readonly maxProtocolVersion?: TlsProtocol | undefined;
  readonly cipherSuites?: readonly string[] | undefined;
}

/**
 * What workloads offer each other up to TLS 1.2, unless the mesh says otherwise: forward secrecy first. TLS 1.3 has its
 * own suites, which Envoy does not let choose.
 */
const workloadCipherSuites: readonly string[] = [
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-GCM-SHA256',
];

/** Parameters of TLS with peers outside of the mesh: at least 1.2, at most 1.3, unless something says otherwise. */
export function tlsParameters(
  mesh: TlsDefaults | undefined,
  own: OwnTlsParameters = {},
): Init<typeof TlsParametersSchema> {
  const tlsMaximumProtocolVersion = version(own.maxProtocolVersion) ?? TlsVersion.TLSv1_3;
  const least = version(mesh?.minProtocolVersion) ?? TlsVersion.TLSv1_2;
  const cipherSuites = own.cipherSuites?.length ? own.cipherSuites : (mesh?.cipherSuites ?? []);
  return {
    // A server whose newest version is an old one takes that one, whatever the mesh asks of others.
    tlsMinimumProtocolVersion:
      version(own.minProtocolVersion) ?? (least > tlsMaximumProtocolVersion ? tlsMaximumProtocolVersion : least),
    tlsMaximumProtocolVersion,
    cipherSuites: [...cipherSuites],
    ecdhCurves: [...(mesh?.ecdhCurves ?? [])],
  };
}

/** Parameters of mutual TLS that a workload takes from others. The mesh has no say in its curves (MeshConfig, `meshMTLS`). */
export function workloadServerParameters(
  mesh: TlsDefaults | undefined,
  own: OwnTlsParameters = {},
): Init<typeof TlsParametersSchema> {
  const cipherSuites = mesh?.cipherSuites?.length ? mesh.cipherSuites : workloadCipherSuites;
  return tlsParameters({ ...mesh, cipherSuites, ecdhCurves: [] }, own);
}

/** Parameters of mutual TLS that a workload starts: what it offers, the other side chooses from. */
export function workloadClientParameters(mesh: TlsDefaults | undefined): Init<typeof TlsParametersSchema> {
  return {
    tlsMinimumProtocolVersion: version(mesh?.minProtocolVersion) ?? TlsVersion.TLSv1_2,
    tlsMaximumProtocolVersion: TlsVersion.TLSv1_3,
  };
}

const versions: Readonly<Record<TlsProtocol, TlsVersion | undefined>> = {
  TLS_AUTO: undefined,
  TLSV1_0: TlsVersion.TLSv1_0,
  TLSV1_1: TlsVersion.TLSv1_1,
  TLSV1_2: TlsVersion.TLSv1_2,
  TLSV1_3: TlsVersion.TLSv1_3,
};

function version(wanted: TlsProtocol | undefined): TlsVersion | undefined {
  return wanted && versions[wanted];
}
