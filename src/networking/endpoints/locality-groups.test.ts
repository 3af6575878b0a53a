import { describe, expect, it } from 'vitest';
import type { Endpoint } from '../../model/services/service.ts';
import type { LocalityOrdering } from '../traffic/traffic-policy.ts';
import { localityGroups, localityMatches } from './locality-groups.ts';

function endpoint(locality: string, overrides: Partial<Endpoint> = {}): Endpoint {
  return {
    address: '10.0.0.1',
    port: 80,
    servicePortName: 'http',
    labels: {},
    serviceAccount: '',
    network: '',
    locality,
    clusterId: '',
    weight: 0,
    tlsMode: 'disabled',
    namespace: 'default',
    workloadName: '',
    health: 'healthy',
    ...overrides,
  };
}

/** Returns `locality: weight@priority` for each group. */
function order(
  endpoints: readonly Endpoint[],
  setting: LocalityOrdering | undefined,
  options: { outlierDetection?: boolean; labels?: Record<string, string> } = {},
): string[] {
  return localityGroups(endpoints, {
    proxyLocality: 'eu/a/1',
    proxyLabels: options.labels ?? {},
    proxyNetwork: 'n',
    proxyNode: 'node-1',
    setting,
    outlierDetection: options.outlierDetection ?? true,
  }).map((group) => `${group.locality}: ${group.weight}@${group.priority}`);
}

const allRegions = ['us/a', 'eu/b', 'eu/a/2', 'eu/a/1', 'ap/a'].map((locality) => endpoint(locality));

