import { toJson } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { UpstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import type { ClientTlsSettings } from '../../model/kinds/destinations/traffic-policy.ts';
import type { Service } from '../../model/services/service.ts';
import { type PublicTlsTarget, publicTls } from './public-tls.ts';

const target: PublicTlsTarget = {
  service: { serviceAccounts: [], registry: 'External' },
  http2: false,
  mesh: {},
  hasAgent: false,
  checksRevocationLists: false,
  mayRequestSecrets: false,
};

function context(settings: ClientTlsSettings, targetFields: Partial<PublicTlsTarget> = {}): Record<string, unknown> {
  const { transportSocket } = publicTls(settings, { ...target, ...targetFields });
  const unpacked = anyUnpack(transportSocket.configType.value, UpstreamTlsContextSchema)!;
  return toJson(UpstreamTlsContextSchema, unpacked) as {
    commonTlsContext: Record<string, unknown>;
  }['commonTlsContext'];
}

/** Returns the names of secrets and files in the TLS context. */
function sources(settings: ClientTlsSettings, targetFields: Partial<PublicTlsTarget> = {}): string[] {
  const json = JSON.stringify(context(settings, targetFields));
  return [...json.matchAll(/"(?:name|filename)":"([^"]+)"/g)].map(([, text]) => text!);
}

const files = { clientCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: '/ca.pem' };

describe('certificates and roots for TLS outside the mesh', () => {
  it('Envoy reads files itself or, with an agent, requests them from the agent', () => {
    expect(sources({ mode: 'MUTUAL', ...files })).toEqual(['/c.pem', '/k.pem', '/ca.pem']);
    expect(sources({ mode: 'MUTUAL', ...files }, { hasAgent: true }).filter((name) => name.startsWith('file'))).toEqual(
      ['file-cert:/c.pem~/k.pem', 'file-root:/ca.pem'],
    );
  });

  it('the agent serves files together with their revocation lists if the agent checks these', () => {
    const settings = { mode: 'SIMPLE', caCertificates: '/ca.pem', caCrl: '/ca.crl' } as const;
    expect(sources(settings)).toEqual(['/ca.pem', '/ca.crl']);
    expect(sources(settings, { hasAgent: true }).sort()).toEqual(['/ca.crl', 'file-root:/ca.pem']);
    const checks = { hasAgent: true, checksRevocationLists: true };
    expect(sources(settings, checks).sort()).toEqual(['file-root-crl:/ca.pem~/ca.crl']);
    // The agent cannot request such a path as a secret.
    expect(sources({ ...settings, caCrl: '/~/ca.crl' }, checks)).toContain('/~/ca.crl');
  });

  it('a Secret without a revocation list is combined with the list in a file', () => {
    const settings = { mode: 'SIMPLE', credentialName: 'web', caCrl: '/ca.crl' } as const;
    expect(sources(settings, { mayRequestSecrets: true })).toEqual(['/ca.crl', 'kubernetes://web-cacert']);
  });

  it('the system roots are the default', () => {
    expect(sources({ mode: 'SIMPLE' })).toEqual(['/etc/ssl/certs/ca-certificates.crt']);
    expect(sources({ mode: 'SIMPLE' }, { hasAgent: true })).toContain('file-root:system');
    expect(context({ mode: 'SIMPLE', insecureSkipVerify: true }).commonTlsContext).not.toHaveProperty(
      'validationContext',
    );
  });

  it('a Secret from the control plane is used only by rules with a workload selector, and others use the system roots', () => {
    const settings = { mode: 'MUTUAL', credentialName: 'web' } as const;
    expect(sources(settings, { mayRequestSecrets: true })).toEqual(['kubernetes://web', 'kubernetes://web-cacert']);
    expect(sources(settings)).toEqual(['/etc/ssl/certs/ca-certificates.crt']);
  });
});

it('the server is verified by the requested host if the rule specifies no name', () => {
  const auto = (
    settings: Partial<ClientTlsSettings>,
    serviceAccounts: string[] = [],
    registry: Service['registry'] = 'External',
  ) => {
    const { autoSni, autoSanValidation } = publicTls(
      { mode: 'SIMPLE', ...settings },
      { ...target, service: { serviceAccounts, registry } },
    );
    return [autoSni, autoSanValidation];
  };
  expect(auto({})).toEqual([true, true]);
  expect(auto({ sni: 'a.b' })).toEqual([false, false]);
  expect(auto({}, ['a.b'])).toEqual([true, false]);
  // A server outside the mesh has no service account names.
  expect(auto({}, ['spiffe://a/ns/b/sa/c'], 'Kubernetes')).toEqual([true, true]);
  expect(auto({ subjectAltNames: ['a.b'] })).toEqual([true, false]);
});
