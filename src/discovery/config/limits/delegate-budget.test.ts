import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { givenObject } from '../../../../test/fixtures/given-world.ts';
import { measuredTurns } from '../../../../test/harness/longest-turn.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import { HostNames } from '../../../model/fields/hostname.ts';
import { maxDelegatedRoutes, maxHostRoutes } from '../../../model/kinds/object-limits.ts';
import type { VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { VirtualServiceIndex } from '../../../model/push-context/virtual-service-index.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { MeshConfigs } from '../snapshots/mesh-configs.ts';
import type { LimitedObjects } from './limited-objects.ts';
import { NamespaceBudgets } from './namespace-budgets.ts';

const listOf = <T>(length: number, build: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => build(index));

/** A delegate VirtualService. Each route has one match. */
function delegate(namespace: string, name: string, routes: number): Config {
  const http = listOf(routes, (index) => ({
    match: [{ uri: { prefix: `/${index}` } }],
    route: [{ destination: { host: 'a.test' } }],
  }));
  return givenObject('VirtualService', namespace, name, { hosts: [], http });
}

/** A VirtualService with one route per delegate, and one for all other requests. */
function root(name: string, age: number, delegates: readonly string[], { hosts = 1, matches = 1 } = {}): Config {
  const http = delegates.map((text) => {
    const [namespace, delegateName] = text.split('/');
    return {
      match: listOf(matches, () => ({ uri: { prefix: '/' } })),
      delegate: { namespace, name: delegateName },
    };
  });
  const last = { route: [{ destination: { host: 'last.test' } }] };
  const names = listOf(hosts, (index) => `${name}${index}.test`);
  return givenObject('VirtualService', 'mallory', name, { hosts: names, http: [...http, last] }, age);
}

/** A set of objects that are added and removed one by one, with the resulting limitations. */
class BudgetFixture {
  readonly #budgets: NamespaceBudgets;
  readonly objects = new Map<string, Config>();
  #limitedObjects: LimitedObjects['limitedByKey'] = new Map();

  constructor(maxExported = Number.POSITIVE_INFINITY) {
    this.#budgets = new NamespaceBudgets({
      maxExportedPerNamespace: maxExported,
      maxGatewayRoutesPerNamespace: maxExported,
      maxEndpointsPerNamespace: Number.POSITIVE_INFINITY,
    });
  }

  /** @returns names of objects whose limitation changed */
  put(...configs: Config[]): string[] {
    for (const config of configs) this.objects.set(configKeyText(config), config);
    return this.#limit(configs);
  }

  remove(config: Config): string[] {
    this.objects.delete(configKeyText(config));
    return this.#limit([config]);
  }

  #limit(configs: readonly Config[]): string[] {
    const keys = configs.map(configKeyText);
    const { limitedByKey, changedKeys } = runToEnd(
      this.#budgets.limitInSteps(keys, (key) => this.objects.get(key), {}, this.#limitedObjects),
    );
    this.#limitedObjects = limitedByKey;
    return [...changedKeys].map((key) => key.split('/').at(-1)!).sort();
  }

  get problems(): string[] {
    return [...this.#limitedObjects.values()].map(
      ({ problem }) => `${problem.object} ${problem.field}: ${problem.message}`,
    );
  }

  /** The action of each route of an object. */
  routesOf(name: string): string[] {
    const key = `VirtualService/mallory/${name}`;
    const { http = [] } = (this.#limitedObjects.get(key)?.config ?? this.objects.get(key)!).spec as VirtualService;
    return http.map(({ delegate: to, directResponse }) =>
      to !== undefined ? `delegate ${to.name}` : directResponse !== undefined ? `${directResponse.status}` : 'route',
    );
  }
}

