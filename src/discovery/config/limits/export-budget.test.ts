import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { givenObject } from '../../../../test/fixtures/given-world.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import { unitBytes } from '../../../model/kinds/object-limits.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { noDestination } from '../../../model/translation/gateway-api/backends.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { defaultConfigLimits } from '../files/config-limits.ts';
import { MeshConfigs } from '../snapshots/mesh-configs.ts';
import { ExportBudget } from './export-budget.ts';
import type { LimitedObject } from './limited-objects.ts';

function entry(
  name: string,
  age: number,
  { namespace = 'mallory', ports = 2, exportTo = ['*'], hosts = 2 } = {},
): Config {
  return givenObject(
    'ServiceEntry',
    namespace,
    name,
    {
      hosts: Array.from({ length: hosts }, (_, index) => `${name}${index}.test`),
      ports: Array.from({ length: ports }, (_, index) => ({ number: 1 + index, name: `p${index}`, protocol: 'HTTP' })),
      exportTo,
    },
    age,
  );
}

/** A set of objects that are added and removed one by one, with the resulting limitations. */
class BudgetFixture {
  readonly budget: ExportBudget;
  readonly objects = new Map<string, Config>();
  limited: ReadonlyMap<string, LimitedObject> = new Map();

  constructor(gateways = 10) {
    this.budget = new ExportBudget({ mesh: 10, gateways });
  }

  put(...configs: Config[]): string[] {
    for (const config of configs) this.objects.set(configKeyText(config), config);
    return this.limit(configs.map(configKeyText));
  }

  remove(config: Config): string[] {
    this.objects.delete(configKeyText(config));
    return this.limit([configKeyText(config)]);
  }

  /** @returns names of objects whose limitation changed */
  limit(keys: string[]): string[] {
    const { limitedByKey, changedKeys } = runToEnd(
      this.budget.limitInSteps(keys, (key) => this.objects.get(key), { rootNamespace: 'root' }, this.limited),
    );
    this.limited = limitedByKey;
    return [...changedKeys].map((key) => key.split('/').at(-1)!).sort();
  }

  get names(): string[] {
    return [...this.limited.keys()].map((key) => key.split('/').at(-1)!).sort();
  }
}

