import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { givenMeshConfig } from './given-mesh.ts';
import { readMeshConfig } from './mesh-config.decode.ts';
import { defaultMeshConfig } from './mesh-config.ts';
import { readMeshNetworks } from './mesh-networks.ts';
import { problemText } from './problem.ts';

function errorsOf(yaml: string): string[] {
  const read = readMeshConfig('mesh.yaml', yaml);
  return E.isLeft(read) ? read.left.map(problemText) : [];
}

describe('the mesh configuration', () => {
  it('has its defaults when the file says nothing', () => {
    expect(givenMeshConfig('')).toEqual(defaultMeshConfig);
    expect(givenMeshConfig('# only a comment\n')).toEqual(defaultMeshConfig);
    expect(defaultMeshConfig).toMatchObject({
      proxyListenPort: 15001,
      connectTimeoutMs: 10_000,
      trustDomain: 'cluster.local',
      outboundTrafficPolicy: { mode: 'ALLOW_ANY' },
      rootNamespace: 'istio-system',
      dnsRefreshRateMs: 60_000,
    });
  });

  it('is replaced field by field, and merged where that is the rule', () => {
    const base = givenMeshConfig(`
trustDomainAliases: [b, c]
defaultProviders: {metrics: [prometheus]}
extensionProviders: [{name: mine, zipkin: {port: 1}}]
defaultConfig: {proxyMetadata: {A: "1", B: "1"}, discoveryAddress: "a:15010"}
`);
    const read = readMeshConfig(
      'mesh.yaml',
      `
connectTimeout: 1s
trustDomainAliases: [a, b]
defaultProviders: {tracing: [mine]}
extensionProviders: [{name: mine, zipkin: {port: 2}}, {name: other, prometheus: {}}]
defaultConfig: {proxyMetadata: {B: "2"}}
localityLbSetting: {failoverPriority: [x]}
`,
      base,
    );
    expect(read).toMatchObject(
      E.right({
        warnings: [],
        mesh: {
          connectTimeoutMs: 1000,
          trustDomainAliases: ['a', 'b', 'c'],
          defaultProviders: { metrics: ['prometheus'], tracing: ['mine'] },
          defaultConfig: { proxyMetadata: { A: '1', B: '2' }, discoveryAddress: 'a:15010' },
          localityLbSetting: { enabled: true, failoverPriority: ['x'] },
        },
      }),
    );
    const providers = E.isRight(read) ? read.right.mesh.extensionProviders : [];
    expect(providers.map(({ name }) => name)).toEqual(['prometheus', 'stackdriver', 'envoy', 'mine', 'other']);
    expect(providers[3]).toEqual({ name: 'mine', zipkin: { port: 2 } });
  });

  it('warns of fields that it does not know, or no longer, and takes the rest', () => {
    const read = readMeshConfig('mesh.yaml', 'connectTimout: 1s\nmixerCheckServer: x\nrootNamespace: root\n');
    expect(E.isRight(read) && read.right.mesh.rootNamespace).toBe('root');
    expect(E.isRight(read) && read.right.warnings.map(problemText)).toEqual([
      'mesh.yaml:1:1: warning: connectTimout: is not a known field; did you mean connectTimeout? (it has no effect)',
      'mesh.yaml:2:1: warning: mixerCheckServer: is of an old Istio and has no effect',
    ]);
  });

  it('says every mistake with its line', () => {
    const yaml = `
proxyListenPort: 70000
connectTimeout: 2h
trustDomain: "bad domain"
extensionProviders: [{name: a}, {name: a}, {}]
outboundTrafficPolicy: {mode: REGISTRY}
defaultConfig: {proxyAdminPort: x}
`;
    expect(errorsOf(yaml)).toEqual([
      'mesh.yaml:2:1: error: proxyListenPort: must be from 1 to 65535, not 70000',
      'mesh.yaml:3:1: error: connectTimeout: must be whole milliseconds from 1ms to 1h',
      'mesh.yaml:4:1: error: trustDomain: must be a domain name, not "bad domain"',
      'mesh.yaml:6:25: error: outboundTrafficPolicy.mode: must be one of REGISTRY_ONLY, ALLOW_ANY, not the text "REGISTRY"',
      'mesh.yaml:5:44: error: extensionProviders[2].name: must not be empty',
      expect.stringContaining('mesh.yaml:7:17: error: defaultConfig.proxyAdminPort'),
    ]);
  });

  it('says where YAML is broken', () => {
    expect(errorsOf('a: [1\nb: 2')[0]).toMatch(/^mesh\.yaml:\d+:\d+: error: YAML: /);
  });
});

describe('mesh networks', () => {
  it('are none when the file is empty', () => {
    expect(readMeshNetworks('n.yaml', '')).toEqual(E.right({ networks: {} }));
  });

  it('have endpoints and gateways', () => {
    const yaml = `
networks:
  west:
    endpoints: [{fromCidr: 10.1.0.0/16}, {fromRegistry: west}]
    gateways: [{address: 1.2.3.4, port: 15443, locality: eu/a}]
`;
    expect(readMeshNetworks('n.yaml', yaml)).toMatchObject(
      E.right({ networks: { west: { gateways: [{ address: '1.2.3.4', port: 15443, locality: 'eu/a' }] } } }),
    );
  });

  it('must say how endpoints are known and gateways are reached', () => {
    const yaml = 'networks: {west: {endpoints: [{fromCidr: x}, {}], gateways: [{port: 0}]}}';
    const read = readMeshNetworks('n.yaml', yaml);
    expect(E.isLeft(read) && read.left.map(({ field }) => field)).toEqual([
      'networks.west.endpoints[0].fromCidr',
      'networks.west.endpoints[1]',
      'networks.west.gateways[0].port',
    ]);
  });
});