describe('endpoints by locality', () => {
  it("groups are sorted, and their weight is the sum of their endpoints' weights, which default to 1", () => {
    const endpoints = [endpoint('us/a', { weight: 3 }), endpoint('eu/a'), endpoint('us/a')];
    expect(order(endpoints, undefined)).toEqual(['eu/a: 1@0', 'us/a: 4@0']);
  });

  it('weights are scaled down proportionally if Envoy cannot represent their sum', () => {
    const maxSum = 2 ** 31 - 1;
    const tall = [
      endpoint('a', { weight: maxSum }),
      endpoint('a', { weight: maxSum }),
      endpoint('b', { weight: maxSum }),
      endpoint('b'),
    ];
    const groups = localityGroups(tall, {
      ...{ proxyLocality: '', proxyLabels: {}, proxyNetwork: '', proxyNode: '', outlierDetection: false },
    });
    const [a, b] = groups.map(({ weight }) => weight);
    expect(a! / b!).toBeCloseTo(2, 5);
    expect(a! + b!).toBeLessThan(2 ** 32);
    for (const { endpoints, weight } of groups) {
      expect(endpoints.every((one) => Number.isInteger(one.weight) && one.weight > 0)).toBe(true);
      expect(endpoints.reduce((sum, one) => sum + one.weight, 0)).toBe(weight);
    }
    const few = [endpoint('a', { weight: 7 }), endpoint('a')];
    expect(order(few, undefined)).toEqual(['a: 8@0']);
  });

  it("priorities do not exceed Envoy's maximum", () => {
    const labels = Array.from({ length: 200 }, (_, i) => `l${i}`);
    const endpoints = labels.map((_, i) =>
      endpoint('', { labels: Object.fromEntries(labels.slice(0, i).map((label) => [label, 'x'])) }),
    );
    const proxyLabels = Object.fromEntries(labels.map((label) => [label, 'x']));
    const priorities = order(endpoints, { failoverPriority: labels }, { labels: proxyLabels }).map((text) =>
      Number(text.split('@')[1]),
    );
    expect([Math.min(...priorities), Math.max(...priorities)]).toEqual([0, 128]);
  });

  it('failover prefers nearby localities and has contiguous priorities', () => {
    expect(order(allRegions, {})).toEqual(['ap/a: 1@3', 'eu/a/1: 1@0', 'eu/a/2: 1@1', 'eu/b: 1@2', 'us/a: 1@3']);
    expect(order([endpoint('us/a'), endpoint('eu/b')], {})).toEqual(['eu/b: 1@0', 'us/a: 1@1']);
  });

  it('failover prefers the configured region', () => {
    const setting = { failover: [{ from: 'eu', to: 'us' }] };
    expect(order(allRegions, setting)).toContain('us/a: 1@3');
    expect(order(allRegions, setting)).toContain('ap/a: 1@4');
  });

  it('failover requires outlier detection, because Envoy would otherwise never leave the first priority', () => {
    expect(order(allRegions, {}, { outlierDetection: false }).every((text) => text.endsWith('@0'))).toBe(true);
  });

  it('distribution divides the weight of a wildcard among its localities, and omits localities without weight', () => {
    const setting = { distribute: [{ from: 'eu/a/*', to: { 'eu/a/1': 70, 'eu/*': 30 } }] };
    expect(order(allRegions, setting, { outlierDetection: false })).toEqual([
      'eu/a/1: 70@0',
      'eu/a/2: 15@0',
      'eu/b: 15@0',
    ]);
  });

  it('failoverPriority orders endpoints by the number of labels that match those of the proxy', () => {
    const setting = { failoverPriority: ['version', 'topology.kubernetes.io/region'] };
    const endpoints = [
      endpoint('us/a', { labels: { version: 'v1' } }),
      endpoint('eu/a', { labels: { version: 'v2' } }),
      endpoint('eu/b', { labels: { version: 'v1' } }),
    ];
    expect(order(endpoints, setting, { labels: { version: 'v1' } })).toEqual(['eu/b: 1@0', 'us/a: 1@1', 'eu/a: 1@2']);
  });

  it('failoverPriority can require a label value that the proxy does not have', () => {
    const setting = { failoverPriority: ['version=v2'] };
    const endpoints = [
      endpoint('eu/a', { labels: { version: 'v1' } }),
      endpoint('eu/a', { labels: { version: 'v2' } }),
    ];
    expect(order(endpoints, setting, { labels: { version: 'v1' } })).toEqual(['eu/a: 1@0', 'eu/a: 1@1']);
  });

  it('trafficDistribution prefers nearby endpoints, with or without outlier detection', () => {
    const nearEndpoint = (locality: string, overrides: Partial<Endpoint> = {}): Endpoint =>
      endpoint(locality, { network: 'n', ...overrides });
    const endpoints = [
      nearEndpoint('eu/a/1', { nodeName: 'node-1' }),
      nearEndpoint('eu/a/1', { nodeName: 'node-2' }),
      nearEndpoint('eu/a/2'),
      nearEndpoint('eu/b'),
      nearEndpoint('us/a'),
      endpoint('eu/a/1', { network: 'other' }),
    ];
    const noOutlierDetection = { outlierDetection: false };
    const zone = ['eu/a/1: 2@0', 'eu/a/2: 1@0', 'eu/b: 1@1', 'us/a: 1@2', 'eu/a/1: 1@3'];
    expect(order(endpoints, { distribution: 'PreferSameZone' }, noOutlierDetection)).toEqual(zone);
    const node = ['eu/a/1: 1@0', 'eu/a/1: 1@1', 'eu/a/2: 1@2', 'eu/b: 1@3', 'us/a: 1@4', 'eu/a/1: 1@5'];
    expect(order(endpoints, { distribution: 'PreferSameNode' }, noOutlierDetection)).toEqual(node);
  });
});

it.each([
  ['eu/a/1', 'eu/a/1', 'matches'],
  ['eu/a/1', 'eu/a', 'matches'],
  ['eu/a/1', 'eu/*', 'matches'],
  ['eu/a', 'eu/a/*', 'matches'],
  ['eu', 'eu/a', 'does not match'],
  ['us/a', 'eu/*', 'does not match'],
  ['us/a', '*', 'matches'],
])('locality $0 $2 rule $1', (locality, rule, verb) => {
  expect(localityMatches(locality, rule)).toBe(verb === 'matches');
});