describe('the export limit of a namespace', () => {
  it('keeps the oldest objects exported, regardless of the order of arrival', () => {
    const objects = [entry('a', 1), entry('b', 2), entry('c', 3), entry('d', 4)];
    for (const order of [objects, objects.toReversed()]) {
      const objectSet = new BudgetFixture();
      for (const object of order) objectSet.put(object);
      expect(objectSet.names).toEqual(['c', 'd']);
    }
  });

  it('exports a younger object when an older one is deleted, and limits the younger one again when the older one returns', () => {
    const objectSet = new BudgetFixture();
    const [a, b, c] = [entry('a', 1), entry('b', 2), entry('c', 3)];
    expect(objectSet.put(a, b, c)).toEqual(['c']);
    expect(objectSet.remove(a)).toEqual(['c']);
    expect(objectSet.names).toEqual([]);
    expect(objectSet.put(a)).toEqual(['c']);
  });

  it('exports a small object even if a larger, older object exceeds the limit', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(entry('a', 1, { hosts: 100 }), entry('b', 2));
    expect(objectSet.names).toEqual(['a']);
  });

  it('does not count private objects, other namespaces, or the root namespace', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(entry('a', 1, { exportTo: ['.'], hosts: 100 }), entry('b', 2, { exportTo: ['mallory'], hosts: 100 }));
    objectSet.put(entry('c', 3, { namespace: 'other' }), entry('d', 4, { namespace: 'other' }), entry('e', 5));
    objectSet.put(entry('f', 6, { namespace: 'root', hosts: 100 }));
    expect(objectSet.names).toEqual([]);
  });

  it('recounts a changed object, and reports an object whose limitation starts or ends', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(entry('a', 1), entry('b', 2), entry('c', 3));
    expect(objectSet.put(entry('c', 3, { ports: 3 }))).toEqual(['c']);
    expect(objectSet.put(entry('c', 3, { ports: 1 }))).toEqual(['c']);
    expect(objectSet.names).toEqual([]);
  });

  it('has the same result if it is computed again because the first result was discarded', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(entry('a', 1), entry('b', 2), entry('c', 3));
    const keys = [...objectSet.objects.keys()];
    expect(objectSet.limit(keys)).toEqual([]);
    objectSet.limited = new Map();
    expect(objectSet.limit(keys)).toEqual(['c']);
    objectSet.remove(entry('a', 1));
    expect(objectSet.names).toEqual([]);
  });

  it('removes the subsets of a DestinationRule above the limit, but never its TLS settings', () => {
    const objectSet = new BudgetFixture();
    const trafficPolicy = { tls: { mode: 'ISTIO_MUTUAL' } };
    const subsets = [{ name: 'v1' }];
    const rule = givenObject('DestinationRule', 'mallory', 'r', { host: '*.test', trafficPolicy, subsets }, 1);
    objectSet.put(rule);
    expect(objectSet.limited.get(configKeyText(rule))!.config.spec).toEqual({ host: '*.test', trafficPolicy });
  });

  it('counts Services by their export annotation, and routes of VirtualServices separately for gateways and sidecars', () => {
    const objectSet = new BudgetFixture();
    const ports = Array.from({ length: 11 }, (_, index) => ({ name: `p${index}`, port: 1 + index }));
    const service = givenObject('Service', 'mallory', 's', { spec: { ports } }, 1);
    const routes = (name: string, gateways?: string[]) =>
      givenObject(
        'VirtualService',
        'mallory',
        name,
        { hosts: ['a.test', 'b.test'], gateways, http: ports.map(() => ({})) },
        2,
      );
    objectSet.put(service, routes('mesh'), routes('gateway', ['g']));
    expect(objectSet.names).toEqual(['gateway', 'mesh', 's']);
    objectSet.remove(routes('gateway', ['g']));
    expect(objectSet.limited.get(configKeyText(service))!.config.annotations).toEqual({
      'networking.istio.io/exportTo': '.',
    });
    objectSet.put({ ...service, annotations: { 'networking.istio.io/exportTo': '.' } });
    expect(objectSet.names).toEqual(['mesh']);
  });

  it('counts a large route or cluster as several units', () => {
    const objectSet = new BudgetFixture();
    const text = 'x'.repeat(5 * unitBytes);
    const headers = { request: { set: { a: text } } };
    const match = [{ uri: { exact: '/a' } }, { uri: { exact: '/b' } }];
    const service = (name: string, http: object[]): Config =>
      givenObject('VirtualService', 'mallory', name, { hosts: ['a.test'], http }, 1);
    objectSet.put(service('headers', [{ match, headers }]), service('none', [{ match }]));
    expect(objectSet.names).toEqual(['headers']);
    objectSet.remove(service('headers', [{ match, headers }]));
    const rule = (name: string, policies: { readonly common?: object; readonly specific?: object }): Config => {
      const subsets = [{ name: 'v1', trafficPolicy: policies.specific }, { name: 'v2' }];
      return givenObject('DestinationRule', 'mallory', name, {
        host: 'a.test',
        trafficPolicy: policies.common,
        subsets,
      });
    };
    const largePolicy = { tls: { mode: 'SIMPLE', subjectAltNames: [text] } };
    objectSet.put(
      rule('common', { common: largePolicy }),
      rule('none', {}),
      rule('own', { specific: { ...largePolicy, sni: text } }),
    );
    expect(objectSet.names).toEqual(['common', 'own']);
    objectSet.put(entry('names', 9, { hosts: 1, ports: 1 }));
    expect(objectSet.names).toEqual(['common', 'own']);
    const names = entry('names', 9, { hosts: 1, ports: 1 });
    objectSet.put({ ...names, spec: { ...(names.spec as object), subjectAltNames: [text, text] } });
    expect(objectSet.names).toEqual(['common', 'names', 'own']);
  });
});

