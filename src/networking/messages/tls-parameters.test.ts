import { describe, expect, it } from 'vitest';
import { TlsParameters_TlsProtocol as Version } from '../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts';
import { tlsParameters, workloadClientParameters, workloadServerParameters } from './tls-parameters.ts';

const mesh = {
  minProtocolVersion: 'TLSV1_3',
  cipherSuites: ['AES128-GCM-SHA256'],
  ecdhCurves: ['P-256'],
} as const;

describe('TLS outside the mesh', () => {
  it("the TLS version is 1.2 to 1.3 by default, with Envoy's cipher suites", () => {
    expect(tlsParameters(undefined)).toEqual({
      tlsMinimumProtocolVersion: Version.TLSv1_2,
      tlsMaximumProtocolVersion: Version.TLSv1_3,
      cipherSuites: [],
      ecdhCurves: [],
    });
  });

  it("the mesh's settings apply unless the server overrides them", () => {
    expect(tlsParameters(mesh)).toMatchObject({
      tlsMinimumProtocolVersion: Version.TLSv1_3,
      cipherSuites: ['AES128-GCM-SHA256'],
      ecdhCurves: ['P-256'],
    });
    expect(tlsParameters(mesh, { minProtocolVersion: 'TLSV1_1', cipherSuites: ['AES256-SHA'] })).toMatchObject({
      tlsMinimumProtocolVersion: Version.TLSv1_1,
      cipherSuites: ['AES256-SHA'],
    });
  });

  it("a server with a maximum version below the mesh's minimum uses only its maximum version", () => {
    expect(tlsParameters(mesh, { maxProtocolVersion: 'TLSV1_2' })).toMatchObject({
      tlsMinimumProtocolVersion: Version.TLSv1_2,
      tlsMaximumProtocolVersion: Version.TLSv1_2,
    });
  });
});

describe('mutual TLS between workloads', () => {
  it("workloads prefer cipher suites with forward secrecy, and ignore the mesh's ECDH curves", () => {
    expect(workloadServerParameters({ ecdhCurves: ['P-256'] })).toMatchObject({ ecdhCurves: [] });
    expect(workloadServerParameters(undefined).cipherSuites).toEqual([
      'ECDHE-ECDSA-AES256-GCM-SHA384',
      'ECDHE-RSA-AES256-GCM-SHA384',
      'ECDHE-ECDSA-AES128-GCM-SHA256',
      'ECDHE-RSA-AES128-GCM-SHA256',
      'AES256-GCM-SHA384',
      'AES128-GCM-SHA256',
    ]);
  });

  it('workloads use the TLS version and cipher suites of the mesh', () => {
    expect(workloadServerParameters(mesh).cipherSuites).toEqual(['AES128-GCM-SHA256']);
    for (const parameters of [workloadServerParameters(mesh), workloadClientParameters(mesh)]) {
      expect(parameters.tlsMinimumProtocolVersion).toBe(Version.TLSv1_3);
    }
  });
});
