import { describe, expect, it } from 'vitest';
import { givenMeshConfig } from '../../../../test/fixtures/given-mesh.ts';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { validateFiles } from '../../config/validation/validate-files.ts';
import { diagnosticsOf } from '../../monitor/diagnostics/push-status.ts';

/** The first provider has no port, so it is invalid and ignored. */
const meshConfig = `extensionProviders:
- {name: broken, zipkin: {service: a.test}}
- {name: good, zipkin: {service: a.test, port: 9411}}`;

const telemetry = (provider: string): string => `apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: t, namespace: shop}
spec: {tracing: [{providers: [{name: ${provider}}]}]}
`;

async function validated(provider: string): Promise<string[]> {
  const mesh = givenMeshConfig(meshConfig);
  const settings = { mesh, hasMeshConfig: true, scopesGateways: false, domain: 'cluster.local' };
  const texts = [{ file: 'a.yaml', text: telemetry(provider) }];
  const { problems } = await validateFiles([], texts, undefined, settings);
  return problems.map(({ code, field }) => `${code} ${field}`);
}

it('validate reports a reference to a missing provider, but not to an invalid one', async () => {
  expect(await validated('absent')).toEqual(['PROVIDER_NOT_FOUND spec.tracing[0].providers[0].name']);
  expect(await validated('broken')).toEqual([]);
  expect(await validated('good')).toEqual([]);
});

it('a control plane reports an invalid provider as invalid, not as missing', () => {
  const messages = (provider: string): string[] => {
    const plane = givenPlane(telemetry(provider), { meshConfig });
    const { pilot_config_warnings: warnings = {} } = diagnosticsOf(plane.state, []);
    const objectWarnings = Object.values(warnings).filter(({ objects }) => objects?.[0] !== 'MeshConfig//mesh');
    return objectWarnings.map(({ code, message }) => `${code} ${message}`);
  };
  expect(messages('broken')).toEqual([
    expect.stringMatching(/^PROVIDER_NOT_FOUND .*provider broken of the mesh configuration is invalid and ignored/),
  ]);
  expect(messages('absent')).toEqual([expect.stringMatching(/^PROVIDER_NOT_FOUND .*has no extension provider absent/)]);
  expect(messages('good')).toEqual([expect.stringMatching(/^PROVIDER_UNREACHABLE .*no service has the host a\.test/)]);
});

const services = `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: other}
spec: {hosts: [a.test], resolution: DNS, location: MESH_EXTERNAL, exportTo: ["."], ports: [{number: 9411, name: http, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: b, namespace: shop}
spec: {clusterIP: 10.99.0.1, ports: [{port: 80, name: http}, {port: 9000, name: udp, protocol: UDP}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: b, namespace: other}
spec: {hosts: [b.bank.svc.cluster.local], resolution: DNS, location: MESH_EXTERNAL, ports: [{number: 80, name: http, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {name: c, namespace: bank}
spec: {clusterIP: 10.99.0.2, ports: [{port: 80, name: http}]}
`;

describe('validate of the mesh configuration', () => {
  const provider = (service: string, port: number): string =>
    `extensionProviders:\n- {name: p, envoyExtAuthzHttp: {service: ${service}, port: ${port}}}\n`;

  async function reports(meshConfig: string, objects = services): Promise<string[]> {
    const mesh = givenMeshConfig(meshConfig);
    const meshFile = { file: 'mesh', text: meshConfig };
    const settings = { mesh, hasMeshConfig: true, meshFile, scopesGateways: false, domain: 'cluster.local' };
    const { problems } = await validateFiles([], [{ file: 'a.yaml', text: objects }], undefined, settings);
    const meshProblems = problems.filter(({ file }) => file === 'mesh');
    const plane = givenPlane(objects, { meshConfig });
    const { pilot_config_warnings: warnings = {} } = diagnosticsOf(plane.state, []);
    const meshWarnings = Object.values(warnings).filter(({ objects: [key] = [] }) => key === 'MeshConfig//mesh');
    expect(meshWarnings.map(({ code, message }) => [code, message])).toEqual(
      meshProblems.map(({ code, message }) => [code, expect.stringContaining(message)]),
    );
    return meshProblems.map(({ code, line, field }) => `${line} ${code} ${field}`);
  }

  it.each([
    [
      'a default provider that does not exist',
      'defaultProviders: {tracing: [p], metrics: [prometheus, absent]}',
      '1 PROVIDER_NOT_FOUND defaultProviders.metrics[1]',
    ],
    [
      'a provider whose Service does not exist',
      provider('a.shop.svc.cluster.local', 80),
      '2 PROVIDER_UNREACHABLE extensionProviders[0].envoyExtAuthzHttp.service',
    ],
    [
      'a provider whose host has no ServiceEntry',
      provider('x.test', 80),
      '2 PROVIDER_UNREACHABLE extensionProviders[0].envoyExtAuthzHttp.service',
    ],
    [
      'a provider with a port that the Service does not have',
      provider('b.shop.svc.cluster.local', 81),
      '2 PROVIDER_UNREACHABLE extensionProviders[0].envoyExtAuthzHttp.port',
    ],
    [
      'a provider with a UDP port',
      provider('b.shop.svc.cluster.local', 9000),
      '2 PROVIDER_UNREACHABLE extensionProviders[0].envoyExtAuthzHttp.port',
    ],
    [
      'a provider whose host is in another namespace',
      provider('shop/a.test', 9411),
      '2 PROVIDER_UNREACHABLE extensionProviders[0].envoyExtAuthzHttp.service',
    ],
  ])('reports %s', async (_, meshConfig, expected) => {
    const all = await reports(meshConfig);
    expect(all).toContain(expected);
    expect(await reports(provider('b.shop.svc.cluster.local', 80))).toEqual([]);
  });

  it("reports a policy whose clients cannot see the provider's service, with the location of the provider", async () => {
    const policy = (namespace: string): string => `${services}---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: c, namespace: ${namespace}}
spec: {action: CUSTOM, provider: {name: p}, rules: [{}]}
`;
    const mesh = givenMeshConfig(provider('a.test', 9411));
    const meshFile = { file: 'mesh', text: provider('a.test', 9411) };
    const settings = { mesh, hasMeshConfig: true, meshFile, scopesGateways: false, domain: 'cluster.local' };
    const problemsOf = async (namespace: string) => {
      const texts = [{ file: 'a.yaml', text: policy(namespace) }];
      const { problems } = await validateFiles([], texts, undefined, settings);
      return problems.filter(({ code }) => code === 'PROVIDER_UNREACHABLE');
    };
    expect(await problemsOf('other')).toEqual([]);
    expect(await problemsOf('shop')).toMatchObject([
      {
        ...{ file: 'a.yaml', field: 'spec.provider.name' },
        other: { file: 'mesh', line: 2, field: 'extensionProviders[0].envoyExtAuthzHttp.service' },
      },
    ]);
  });
});
