import { expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { proxyContext } from '../inputs/connection-context.ts';
import { customChecks, hasNoProvider } from './custom.ts';

const meshConfig = `
extensionProviders:
  - { name: grpc, envoyExtAuthzGrpc: { service: shop/authz.shop.test, port: 9000 } }
  - { name: elsewhere, envoyExtAuthzGrpc: { service: other/authz.shop.test, port: 9000 } }
  - { name: other-port, envoyExtAuthzGrpc: { service: authz.shop.test, port: 9001 } }
  - { name: in-cluster, envoyExtAuthzGrpc: { service: authz.sec.svc.cluster.local, port: 9000 } }
  - { name: prometheus, prometheus: {} }
`;

const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: authz, namespace: shop }
spec: { hosts: [authz.shop.test], resolution: STATIC, ports: [{ number: 9000, name: grpc, protocol: GRPC }], endpoints: [{ address: 10.0.0.1 }] }`;

const blind = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: default, namespace: shop }
spec: { egress: [{ hosts: ["~/*"] }] }`;

const policy = (provider: string): string => `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: ${provider}, namespace: shop }
spec: { action: CUSTOM, provider: { name: ${provider} }, rules: [{}] }`;

function checksOf(...yaml: string[]): { queried: string[]; refused: string[]; counted: number } {
  const { context: push, configs } = givenMesh(yaml.join('\n---\n'), { meshConfig });
  const { checks, rejectRules } = customChecks(proxyContext(givenShape({ namespace: 'shop' }, push), push), 'requests');
  return {
    queried: checks.map(({ cluster }) => cluster),
    refused: Object.keys(rejectRules?.policies ?? {}),
    counted: configs.AuthorizationPolicy.filter((policy) => hasNoProvider(policy, push)).length,
  };
}

it('a CUSTOM policy calls the service of its provider', () => {
  expect(checksOf(service, policy('grpc'))).toEqual({
    queried: ['outbound|9000||authz.shop.test'],
    refused: [],
    counted: 0,
  });
});

const inCluster = (namespace: string): string =>
  service
    .replace('namespace: shop', `namespace: ${namespace}`)
    .replace('authz.shop.test', 'authz.sec.svc.cluster.local');

it.each(['sec', 'istio-system', 'shop'])(
  'a CUSTOM policy uses the service of its provider in the namespace that the host name contains, the root namespace or the namespace of the client: %s',
  (namespace) => {
    const { queried } = checksOf(inCluster(namespace), policy('in-cluster'));
    expect(queried).toEqual(['outbound|9000||authz.sec.svc.cluster.local']);
  },
);

it("a CUSTOM policy rejects requests if the provider's service is defined only in another namespace", () => {
  const hidden = inCluster('sec').replace('hosts:', 'exportTo: ["."], hosts:');
  for (const mesh of [[inCluster('mallory')], [inCluster('mallory'), hidden]]) {
    const refusedNames = ['ns[shop]-policy[in-cluster]-rule[0]'];
    expect(checksOf(...mesh, policy('in-cluster'))).toEqual({ queried: [], refused: refusedNames, counted: 1 });
  }
});

it.each([
  ['has no such provider', [service, policy('unknown')], 'unknown'],
  ['has a provider of another type with the name', [service, policy('prometheus')], 'prometheus'],
  ['does not have the service', [policy('grpc')], 'grpc'],
  ['has the service in another namespace', [service, policy('elsewhere')], 'elsewhere'],
  ['has the service without that port', [service, policy('other-port')], 'other-port'],
] as const)('a CUSTOM policy rejects requests and is counted if the mesh %s', (_, yaml, name) => {
  expect(checksOf(...yaml)).toEqual({ queried: [], refused: [`ns[shop]-policy[${name}]-rule[0]`], counted: 1 });
});

it('a CUSTOM policy rejects requests if the proxy cannot see the service and has no cluster for it', () => {
  expect(checksOf(service, policy('grpc'), blind)).toMatchObject({
    queried: [],
    refused: [expect.stringContaining('grpc')],
  });
});
