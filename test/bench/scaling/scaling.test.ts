/** docs/scaling.md contains the tables of the model. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import measured from './measured.json' with { type: 'json' };
import { apiServerCost, replicaCost, type ScaledMesh } from './scaling-model.ts';
import { withTables } from './scaling-tables.ts';

const file = join(import.meta.dirname, '../../../docs/scaling.md');

test('docs/scaling.md contains the tables of the model', () => {
  const generatedText = withTables(readFileSync(file, 'utf8'));
  if (process.env.UPDATE_TABLES === '1') writeFileSync(file, generatedText);
  expect(readFileSync(file, 'utf8') === generatedText, `${file}: run with UPDATE_TABLES=1`).toBe(true);
});

/**
 * Measured manually in the steps of `node test/bench/connection-memory.ts`, with jemalloc, 2026-11-29, two cores at a
 * load of 40 to 60.
 */
const measuredPoints = [
  { services: 200, connections: 500, hasTls: true, residentMib: 246 },
  { services: 200, connections: 1_000, hasTls: true, residentMib: 336 },
  { services: 200, connections: 5_000, hasTls: true, residentMib: 1_011 },
  { services: 50, connections: 500, hasTls: false, residentMib: 201 },
] as const;

const mesh: ScaledMesh = {
  proxies: 10_000,
  services: 1_000,
  namespaces: 1,
  seen: 1_000,
  endpointChanges: 1,
  routeChanges: 0,
  hasTls: true,
};

describe('a replica', () => {
  test.each(measuredPoints.map((point) => ({ ...point, tls: point.hasTls ? 'with' : 'without' })))(
    'needs within 15 % of the measured memory for $services services and $connections connections $tls TLS',
    (point) => {
      const { services, connections, hasTls, residentMib } = point;
      const computed = replicaCost({ ...mesh, services, seen: services, hasTls }, connections).residentMib;
      expect(Math.abs(computed / residentMib - 1)).toBeLessThan(0.15);
    },
  );

  test('the CPU time of a replica for changes equals the measured one', () => {
    expect(replicaCost({ ...mesh, services: 200, seen: 200 }, 5_000).changesCpu).toBeCloseTo(1.06, 1);
  });

  test('the cost of a change is proportional to the number of affected proxies', () => {
    const all = replicaCost(mesh, 1_000);
    const tenth = replicaCost({ ...mesh, seen: 100 }, 1_000);
    expect(tenth.changesCpu).toBeCloseTo(all.changesCpu / 10);
    // A tenth of the proxies, each with a tenth of the routes.
    expect(tenth.routeChangeMb).toBeCloseTo(all.routeChangeMb / 100);
  });

  test('doubling the connections doubles every cost except the memory of the mesh', () => {
    const [one, two] = [replicaCost(mesh, 1_000), replicaCost(mesh, 2_000)];
    expect(two.returnCpuSeconds).toBeCloseTo(2 * one.returnCpuSeconds);
    const kib = measured.replica.secureConnectionKib.value;
    expect(two.residentMib - one.residentMib).toBeCloseTo((1_000 * kib) / 1_024);
  });
});

test('each replica causes the same load on the API server', () => {
  const [one, thousand] = [apiServerCost(mesh, 1), apiServerCost(mesh, 1_000)];
  expect(thousand.watches).toBe(1_000 * one.watches);
  expect(thousand.startGb).toBeCloseTo(1_000 * one.startGb);
  expect(thousand.changesMbitPerSecond).toBeCloseTo(1_000 * one.changesMbitPerSecond);
  expect(thousand.startCpuSeconds).toBe(one.startCpuSeconds);
});
