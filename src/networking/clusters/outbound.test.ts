import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import {
  type Cluster,
  Cluster_DnsLookupFamily as Family,
  Cluster_LbPolicy as Policy,
  Cluster_DiscoveryType as Type,
} from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts';
import { buildClusters } from './build.ts';
import { withDnsJitter } from './dns-lookup.ts';

function clusters(yaml: string, node: GivenNode = {}): Map<string, Cluster> {
  const { context } = givenMesh(yaml);
  return new Map(buildClusters(givenShape(node), context).map(({ name, message }) => [name, message as Cluster]));
}

function service(resolution: string, extraSpec = ''): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: a }
spec:
  hosts: [a.test]
  location: MESH_EXTERNAL
  resolution: ${resolution}
  ports: [{ number: 80, name: http, protocol: HTTP }]
  ${extraSpec}
---`;
}

function rule(policy: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: a }
spec:
  host: a.test
  trafficPolicy: ${policy}
---`;
}

const name = 'outbound|80||a.test';

function clusterFrom(yaml: string, node: GivenNode = {}): Cluster {
  return clusters(yaml, node).get(name)!;
}

function workload(name: string, address: string, healthy: boolean): string {
  return `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: ${name}, annotations: { proxy.istio.io/health-checks-enabled: "true" } }
spec: { address: ${address}, labels: { app: a } }
status: { conditions: [{ type: Healthy, status: "${healthy ? 'True' : 'False'}" }] }
---`;
}

describe('endpoint discovery of a cluster', () => {
  it('a cluster with one DNS name uses the name of the first healthy endpoint', () => {
    const entry = service('DNS_ROUND_ROBIN', 'workloadSelector: { labels: { app: a } }');
    const addresses = (...workloads: string[]): unknown =>
      clusterFrom(entry + workloads.join(''))
        .loadAssignment!.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints)
        .map(({ hostIdentifier }) =>
          hostIdentifier.case === 'endpoint' && hostIdentifier.value.address?.address.case === 'socketAddress'
            ? hostIdentifier.value.address.address.value.address
            : undefined,
        );
    const [ill, well] = [workload('a', '10.0.0.1', false), workload('b', '10.0.0.2', true)];
    expect(addresses(ill, well)).toEqual(['10.0.0.2']);
    expect(addresses(ill)).toEqual(['10.0.0.1']);
  });

  const router: GivenNode = { type: 'router' };
  const one = 'endpoints: [{ address: 10.0.0.1 }]';

  it.each([
    ['STATIC', one, {}, Type.EDS],
    ['DNS', '', {}, Type.STRICT_DNS],
    ['DNS_ROUND_ROBIN', '', {}, Type.LOGICAL_DNS],
    ['NONE', '', {}, Type.ORIGINAL_DST],
    // A gateway has no original destination.
    ['NONE', '', router, Type.EDS],
  ])('a service with resolution %s (%s) has the matching discovery type', (resolution, endpoints, node, type) => {
    const cluster = clusterFrom(service(resolution, endpoints), node);
    expect(cluster.clusterDiscoveryType).toEqual({ case: 'type', value: type });
    expect(cluster.edsClusterConfig?.serviceName).toBe(type === Type.EDS ? name : undefined);
    expect(cluster.lbPolicy === Policy.CLUSTER_PROVIDED).toBe(type === Type.ORIGINAL_DST);
    expect(cluster.loadAssignment !== undefined).toBe(type === Type.STRICT_DNS || type === Type.LOGICAL_DNS);
  });

  it.each([
    [['10.0.0.1'], Family.V4_ONLY],
    [['2001:db8::1'], Family.V6_ONLY],
    [['10.0.0.1', '2001:db8::1'], Family.ALL],
  ])('a proxy at %j sends DNS queries for its address families', (addresses, family) => {
    const cluster = clusterFrom(service('DNS'), { ip: addresses[0]!, metadata: { INSTANCE_IPS: addresses.join(',') } });
    expect(cluster.dnsLookupFamily).toBe(family);
  });

  it("the cluster uses the original destination if the rule's load balancing is PASSTHROUGH", () => {
    const cluster = clusterFrom(service('STATIC', one) + rule('{ loadBalancer: { simple: PASSTHROUGH } }'));
    expect(cluster.clusterDiscoveryType.value).toBe(Type.ORIGINAL_DST);
    expect(cluster.edsClusterConfig).toBeUndefined();
  });

  it.each(['DNS', 'DNS_ROUND_ROBIN'])(
    'the cluster uses the original destination with PASSTHROUGH, even if the resolution is %s',
    (resolution) => {
      const yaml = service(resolution) + rule('{ loadBalancer: { simple: PASSTHROUGH } }');
      const cluster = clusterFrom(yaml);
      expect(cluster.clusterDiscoveryType.value).toBe(Type.ORIGINAL_DST);
      expect(cluster.lbPolicy).toBe(Policy.CLUSTER_PROVIDED);
      expect(cluster.loadAssignment).toBeUndefined();
      // Neither a gateway nor a proxy without interception knows the original destination.
      for (const node of [{ type: 'router' as const }, { metadata: { INTERCEPTION_MODE: 'NONE' } }]) {
        expect(clusterFrom(yaml, node).loadAssignment).toBeDefined();
      }
    },
  );

  it('a DNS subset has no cluster if it has no endpoints', () => {
    const subsets = `${rule('{}').replace('trafficPolicy: {}', 'subsets: [{ name: v1, labels: { version: v1 } }]')}`;
    const all = clusters(service('DNS') + subsets);
    expect(all.has(name)).toBe(true);
    expect(all.has('outbound|80|v1|a.test')).toBe(false);
  });
});