describe('routes at gateways beyond the export limit', () => {
  const match = (name: string) => [{ uri: { prefix: `/${name}` } }];
  const route = [{ destination: { host: 'a.test' } }];
  const bound = (name: string, age: number, routes: number, gateways = ['infra/edge']): Config => {
    const http = Array.from({ length: routes }, () => ({ match: match(name), route, timeoutMs: 1_000 }));
    return givenObject('VirtualService', 'mallory', name, { hosts: ['a.test'], gateways, http }, age);
  };
  const specOf = (objectSet: BudgetFixture, name: string) =>
    objectSet.limited.get(`VirtualService/mallory/${name}`)?.config.spec;

  it('respond with 503 to the same requests, so that these match no wider route', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(bound('old', 1, 8), bound('young', 2, 3));
    const closedRoute = { match: match('young'), directResponse: { status: 503 } };
    expect(objectSet.names).toEqual(['young']);
    expect(specOf(objectSet, 'young')).toEqual({
      hosts: ['a.test'],
      gateways: ['infra/edge'],
      http: [closedRoute, closedRoute, closedRoute],
    });
    expect(objectSet.limited.get('VirtualService/mallory/young')!.problem.message).toMatch(
      /^its routes respond with 503: namespace mallory exports 11 routes at gateways, the limit is 10 \(LIMIT_EXCEEDED\)/,
    );
  });

  it('are removed from gateways of other namespaces if even the 503 routes exceed the limit', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(bound('a', 1, 8), bound('b', 2, 8), bound('c', 3, 8));
    expect([specOf(objectSet, 'b'), specOf(objectSet, 'c')]).toMatchObject([
      { http: expect.arrayContaining([expect.objectContaining({ directResponse: { status: 503 } })]) },
      { exportTo: ['.'] },
    ]);
    expect(specOf(objectSet, 'b')).not.toHaveProperty('exportTo');
  });

  it('have a separate limit, and the message names the setting of this limit', () => {
    const objectSet = new BudgetFixture(20);
    objectSet.put(bound('a', 1, 11), bound('b', 2, 8), bound('c', 3, 8));
    expect(objectSet.names).toEqual(['c']);
    expect(objectSet.limited.get('VirtualService/mallory/c')!.problem.message).toMatch(
      /exports 27 routes at gateways, the limit is 20 .* raise PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE$/,
    );
  });

  it('close connections of TLS and TCP routes', () => {
    const objectSet = new BudgetFixture();
    const spec = {
      hosts: ['a.test'],
      gateways: ['infra/edge'],
      tls: [{ match: [{ sniHosts: ['a.test'], port: 443 }], route }],
      tcp: [{ match: [{ port: 9_000 }], route }],
    };
    objectSet.put(bound('old', 1, 9), givenObject('VirtualService', 'mallory', 'l4', spec, 2));
    const closedDestination = [{ destination: noDestination }];
    expect(specOf(objectSet, 'l4')).toEqual({
      ...spec,
      tls: [{ ...spec.tls[0], route: closedDestination }],
      tcp: [{ ...spec.tcp[0], route: closedDestination }],
    });
  });

  it('are unchanged if only the limit for sidecars is exceeded', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(entry('a', 1, { hosts: 5 }), bound('both', 2, 3, ['mesh', 'infra/edge']));
    expect(specOf(objectSet, 'both')).toMatchObject({
      gateways: ['infra/edge'],
      http: [{ route }, { route }, { route }],
    });
    expect(specOf(objectSet, 'both')).not.toHaveProperty('exportTo');
    expect(objectSet.limited.get('VirtualService/mallory/both')!.problem.message).toMatch(
      /^it does not apply to the mesh: /,
    );
  });
});

describe('objects beyond the export limit', () => {
  it('are visible only in their own namespace, reported once, and exported again below the limit', async () => {
    const root = mkdtempSync(join(tmpdir(), 'chartpilot-budget-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const limits = { ...defaultConfigLimits, maxExportedPerNamespace: 3, maxGatewayRoutesPerNamespace: 3 };
    const configs = new MeshConfigs({ mesh: () => defaultMeshConfig, domain: 'cluster.local', limits });
    const reportedLimits: string[] = [];
    configs.onLimited((key, limitedObject) => reportedLimits.push(`${key} ${limitedObject?.problem.message}`));
    const write = (name: string, ports: number): void =>
      writeFileSync(
        join(root, `${name}.yaml`),
        `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: mallory, creationTimestamp: 2026-01-0${name === 'old' ? 1 : 2}T00:00:00Z}
spec: {hosts: [${name}.test], ports: [${Array.from({ length: ports }, (_, i) => `{number: ${80 + i}, name: p${i}, protocol: HTTP}`)}]}
`,
      );
    const exportOf = (name: string): unknown =>
      (configs.snapshot.byKey.get(`ServiceEntry/mallory/${name}`)!.spec as { exportTo?: unknown }).exportTo;
    write('old', 2);
    write('young', 2);
    const first = await configs.read([root]);
    const problem = {
      severity: 'error',
      object: 'ServiceEntry mallory/young',
      message: expect.stringMatching(/own namespace only.* exports 4 .* limit is 3 .*PILOT_MAX_EXPORTED_PER_NAMESPACE/),
    };
    expect(first).toMatchObject({ problems: [problem], problemCount: 1 });
    expect([exportOf('old'), exportOf('young'), configs.limitedCount]).toEqual([undefined, ['.'], 1]);
    write('old', 1);
    const secondReading = await configs.read([root]);
    expect(secondReading).toMatchObject({ problems: [], problemCount: 0 });
    expect(secondReading.outcome === 'read' && secondReading.changes.map(({ key }) => key).sort()).toEqual([
      'ServiceEntry/mallory/old',
      'ServiceEntry/mallory/young',
    ]);
    expect([exportOf('young'), configs.limitedCount]).toEqual([undefined, 0]);
    expect(reportedLimits).toEqual([
      expect.stringMatching(/^ServiceEntry\/mallory\/young .*LIMIT_EXCEEDED/),
      'ServiceEntry/mallory/young undefined',
    ]);
  });
});
