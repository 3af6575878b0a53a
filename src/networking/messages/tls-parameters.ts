import {
  type TlsParametersSchema,
  TlsParameters_TlsProtocol as TlsVersion,
} from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import type { TlsProtocol } from '../../model/kinds/gateway/gateway.ts';
import type { TlsDefaults } from '../../model/mesh/mesh-config.ts';
import type { Init } from './init.ts';

/** Absent fields default to the mesh's values. */
export interface TlsOverrides {
  readonly minProtocolVersion?: TlsProtocol | undefined;
  readonly maxProtocolVersion?: TlsProtocol | undefined;
  readonly cipherSuites?: readonly string[] | undefined;
}

/** Default cipher suites between workloads up to TLS 1.2, forward secrecy first. Envoy does not allow the selection of TLS 1.3 suites. */
const workloadCipherSuites: readonly string[] = [
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'AES256-GCM-SHA384',
  'AES128-GCM-SHA256',
];

/** Allows TLS 1.2 to 1.3 by default. */
export function tlsParameters(
  mesh: TlsDefaults | undefined,
  overrides: TlsOverrides = {},
): Init<typeof TlsParametersSchema> {
  const tlsMaximumProtocolVersion = version(overrides.maxProtocolVersion) ?? TlsVersion.TLSv1_3;
  const minimum = version(mesh?.minProtocolVersion) ?? TlsVersion.TLSv1_2;
  const cipherSuites = overrides.cipherSuites?.length ? overrides.cipherSuites : (mesh?.cipherSuites ?? []);
  return {
    // A server's maximum version has priority over a higher minimum of the mesh.
    tlsMinimumProtocolVersion:
      version(overrides.minProtocolVersion) ??
      (minimum > tlsMaximumProtocolVersion ? tlsMaximumProtocolVersion : minimum),
    tlsMaximumProtocolVersion,
    cipherSuites: [...cipherSuites],
    ecdhCurves: [...(mesh?.ecdhCurves ?? [])],
  };
}

/** The mesh does not configure the curves of inbound mutual TLS (MeshConfig, `meshMTLS`). */
export function workloadServerParameters(
  mesh: TlsDefaults | undefined,
  overrides: TlsOverrides = {},
): Init<typeof TlsParametersSchema> {
  const cipherSuites = mesh?.cipherSuites?.length ? mesh.cipherSuites : workloadCipherSuites;
  return tlsParameters({ ...mesh, cipherSuites, ecdhCurves: [] }, overrides);
}

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

function version(protocol: TlsProtocol | undefined): TlsVersion | undefined {
  return protocol && versions[protocol];
}
