import { describe, expect, it } from 'vitest';
import { givenProxy } from '../../../test/fixtures/given-mesh.ts';
import { cpuMs } from '../../../test/harness/cpu-time.ts';
import type { Config } from '../config/config.ts';
import { configSetOf } from '../config/config-set.ts';
import { defaultMeshConfig } from '../mesh/mesh-config.ts';
import { buildServiceRegistry } from '../services/service-registry.ts';
import { buildPushContext } from './build-push-context.ts';

const namespaces = 50;

function config(kind: string, index: number, spec: unknown): Config {
  return {
    kind,
    apiVersion: 'networking.istio.io/v1',
    name: `${kind.toLowerCase()}-${index}`,
    namespace: `ns-${index % namespaces}`,
    labels: {},
    annotations: {},
    resourceVersion: '1',
    creationTimestamp: index,
    spec,
  };
}

function meshOf(size: number): Config[] {
  return Array.from({ length: size }, (_, index) => {
    const host = `svc-${index}.example.com`;
    return [
      config('ServiceEntry', index, {
        hosts: [host],
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        location: 'MESH_INTERNAL',
        resolution: 'STATIC',
        workloadSelector: { labels: { app: `app-${index}` } },
      }),
      config('WorkloadEntry', index, { address: `10.0.${index >> 8}.${index & 255}`, labels: { app: `app-${index}` } }),
      config('VirtualService', index, { hosts: [host], http: [{ route: [{ destination: { host } }] }] }),
      config('DestinationRule', index, { host, subsets: [{ name: 'v1' }] }),
    ];
  }).flat();
}

/** Measures the CPU milliseconds to build a context and query everything that a proxy of each namespace needs. */
function timeOf(size: number): number {
  const configs = configSetOf(meshOf(size));
  return cpuMs(() => {
    const registry = buildServiceRegistry(configs);
    const context = buildPushContext({
      version: '1',
      mesh: defaultMeshConfig,
      domain: 'cluster.local',
      configs,
      ...registry,
    });
    for (let index = 0; index < 5; index++) {
      const proxy = givenProxy({ namespace: `ns-${index}`, ip: `10.0.0.${index}` });
      const scope = context.sidecarScopeFor(proxy);
      expect(scope.services).toHaveLength(size);
      expect(context.serviceTargetsOf(proxy)).toHaveLength(1);
      for (const service of scope.services)
        expect(context.destinationRuleFor(proxy.configNamespace, service)).toBeDefined();
    }
  });
}

describe('building the push context of a large mesh', () => {
  it('takes about ten times as long for 5,000 services as for 500', () => {
    timeOf(500);
    const smallMs = Math.min(timeOf(500), timeOf(500), timeOf(500));
    const largeMs = Math.min(timeOf(5000), timeOf(5000));
    expect(largeMs / smallMs).toBeLessThan(40);
  });
});
