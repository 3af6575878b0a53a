/** docs/scaling.md has the tables that the model makes of what was measured. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import measured from './measured.json' with { type: 'json' };
import { apiServerCost, replicaCost, type ScaledMesh } from './scaling-model.ts';
import { withTables } from './scaling-tables.ts';

const file = join(import.meta.dirname, '../../../docs/scaling.md');

test('the document has the tables of the model', () => {
  const made = withTables(readFileSync(file, 'utf8'));
  if (process.env.UPDATE_TABLES === '1') writeFileSync(file, made);
  expect(readFileSync(file, 'utf8') === made, `${file}: run with UPDATE_TABLES=1`).toBe(true);
});

const mesh: ScaledMesh = {
  proxies: 10_000,
  services: 1_000,
  namespaces: 1,
  seen: 1_000,
  endpointChanges: 1,
  routeChanges: 0,
};

describe('a replica', () => {
  test('holds what was measured where it was measured', () => {
    // 5,000 connections of a mesh of 200 services had 404 MiB resident.
    expect(replicaCost({ ...mesh, services: 200, seen: 200 }, 5_000).residentMib).toBeCloseTo(404, -2);
    expect(replicaCost({ ...mesh, services: 200, seen: 200 }, 5_000).changesCpu).toBeCloseTo(1.06, 1);
  });

  test('pays for changes by those whom they concern', () => {
    const all = replicaCost(mesh, 1_000);
    const tenth = replicaCost({ ...mesh, seen: 100 }, 1_000);
    expect(tenth.changesCpu).toBeCloseTo(all.changesCpu / 10);
    // Fewer proxies, and each is sent fewer routes.
    expect(tenth.routeChangeMb).toBeCloseTo(all.routeChangeMb / 100);
  });

  test('costs twice as much for twice the connections, but for the mesh that it holds', () => {
    const [one, two] = [replicaCost(mesh, 1_000), replicaCost(mesh, 2_000)];
    expect(two.returnCpuSeconds).toBeCloseTo(2 * one.returnCpuSeconds);
    const kib = measured.replica.connectionKib.value;
    expect(two.residentMib - one.residentMib).toBeCloseTo((1_000 * kib) / 1_024);
  });
});

test('the API server pays for each replica the same', () => {
  const [one, thousand] = [apiServerCost(mesh, 1), apiServerCost(mesh, 1_000)];
  expect(thousand.watches).toBe(1_000 * one.watches);
  expect(thousand.startGb).toBeCloseTo(1_000 * one.startGb);
  expect(thousand.changesMbitPerSecond).toBeCloseTo(1_000 * one.changesMbitPerSecond);
  expect(thousand.startCpuSeconds).toBe(one.startCpuSeconds);
});
