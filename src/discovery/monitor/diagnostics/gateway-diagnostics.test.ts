import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { DiscoveryMetrics } from '../metrics/metrics.ts';
import { diagnosticsOf } from './push-status.ts';

const verifiedIdentity = 'spiffe://cluster.local/ns/edge/sa/front';
const web = createAuthority().issue(['web.test']);

function gateway(name: string, servers: string): string {
  return `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: ${name}, namespace: edge }
spec: { selector: {}, servers: [${servers}] }
`;
}

function secret(name: string, stringData: object): string {
  return stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'edge' }, stringData });
}

const tls = (host: string, mode: string, extraTls: string): string =>
  `{ port: { number: 443, name: ${host}, protocol: HTTPS }, hosts: [${host}.test], tls: { mode: ${mode}${extraTls} } }`;

const plane = givenPlane(
  [
    gateway('web', '{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"] }'),
    gateway(
      'late',
      [
        '{ port: { number: 80, name: tcp, protocol: TCP }, hosts: ["*"] }',
        tls('good', 'SIMPLE', ', credentialName: web'),
        tls('missing', 'MUTUAL', ', credentialName: absent'),
        tls('bad', 'SIMPLE', ', credentialName: password'),
        tls('mesh', 'ISTIO_MUTUAL', ''),
      ].join(', '),
    ),
    `apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: { name: tls, namespace: edge }
spec: { targetRefs: [{ group: "", kind: Service, name: web }], validation: { hostname: a.test, wellKnownCACertificates: a.test/b } }
`,
    secret('web', { 'tls.crt': web.certificate, 'tls.key': web.privateKey }),
    secret('password', { password: 'x' }),
  ].join('---\n'),
);
for (const ip of ['10.9.0.1', '10.9.0.2']) {
  const id = `router~${ip}~front.edge~edge.svc.cluster.local`;
  plane.connect({ id, cluster: 'front', metadata: { NAMESPACE: 'edge' }, verifiedIdentity }, []);
}

describe('gateway diagnostics', () => {
  const status = diagnosticsOf(plane.state, plane.resources.nodes);
  const messagesOf = (metric: string): string[] =>
    Object.entries(status[metric] ?? {}).map(([key, { message }]) => `${key} | ${message}`);

  it('report servers that conflict with others or need a feature that the proxy lacks', () => {
    expect(messagesOf('pilot_gateway_servers_rejected')).toEqual([
      'Gateway/edge/late server tcp | port 80 is used by a http server of edge/web',
      expect.stringMatching(/^Gateway\/edge\/late server mesh \| ISTIO_MUTUAL requires workload certificates/),
    ]);
  });

  it('report gateways that are not connected, with the objects concerned', () => {
    const partly = givenPlane(
      gateway('g1', tls('x', 'SIMPLE', ', credentialName: web')) +
        `---\n${gateway('g2', tls('x', 'MUTUAL', ', credentialName: web').replace('[x.test]', '[x.test, y.test]'))}`,
    );
    expect(Object.values(diagnosticsOf(partly.state, []).pilot_gateway_servers_rejected!)).toEqual([
      { message: 'x.test is served by edge/g2 on port 443', objects: ['Gateway/edge/g1'] },
    ]);
    expect(Object.values(status.pilot_sds_certificate_errors_total!).at(-1)?.objects).toEqual(['Gateway/edge/late']);
  });

  it('report servers whose wildcard hosts include hosts of stricter servers', () => {
    const wildcardServer = tls('wide', 'SIMPLE', ', credentialName: web').replace('[wide.test]', '["*.test"]');
    const overlapping = givenPlane(
      [gateway('g1', wildcardServer), gateway('g2', tls('x', 'MUTUAL', ', credentialName: web'))].join('---\n'),
    );
    expect(diagnosticsOf(overlapping.state, []).pilot_gateway_servers_overlap).toEqual({
      'Gateway/edge/g1 server wide': {
        message: expect.stringMatching(/^requests for x\.test get 421 .* mode SIMPLE instead of MUTUAL of edge\/g2$/),
        objects: ['Gateway/edge/g1'],
      },
    });
  });

  it('report missing and invalid certificates', () => {
    expect(messagesOf('pilot_sds_certificate_errors_total')).toEqual([
      expect.stringMatching(/kubernetes:\/\/absent: there is no Secret edge\/absent$/),
      expect.stringMatching(/kubernetes:\/\/absent-cacert: there is no Secret edge\/absent$/),
      expect.stringMatching(/kubernetes:\/\/password: Secret edge\/password has no entries tls\.crt and tls\.key/),
    ]);
  });

  it('report BackendTLSPolicies that cannot be applied', () => {
    expect(messagesOf('pilot_backend_tls_policy_problems')).toEqual([
      expect.stringMatching(
        /^BackendTLSPolicy\/edge\/tls \| wellKnownCACertificates must be System, got "a\.test\/b": requests get 503$/,
      ),
    ]);
  });

  it('report how often a problem occurs', async () => {
    const metrics = new DiscoveryMetrics({
      version: '1',
      state: plane.state,
      cache: plane.cache,
      connectedVersions: () => [],
      nodes: () => plane.resources.nodes,
    });
    await metrics.text();
    const { body } = await metrics.text();
    expect(body).toContain('pilot_total_rejected_configs{type="gateway",name="edge/late"} 2');
    expect(body).toContain('pilot_sds_certificate_errors_total 3');
  });
});

describe('an unusable CRL', () => {
  it('is reported for its Secret, and for each Gateway that uses it to verify clients', () => {
    const credential = secret('listed', {
      'tls.crt': web.certificate,
      'tls.key': web.privateKey,
      'ca.crt': createAuthority('clients').certificate,
      'ca.crl': 'garbage',
    });
    const plane = givenPlane(
      [
        gateway('mutual', tls('one', 'MUTUAL', ', credentialName: listed')),
        gateway('simple', tls('two', 'SIMPLE', ', credentialName: listed')),
        gateway('other', tls('three', 'MUTUAL', ', credentialName: web')),
        credential,
      ].join('---\n'),
    );
    expect(diagnosticsOf(plane.state, []).pilot_revocation_list_problems).toEqual({
      'Secret/edge/listed': {
        message: expect.stringContaining('ca.crl: no PEM block "X509 CRL"'),
        objects: ['Gateway/edge/mutual'],
      },
    });
  });
});