describe('outbound cluster', () => {
  it('a cluster has only the limits of the DestinationRule', () => {
    const [defaultThresholds] = clusterFrom(service('NONE')).circuitBreakers!.thresholds;
    expect(defaultThresholds).toMatchObject({ maxConnections: 4294967295, maxRetries: 4294967295 });
    const limitedCluster = clusterFrom(service('NONE') + rule('{ connectionPool: { tcp: { maxConnections: 7 } } }'));
    expect(limitedCluster.circuitBreakers!.thresholds[0]).toMatchObject({ maxConnections: 7, maxRequests: 4294967295 });
  });

  it.each([
    ['{ tcp: { idleTimeout: 7s, maxConnectionDuration: 90s } }', { idleTimeout: 7n, maxConnectionDuration: 90n }],
    ['{ tcp: { idleTimeout: 7s }, http: { idleTimeout: 5s } }', { idleTimeout: 5n }],
    ['{ tcp: { maxConnections: 7 } }', {}],
  ])("a cluster applies the rule's connection limits to HTTP connections: %s", (pool, expected) => {
    const { typedExtensionProtocolOptions: options } = clusterFrom(
      service('NONE') + rule(`{ connectionPool: ${pool} }`),
    );
    const [packedOptions] = Object.values(options);
    const { commonHttpProtocolOptions: commonOptions } = packedOptions
      ? fromBinary(HttpProtocolOptionsSchema, packedOptions.value)
      : { commonHttpProtocolOptions: undefined };
    const { idleTimeout, maxConnectionDuration } = commonOptions ?? {};
    const timeouts = { idleTimeout: idleTimeout?.seconds, maxConnectionDuration: maxConnectionDuration?.seconds };
    expect(timeouts).toEqual(expected);
  });

  it('a cluster routes Redis commands by key if Envoy parses them', () => {
    const redis = service('STATIC', 'endpoints: [{ address: 10.0.0.1 }]').replace('protocol: HTTP', 'protocol: REDIS');
    const yaml = redis + rule('{ loadBalancer: { simple: RANDOM } }');
    const policy = (redisFilter: boolean): unknown => {
      const { context } = givenMesh(yaml, { features: { redisFilter } });
      const clusterResource = buildClusters(givenShape({}, context), context).find((one) => one.name === name);
      return (clusterResource!.message as Cluster).lbPolicy;
    };
    expect(policy(true)).toBe(Policy.MAGLEV);
    expect(policy(false)).toBe(Policy.RANDOM);
  });

  it('a cluster with outlier detection has a panic threshold of 0 by default', () => {
    expect(clusterFrom(service('NONE')).commonLbConfig?.healthyPanicThreshold).toBeUndefined();
    const cluster = clusterFrom(service('NONE') + rule('{ outlierDetection: { interval: 1s } }'));
    expect(cluster.commonLbConfig?.healthyPanicThreshold?.value).toBe(0);
  });

  it('a cluster with unhealthy endpoints never panics, and a configured panic threshold excludes those endpoints', () => {
    const panicOf = (resolution: string, policy = '{}'): number | undefined => {
      const cluster = clusterFrom(
        service(resolution, 'endpoints: [{ address: 10.0.0.1 }]') + (policy === '{}' ? '' : rule(policy)),
      );
      return cluster.commonLbConfig?.healthyPanicThreshold?.value;
    };
    expect([panicOf('STATIC'), panicOf('DNS')]).toEqual([0, 0]);
    expect(panicOf('STATIC', '{ outlierDetection: { minHealthPercent: 40 } }')).toBe(40);
  });

  it('a cluster that resolves names randomizes the query times and changes the source port', () => {
    const cluster = clusterFrom(service('DNS'));
    expect(cluster.$unknown).toBeUndefined();
    const field = withDnsJitter(cluster, 100).$unknown;
    expect(field?.map(({ no, data }) => [no, [...data]])).toEqual([[58, [5, 16, 128, 194, 215, 47]]]);
    expect(cluster.typedDnsResolverConfig?.name).toBe('envoy.network.dns_resolver.cares');
    expect(clusterFrom(service('STATIC', 'endpoints: [{ address: 10.0.0.1 }]')).$unknown).toBeUndefined();
  });

  it('a cluster records its origins', () => {
    const { metadata } = clusterFrom(service('NONE') + rule('{ loadBalancer: { simple: RANDOM } }'));
    expect(metadata?.filterMetadata.istio).toMatchObject({
      config: '/apis/networking.istio.io/v1/namespaces/default/destination-rule/a',
      external: true,
    });
  });

  it('a cluster has no auto mTLS if the proxy has no workload certificates or the service is outside the mesh', () => {
    const internalService = service('STATIC', 'endpoints: [{ address: 10.0.0.1 }]').replace('EXTERNAL', 'INTERNAL');
    const certified = { metadata: { WORKLOAD_CERTIFICATES: 'true' } };
    expect(clusterFrom(internalService).transportSocketMatches).toEqual([]);
    expect(clusterFrom(internalService, certified).transportSocketMatches).toHaveLength(2);
    expect(clusterFrom(internalService + rule('{ tls: { mode: DISABLE } }'), certified).transportSocketMatches).toEqual(
      [],
    );
    expect(clusterFrom(service('NONE'), certified).transportSocketMatches).toEqual([]);
  });
});

it('a proxy has a black hole cluster, and a sidecar also has passthrough clusters', () => {
  expect([...clusters('').keys()]).toEqual(['BlackHoleCluster', 'PassthroughCluster', 'InboundPassthroughCluster']);
  expect([...clusters('', { type: 'router' }).keys()]).toEqual(['BlackHoleCluster']);
});

it('a ServiceEntry without resolution forwards connections to its target port or else the original port', () => {
  const entry = (extraSpec: string) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: a }
spec:
  hosts: [a.test]
  addresses: [10.1.1.1]
  resolution: NONE
  ports: [{ number: 80, name: tcp, protocol: TCP${extraSpec} }]
`;
  const configOf = (yaml: string) => clusters(yaml).get('outbound|80||a.test')?.lbConfig;
  expect(configOf(entry(', targetPort: 8080'))).toMatchObject({
    case: 'originalDstLbConfig',
    value: { upstreamPortOverride: 8080 },
  });
  expect(configOf(entry(''))).toEqual({ case: undefined });
});
