/** The cost of a scrape is independent of the mesh size. Operations are counted, not timed. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { GivenWorld, givenObject } from '../../../../test/fixtures/given-world.ts';
import { countedWork, countWork, growthOfWork, sumOf } from '../../../../test/harness/counted-work.ts';
import type { Config } from '../../../model/config/config.ts';
import { listenerType } from '../../../networking/index.ts';
import { diagnosticSteps, diagnosticsOf } from '../diagnostics/push-status.ts';
import { DiscoveryMetrics } from './metrics.ts';

const [smallCount, largeCount] = [50, 400];

const times = <T>(size: number, build: (index: number) => T): T[] => Array.from({ length: size }, (_, i) => build(i));

/** Creates a mesh of servers whose credentials and hosts are checked by diagnostics. */
function meshOf(size: number): Config[] {
  const host = (index: number): string => `s${index}.edge.svc.cluster.local`;
  const servers = times(size, (i) => ({
    port: { number: 443, name: `https-${i}`, protocol: 'HTTPS' },
    hosts: [`h${i}.example.com`],
    tls: { mode: 'SIMPLE', credentialName: `cert-${i}` },
  }));
  const routes = (name: string, index: number, hosts: readonly string[]): Config => {
    const http = [{ route: [{ destination: { host: host(index) } }] }];
    return givenObject('VirtualService', 'edge', name, { hosts, gateways: ['mesh'], http });
  };
  return [
    givenObject('Gateway', 'edge', 'g', { selector: {}, servers }),
    ...times(size, (i) =>
      givenObject('ServiceEntry', 'edge', `s${i}`, {
        hosts: [host(i)],
        ports: [{ number: 8080, name: 'tcp', protocol: 'TCP' }],
        location: 'MESH_INTERNAL',
        resolution: 'STATIC',
        endpoints: i % 2 === 0 ? [] : [{ address: `10.1.${i >> 8}.${i & 255}` }],
      }),
    ),
    ...times(size, (i) => routes(`one-${i}`, i, [host(i), 'all.example.com'])),
    ...times(size, (i) => routes(`two-${i}`, i, [host(i)])),
    ...times(size, (i) =>
      givenObject('DestinationRule', 'edge', `d${i}`, { host: host(i), subsets: [{ name: 'v1' }] }),
    ),
    ...times(size, (i) =>
      givenObject('AuthorizationPolicy', 'edge', `p${i}`, {
        action: 'CUSTOM',
        provider: 'nobody',
        selector: { app: `a${i}` },
        rules: [{}],
      }),
    ),
    givenObject('EnvoyFilter', 'edge', 'f', {
      workloadSelector: {},
      configPatches: times(size, () => ({
        applyTo: 'CLUSTER',
        match: { context: 'GATEWAY' },
        operation: 'MERGE',
        value: { connect_timeout: '1s' },
      })),
    }),
  ];
}

function worldOf(size: number): GivenWorld {
  const world = new GivenWorld(meshOf(size));
  world.connect('10.9.0.1', { namespace: 'edge', type: 'router' }).get(listenerType, '*');
  times(size, (i) => world.connect(`10.8.${i >> 8}.${i & 255}`, { namespace: 'edge', labels: { app: `b${i}` } }));
  return world;
}

function metricsOf({ state, cache, resources }: GivenWorld): DiscoveryMetrics {
  const versions = function* (): Iterable<string> {
    for (const _ of resources.nodes) yield '1.30.0';
  };
  return new DiscoveryMetrics({
    version: 'x',
    state,
    cache,
    connectedVersions: versions,
    nodes: () => resources.nodes,
  });
}

describe('a scrape', () => {
  it('costs the same in a large mesh, and reports diagnostics for the last change', async () => {
    const costs: number[] = [];
    for (const size of [smallCount, largeCount]) {
      const metrics = metricsOf(worldOf(size));
      const { body } = await metrics.text();
      expect(body).toContain(`pilot_destrule_subsets 0`);
      expect(body).toContain(`pilot_vservice_dup_domain ${size + 1}`);
      expect(body).toContain(`pilot_sds_certificate_errors_total ${size}`);
      expect(body).toContain(`pilot_xds{version="1.30.0"} ${size + 1}`);
      expect(body).toContain(`provider_lookup_cluster_failures{type="authz"} ${size}`);
      costs.push(sumOf(await countWork(() => metrics.text())));
    }
    expect(costs[1]! / costs[0]!).toBeLessThan(1.2);
  });

  it('starts no scan if the mesh is unchanged, and waits for a scan after a change', async () => {
    const world = worldOf(smallCount);
    let scans = 0;
    const metrics = new DiscoveryMetrics({
      version: 'x',
      state: world.state,
      cache: world.cache,
      connectedVersions: () => {
        scans++;
        return [];
      },
    });
    for (let i = 0; i < 3; i++) await metrics.text();
    expect(scans).toBe(1);
    world.put(
      givenObject('DestinationRule', 'edge', 'more', { host: 's0.edge.svc.cluster.local', subsets: [{ name: 'v1' }] }),
    );
    metrics.contextPublished(1);
    for (let i = 0; i < 3; i++) expect((await metrics.text()).body).toContain('pilot_destrule_subsets 1');
    expect(scans).toBe(2);
  });
});

describe('a changing mesh', () => {
  it('is scanned once per 5 s of changes, or immediately for a scrape', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { state, cache } = worldOf(smallCount);
    let scans = 0;
    const connectedVersions = (): string[] => {
      scans++;
      return [];
    };
    const metrics = new DiscoveryMetrics({ version: 'x', state, cache, connectedVersions });
    for (let i = 0; i < 49; i++) {
      metrics.contextPublished(1);
      metrics.responseSent(listenerType, { bytes: 1 });
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(scans).toBe(0);
    await vi.advanceTimersByTimeAsync(100);
    await expect.poll(() => scans).toBe(1);
    await metrics.text();
    // After a scan, the next one waits for nine times its duration.
    metrics.contextPublished(1);
    const pendingScrape = metrics.text();
    await vi.advanceTimersByTimeAsync(4_999);
    await pendingScrape;
    expect(scans).toBe(2);
  });
});

describe('a scrape during a scan of an outdated state', () => {
  it("waits only for the next scan, and reports that scan's diagnostics", async () => {
    const { state, cache } = worldOf(smallCount);
    let scans = 0;
    let pendingScrape: Promise<unknown> | undefined;
    const connectedVersions = (): string[] => {
      scans++;
      if (scans === 1) {
        metrics.contextPublished(1);
        pendingScrape = metrics.text().then(() => scans);
      }
      return [];
    };
    const metrics: DiscoveryMetrics = new DiscoveryMetrics({ version: 'x', state, cache, connectedVersions });
    await metrics.text();
    expect(await pendingScrape).toBe(2);
  });
});

describe('a scan of the mesh', () => {
  it('can pause after each object', () => {
    const { state, resources } = worldOf(largeCount);
    const pieceCount = [...diagnosticSteps(state, resources.nodes)].length;
    // Five diagnostics iterate over services, three over proxies, and others over routes, rules and policies.
    expect(pieceCount).toBeGreaterThan(8 * largeCount);
  });

  it('takes the same time per object in a large mesh as in a small one', () => {
    const work = (size: number) => {
      const { state, resources } = worldOf(size);
      return countedWork(() => void diagnosticsOf(state, resources.nodes));
    };
    const { exponent, tooFast } = growthOfWork(work, smallCount, largeCount);
    expect(tooFast).toEqual([]);
    expect(exponent).toBeLessThan(1.2);
  });
});
