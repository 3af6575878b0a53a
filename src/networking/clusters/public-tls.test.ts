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
  takesCredentials: false,
};

function context(settings: ClientTlsSettings, about: Partial<PublicTlsTarget> = {}): Record<string, unknown> {
  const { transportSocket } = publicTls(settings, { ...target, ...about });
  const unpacked = anyUnpack(transportSocket.configType.value, UpstreamTlsContextSchema)!;
  return toJson(UpstreamTlsContextSchema, unpacked) as {
    commonTlsContext: Record<string, unknown>;
  }['commonTlsContext'];
}

/** Names of secrets, and files, of the context, by which it is told from others. */
function sources(settings: ClientTlsSettings, about: Partial<PublicTlsTarget> = {}): string[] {
  const json = JSON.stringify(context(settings, about));
  return [...json.matchAll(/"(?:name|filename)":"([^"]+)"/g)].map(([, text]) => text!);
}

const files = { clientCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: '/ca.pem' };

describe('certificates and roots', () => {
  it('are files that Envoy reads, or that the agent reads for it', () => {
    expect(sources({ mode: 'MUTUAL', ...files })).toEqual(['/c.pem', '/k.pem', '/ca.pem']);
    expect(sources({ mode: 'MUTUAL', ...files }, { hasAgent: true }).filter((name) => name.startsWith('file'))).toEqual(
      ['file-cert:/c.pem~/k.pem', 'file-root:/ca.pem'],
    );
  });

  it('are served by the agent together with their revocation lists, if it checks these', () => {
    const settings = { mode: 'SIMPLE', caCertificates: '/ca.pem', caCrl: '/ca.crl' } as const;
    expect(sources(settings)).toEqual(['/ca.pem', '/ca.crl']);
    expect(sources(settings, { hasAgent: true }).sort()).toEqual(['/ca.crl', 'file-root:/ca.pem']);
    const checks = { hasAgent: true, checksRevocationLists: true };
    expect(sources(settings, checks).sort()).toEqual(['file-root-crl:/ca.pem~/ca.crl']);
    // Such a path is no part of a secret's name.
    expect(sources({ ...settings, caCrl: '/~/ca.crl' }, checks)).toContain('/~/ca.crl');
  });

  it('of a Secret have the lists of a file where the Secret has none', () => {
    const settings = { mode: 'SIMPLE', credentialName: 'web', caCrl: '/ca.crl' } as const;
    expect(sources(settings, { takesCredentials: true })).toEqual(['/ca.crl', 'kubernetes://web-cacert']);
  });

  it('are those of the system where none are named', () => {
    expect(sources({ mode: 'SIMPLE' })).toEqual(['/etc/ssl/certs/ca-certificates.crt']);
    expect(sources({ mode: 'SIMPLE' }, { hasAgent: true })).toContain('file-root:system');
    expect(context({ mode: 'SIMPLE', insecureSkipVerify: true }).commonTlsContext).not.toHaveProperty(
      'validationContext',
    );
  });

  it('are a Secret of the control plane only where it is for chosen workloads; else the system’s roots stand in', () => {
    const settings = { mode: 'MUTUAL', credentialName: 'web' } as const;
    expect(sources(settings, { takesCredentials: true })).toEqual(['kubernetes://web', 'kubernetes://web-cacert']);
    expect(sources(settings)).toEqual(['/etc/ssl/certs/ca-certificates.crt']);
  });
});

it('the server is checked by the name that the request asks for, where the rule names none', () => {
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
  // Accounts of a Service are no names of a server that knows nothing of the mesh.
  expect(auto({}, ['spiffe://a/ns/b/sa/c'], 'Kubernetes')).toEqual([true, true]);
  expect(auto({ subjectAltNames: ['a.b'] })).toEqual([true, false]);
});
