/**
 * What a tenant costs others whose objects are all valid, as many as its limits allow, and all change at once. A push of another namespace
 * must not wait until all of them are processed.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { sized } from '../harness/size-of-run.ts';
import { AttackedMesh } from './attacked-mesh.ts';
import { manyAccepted } from './many-accepted.ts';

/** Most of its work is reading objects, which is done for namespaces in turn. The others are measured only. */
const readInTurns: readonly KindName[] = ['EnvoyFilter'];
/** Processor time until the push arrives, as a share of what all objects of the tenant take. It was 1. 0.2 was measured. */
const maxShare = 0.6;
const measured = sized({ short: readInTurns, full: Object.keys(kinds) as KindName[] });
const tries = 3;

let mesh: AttackedMesh;

beforeAll(async () => {
  mesh = await AttackedMesh.start({}, [], 'delta');
  for (let round = 0; round < 8; round++) await mesh.pushMs();
});

afterAll(() => mesh.stop());

const metadataOf = (kind: KindName, index: number) => ({
  name: `many-${index}`,
  ...(kinds[kind].scope === 'Namespaced' && { namespace: 'mallory' }),
});

/** @returns processor time until the victim has its push, and until everything is processed */
async function change(kind: KindName, turn: number): Promise<{ readonly pushMs: number; readonly allMs: number }> {
  await mesh.turns();
  for (const [index, { body, labels }] of manyAccepted[kind](turn).entries()) {
    mesh.attack(kind, { ...body, metadata: { ...metadataOf(kind, index), ...(labels && { labels }) } });
  }
  const { sumMs: pushMs } = await mesh.pushCost();
  let [allMs, last] = [pushMs, Number.POSITIVE_INFINITY];
  // A push that takes as little as one without the attack comes after all of it.
  while (last > Math.max(pushMs / 4, 20)) {
    ({ sumMs: last } = await mesh.pushCost());
    allMs += last;
  }
  return { pushMs, allMs };
}

it('a push of another namespace does not wait until all valid objects of a tenant are processed', async () => {
  const rows: string[] = [];
  const failures: string[] = [];
  for (const kind of measured) {
    let best = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < tries && best > maxShare; turn++) {
      const { pushMs, allMs } = await change(kind, turn);
      best = Math.min(best, pushMs / allMs);
      rows.push(`${kind.padEnd(22)} push ${pushMs.toFixed(0)} ms of ${allMs.toFixed(0)} ms`);
    }
    if (readInTurns.includes(kind) && best > maxShare) failures.push(rows.at(-1)!);
    for (const index of manyAccepted[kind](0).keys()) mesh.remove(kind, { metadata: metadataOf(kind, index) });
    await mesh.pushMs();
  }
  console.log(rows.join('\n'));
  expect(failures).toEqual([]);
});
