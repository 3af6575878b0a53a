/** Which service accounts may read Secrets, queried by the statecharts (machines/discovery/kubernetes/{secret-access,access-review}.machine.ts). */
import { expect, it } from 'vitest';
import type { AccessResult } from '../../machines/discovery/secrets/access-review.machine.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const minuteMs = 60_000;
const allowedResult: AccessResult = { outcome: 'answered', allowed: true };
const deniedResult: AccessResult = { outcome: 'answered', allowed: false };
const silentReview: AccessResult = { outcome: 'failed', reason: 'no answer in 5 s' };

eachWorldFollowsTheDiagrams(['secret-access', 'access-review'], ['reviewing']);

async function createWorld(access: DiscoveryWorld['access']): Promise<DiscoveryWorld> {
  const world = await DiscoveryWorld.startServing({
    cluster: { server: 'https://cluster', resources: [], firstInformer: 1 },
  });
  world.access = access;
  return world;
}

async function setAccounts(world: DiscoveryWorld, ...accounts: string[]): Promise<void> {
  world.sendFrom('secret-access/accounts', { type: 'accounts.listed', accounts });
  await world.settle();
}

const reviewedAt = (world: DiscoveryWorld, account: string): number[] => {
  const times = world.reviews.flatMap((one) => (one.account === account ? [one.at] : []));
  return times.map((time) => time - times[0]!);
};

const countForced = (world: DiscoveryWorld): number =>
  world
    .events('push.request')
    .filter(({ reasons }) => (reasons as object | undefined) && 'secret' in (reasons as object)).length;

it('access is queried when a proxy of an account requests a Secret and once a minute, and all proxies are notified of changes', async () => {
  const world = await createWorld({ 'edge/front': allowedResult, 'edge/other': deniedResult });
  await setAccounts(world, 'edge/front', 'edge/other');
  expect(world.adoptedAccess).toEqual(['edge/front true', 'edge/other false']);
  expect(countForced(world)).toBe(2);
  await setAccounts(world, 'edge/front', 'edge/other');
  await world.passTime(2.5 * minuteMs);
  expect(reviewedAt(world, 'edge/front')).toEqual([0, minuteMs, 2 * minuteMs]);
  expect(countForced(world)).toBe(2);
  world.access['edge/front'] = deniedResult;
  await world.passTime(minuteMs);
  expect(world.adoptedAccess.slice(2)).toEqual(['edge/front false']);
  expect(countForced(world)).toBe(3);
});

it('access is not queried for accounts without proxies, and is queried again when a proxy returns', async () => {
  const world = await createWorld({ 'edge/front': allowedResult });
  await setAccounts(world, 'edge/front');
  await setAccounts(world);
  await world.passTime(10 * minuteMs);
  expect(reviewedAt(world, 'edge/front')).toEqual([0]);
  await setAccounts(world, 'edge/front');
  expect(world.adoptedAccess).toEqual(['edge/front true', 'edge/front true']);
});

it('access is not granted or revoked without a response of the API server, and retries have increasing delays', async () => {
  const world = await createWorld({ 'edge/front': silentReview });
  await setAccounts(world, 'edge/front');
  await world.passTime(40_000);
  expect(reviewedAt(world, 'edge/front')).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000]);
  expect(world.adoptedAccess).toEqual([]);
  world.access['edge/front'] = allowedResult;
  await world.passTime(minuteMs);
  expect(world.adoptedAccess).toEqual(['edge/front true']);
  world.access['edge/front'] = silentReview;
  await world.passTime(10 * minuteMs);
  expect(world.adoptedAccess).toEqual(['edge/front true']);
});

it('access queries that throw count as missing responses', async () => {
  const world = await createWorld({ 'edge/front': new Error('bug') });
  await setAccounts(world, 'edge/front');
  expect(world.events('access.unavailable')).toMatchObject([{ account: 'edge/front', reason: 'bug' }]);
  world.access['edge/front'] = allowedResult;
  await world.passTime(2_000);
  expect(world.adoptedAccess).toEqual(['edge/front true']);
});
