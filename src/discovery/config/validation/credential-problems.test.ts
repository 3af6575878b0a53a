import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { problemText } from '../../../model/config/problem.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { defaultConfigLimits } from '../files/config-limits.ts';
import { validateFiles } from './validate-files.ts';

const authority = createAuthority();
const { certificate, privateKey } = authority.issue(['web.test']);

const secret = (name: string, extraFields: object = {}): string =>
  stringify({
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'shop' } },
    stringData: { 'tls.crt': certificate, 'tls.key': privateKey, ...extraFields },
  });

const gateway = (mode: string, credentialName: string): string =>
  stringify({
    ...{ apiVersion: 'networking.istio.io/v1', kind: 'Gateway', metadata: { name: 'front', namespace: 'shop' } },
    spec: {
      servers: [{ port: { number: 443, name: 'a', protocol: 'HTTPS' }, hosts: ['*'], tls: { mode, credentialName } }],
    },
  });

const warnings = (...documents: string[]): Promise<string[]> => warningsIn('cluster.local', ...documents);

async function warningsIn(domain: string, ...documents: string[]): Promise<string[]> {
  const settings = { mesh: defaultMeshConfig, scopesGateways: false, domain };
  const { problems } = await validateFiles(
    [],
    [{ file: 'a.yaml', text: documents.join('---\n') }],
    defaultConfigLimits,
    settings,
  );
  return problems.filter(({ code }) => code === 'CREDENTIAL_INVALID' || code === 'FIELD_DOUBTFUL').map(problemText);
}

it('validate reports a Secret without a CA certificate at the referring field if clients are verified', async () => {
  expect(await warnings(gateway('MUTUAL', 'web'), secret('web'))).toEqual([
    'a.yaml:16:9: warning: Gateway shop/front: spec.servers[0].tls.credentialName: Secret shop/web has no entry ca.crt (or cacert), so TLS connections to the server fail [CREDENTIAL_INVALID]',
  ]);
});

it('validate does not report credentials that exist, are unused, or can be defined elsewhere', async () => {
  expect(await warnings(gateway('MUTUAL', 'web'), secret('web', { 'ca.crt': authority.certificate }))).toEqual([]);
  expect(
    await warnings(gateway('MUTUAL', 'web'), secret('web'), secret('web-cacert', { cacert: authority.certificate })),
  ).toEqual([]);
  expect(await warnings(gateway('SIMPLE', 'web'), secret('web'))).toEqual([]);
  expect(await warnings(gateway('MUTUAL', 'absent'))).toEqual([]);
});

const egressRule = (extraSpec = '') =>
  `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: out, namespace: shop }
spec: { host: out.test, ${extraSpec}trafficPolicy: { portLevelSettings: [{ port: { number: 443 }, tls: { mode: SIMPLE, credentialName: web } }] } }
`;
const route = (gateways: string, host: string) =>
  `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: out, namespace: shop }
spec: { hosts: [out.test], gateways: [${gateways}], http: [{ route: [{ destination: { host: ${host} } }] }] }
`;

it('validate warns about a credentialName for gateways if no gateway routes to the host', async () => {
  const warned = [
    'a.yaml:4:108: warning: DestinationRule shop/out: spec.trafficPolicy.portLevelSettings[0].tls.credentialName: applies to gateways only; sidecars need a rule with a workloadSelector [FIELD_DOUBTFUL]',
  ];
  expect(await warnings(egressRule())).toEqual(warned);
  expect(await warnings(egressRule(), route('mesh', 'out.test'))).toEqual(warned);
  expect(await warnings(egressRule(), route('egress', 'other.test'))).toEqual(warned);
});

it('validate accepts a credentialName for selected workloads, and for a host to which an egress gateway routes', async () => {
  expect(await warnings(egressRule(), route('mesh, egress', 'out.test'))).toEqual([]);
  expect(await warnings(egressRule('workloadSelector: { matchLabels: { app: a } }, '))).toEqual([]);
});

const ruleOf = (host: string): string => egressRule().replace('host: out.test', `host: ${host}`);

it('validate matches a short host and a full host of the same service in the domain of the cluster', async () => {
  const [short, full, foreign] = ['web', 'web.shop.svc.mesh.internal', 'web.shop.svc.cluster.local'];
  for (const [ruleHost, routeHost] of [
    [short, full],
    [full, short],
    ['"*.mesh.internal"', short],
  ] as const)
    expect(await warningsIn('mesh.internal', ruleOf(ruleHost), route('egress', routeHost))).toEqual([]);
  expect(await warningsIn('mesh.internal', ruleOf(short), route('egress', foreign))).toHaveLength(1);
  expect(await warningsIn('mesh.internal', ruleOf(foreign), route('egress', short))).toHaveLength(1);
});

const delegating = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: root, namespace: shop }
spec: { hosts: [web.test], gateways: [egress], http: [{ delegate: { name: part, namespace: parts } }] }
`;
const delegate = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: part, namespace: parts }
spec: { http: [{ route: [{ destination: { host: out.test } }] }] }
`;
const mirroring = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: out, namespace: shop }
spec: { hosts: [a.test], gateways: [egress], http: [{ route: [{ destination: { host: a.test } }], mirrors: [{ destination: { host: out.test } }] }] }
`;
const gatewayApi = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: egress, namespace: shop }
spec: { gatewayClassName: istio, listeners: [{ name: http, port: 80, protocol: HTTP }] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { ports: [{ port: 443 }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: out, namespace: shop }
spec: { parentRefs: [{ name: egress }], rules: [{ backendRefs: [{ name: web, port: 443 }] }] }
`;

it('validate accepts a credentialName for a host to which a gateway routes by a delegate, a mirror or an HTTPRoute', async () => {
  expect(await warnings(egressRule(), delegating, delegate)).toEqual([]);
  expect(await warnings(egressRule(), delegate)).toHaveLength(1);
  expect(await warnings(egressRule(), mirroring)).toEqual([]);
  expect(await warnings(ruleOf('web'), gatewayApi)).toEqual([]);
  const withoutParent = gatewayApi.replace('parentRefs: [{ name: egress }]', 'parentRefs: [{ name: other }]');
  expect(await warnings(ruleOf('web'), withoutParent)).toHaveLength(1);
});
