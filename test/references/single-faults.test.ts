/** A mesh without faults has no reports, and a mesh with a single fault has exactly its report, both in `validate` and in push_status. */
import { describe, expect, it } from 'vitest';
import { sized } from '../harness/size-of-run.ts';
import { Draw } from '../random-config/draw.ts';
import { consistentMesh, type MeshObject } from './consistent-mesh.ts';
import type { Mutated } from './mutate.ts';
import { objectMutations } from './object-mutations.ts';
import { referenceMutations } from './reference-mutations.ts';
import { routeMutations } from './route-mutations.ts';
import { servedWarnings, validationProblems } from './run-mutation.ts';

const mutations = [...routeMutations, ...objectMutations, ...referenceMutations];
const { count, maxApplied } = sized({ short: { count: 12, maxApplied: 2 }, full: { count: 100, maxApplied: 100 } });
const seeds = Array.from({ length: count }, (_, index) => index + 1);

/** Meshes with Pods and endpoints, as in a cluster, or with Deployments, as users write them. */
const meshes = new Map<number, readonly MeshObject[]>();
function meshOf(seed: number): readonly MeshObject[] {
  const mesh = meshes.get(seed) ?? consistentMesh(new Draw(seed), hasPods(seed) ? 'Pod' : 'Deployment');
  meshes.set(seed, mesh);
  return mesh;
}
const hasPods = (seed: number): boolean => seed % 2 === 1;

/**
 * Reports of `validate`, without additional ones of a rejected object and without the note that references to it are
 * not checked.
 */
async function validatedWithout({ mesh, expected, rejected, meshSettings }: Mutated): Promise<readonly string[]> {
  const reports = await validationProblems(mesh, meshSettings);
  if (rejected === undefined) return reports;
  return reports.filter(
    (report) =>
      expected.includes(report) || !(report.includes(` ${rejected} `) || /^note: .* an invalid one$/.test(report)),
  );
}

describe('validate and push_status for a mesh with valid references', () => {
  it.each(seeds)('report nothing for the mesh of seed %i', async (seed) => {
    const mesh = meshOf(seed);
    expect(await validationProblems(mesh)).toEqual([]);
    if (hasPods(seed)) expect(servedWarnings(mesh)).toEqual([]);
  });
});

describe('validate and push_status for a mesh with a single fault', () => {
  it.each(mutations.map((mutation) => [mutation.name, mutation] as const))(
    'report exactly one fault, at its object and field, if %s',
    async (_, { apply, only }) => {
      let appliedCount = 0;
      for (const seed of seeds) {
        const mutated = apply(meshOf(seed), new Draw(seed));
        if (mutated === undefined || appliedCount === maxApplied) continue;
        appliedCount++;
        const expected = [...mutated.expected].sort();
        if (only !== 'push_status') expect(await validatedWithout(mutated), `seed ${seed}`).toEqual(expected);
        // A control plane does not read Deployments.
        if (only !== 'validate' && hasPods(seed))
          expect(servedWarnings(mutated.mesh), `seed ${seed}`).toEqual(expected);
      }
      expect(appliedCount).toBeGreaterThan(0);
    },
  );
});