describe('the limit of routes from delegates', () => {
  it('replaces routes above the limit with 503 responses, and keeps the other routes of the object', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(delegate('mallory', 'large', 4_000), delegate('mallory', 'small', 10));
    objectSet.put(root('a', 1, ['mallory/small', 'mallory/large', 'mallory/small'], { matches: 3 }));
    expect(objectSet.routesOf('a')).toEqual(['delegate small', '503', 'delegate small', 'route']);
    expect(objectSet.problems).toEqual([
      expect.stringMatching(/^VirtualService mallory\/a spec\.http\[1\]\.delegate: 1 .*LIMIT_EXCEEDED/),
    ]);
  });

  it("counts a delegate's routes for each host and each match of the delegating route", () => {
    const objectSet = new BudgetFixture();
    objectSet.put(delegate('mallory', 'd', maxHostRoutes / 8));
    objectSet.put(root('fits', 1, ['mallory/d'], { hosts: 2, matches: 4 }));
    objectSet.put(root('hosts', 2, ['mallory/d'], { hosts: 3, matches: 4 }));
    objectSet.put(root('matches', 3, ['mallory/d'], { hosts: 2, matches: 5 }));
    expect(['fits', 'hosts', 'matches'].map((name) => objectSet.routesOf(name)[0])).toEqual([
      'delegate d',
      '503',
      '503',
    ]);
  });

  it('counts a large route of a delegate or a delegating object as several units', () => {
    const objectSet = new BudgetFixture();
    const headers = { request: { set: Object.fromEntries(listOf(64, (index) => [`h${index}`, 'x'.repeat(100)])) } };
    const largeDelegate = delegate('mallory', 'large', maxHostRoutes / 16);
    const spec = largeDelegate.spec as VirtualService;
    objectSet.put({ ...largeDelegate, spec: { ...spec, http: spec.http!.map((route) => ({ ...route, headers })) } });
    objectSet.put(delegate('mallory', 'small', maxHostRoutes / 16));
    const withHeaders = root('of-object', 1, ['mallory/small'], { matches: 3 });
    const { http = [], ...otherFields } = withHeaders.spec as VirtualService;
    objectSet.put({ ...withHeaders, spec: { ...otherFields, http: http.map((route) => ({ ...route, headers })) } });
    objectSet.put(root('to-large', 2, ['mallory/large'], { matches: 4 }));
    objectSet.put(root('to-small', 3, ['mallory/small'], { matches: 4 }));
    expect(['of-object', 'to-large', 'to-small'].map((name) => objectSet.routesOf(name)[0])).toEqual([
      '503',
      '503',
      'delegate small',
    ]);
  });

  it('keeps the delegates of the oldest objects, regardless of the order of arrival', () => {
    const d = delegate('mallory', 'd', maxHostRoutes);
    const roots = listOf(maxDelegatedRoutes / maxHostRoutes + 1, (index) => root(`r${index}`, index, ['mallory/d']));
    for (const order of [[d, ...roots], [d, ...roots].toReversed()]) {
      const objectSet = new BudgetFixture();
      for (const object of order) objectSet.put(object);
      expect(roots.map(({ name }) => objectSet.routesOf(name)[0])).toEqual([
        ...roots.slice(1).map(() => 'delegate d'),
        '503',
      ]);
    }
  });

  it('is applied again when a delegate grows, shrinks or is removed', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(root('a', 1, ['mallory/d'], { matches: 100 }), delegate('mallory', 'd', 10));
    expect(objectSet.routesOf('a')[0]).toBe('delegate d');
    expect(objectSet.put(delegate('mallory', 'd', 100))).toEqual(['a']);
    expect(objectSet.routesOf('a')[0]).toBe('503');
    // An unchanged limitation is not reported again.
    expect(objectSet.put(delegate('mallory', 'd', 101))).toEqual([]);
    expect(objectSet.put(delegate('mallory', 'd', 10))).toEqual(['a']);
    expect(objectSet.routesOf('a')[0]).toBe('delegate d');
    objectSet.put(delegate('mallory', 'd', 100));
    expect(objectSet.remove(delegate('mallory', 'd', 100))).toEqual(['a']);
    expect(objectSet.problems).toEqual([]);
  });

  it('is separate for the delegates of each namespace', () => {
    const objectSet = new BudgetFixture();
    objectSet.put(delegate('other', 'd', maxHostRoutes), delegate('mallory', 'own', 1_000));
    const manyRoots = listOf(8, (index) => root(`r${index}`, index, ['other/d', 'mallory/own']));
    objectSet.put(...manyRoots);
    expect(objectSet.routesOf('r7')).toEqual(['503', 'delegate own', 'route']);
  });

  it('reports an object only once if the object also exceeds the export limit', () => {
    const objectSet = new BudgetFixture(0);
    objectSet.put(delegate('mallory', 'd', 4_000));
    expect(objectSet.put(root('a', 1, ['mallory/d'], { matches: 3 }))).toEqual(['a']);
    expect(objectSet.problems).toEqual([expect.stringMatching(/respond with 503.*visible in its own namespace only/)]);
    expect(objectSet.put(root('b', 2, ['mallory/d']))).toEqual(['b']);
  });

  it('prevents two objects in a file from generating 16 million routes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'delegates-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const objectText = ({ kind, namespace, name, spec }: Config): string =>
      JSON.stringify({ apiVersion: 'networking.istio.io/v1', kind, metadata: { namespace, name }, spec });
    const largeDelegate = delegate('mallory', 'd', 4_000);
    const manyRoots = root(
      'a',
      1,
      listOf(4_000, () => 'mallory/d'),
    );
    writeFileSync(join(folder, 'mallory.yaml'), [largeDelegate, manyRoots].map(objectText).join('\n---\n'));
    const configs = new MeshConfigs({ mesh: () => defaultMeshConfig, domain: 'cluster.local' });
    const configReading = await configs.read([folder]);
    if (configReading.outcome !== 'read') throw new Error('not read');
    const errors = configReading.problems.filter(({ severity }) => severity === 'error');
    expect(errors).toMatchObject([{ object: 'VirtualService mallory/a', field: 'spec.http[2].delegate' }]);
    const sources = configs.snapshot.set.VirtualService;
    const { result: index, maxMs: turnMs } = await measuredTurns(async () => {
      return runToEnd(VirtualServiceIndex.buildInSteps(sources, new HostNames('cluster.local'), defaultMeshConfig));
    });
    const [service] = index.servicesFor('mesh', 'zoo');
    expect(service!.config.spec.http).toHaveLength(2 * 4_000 + 3_998 + 1);
    expect(turnMs).toBeLessThan(200);
  });
});
