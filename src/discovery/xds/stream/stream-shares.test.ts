import { status } from '@grpc/grpc-js';
import { test as base, describe, expect, it } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import {
  type GiveServer,
  givenNode,
  giveServers,
  openSubscribedStream,
} from '../../../../test/fixtures/given-server.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { maxServedStreamsForHeap, type ServedStream, StreamShares } from './stream-shares.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

function createShares(maxStreams: number) {
  const rejectedStreams: string[] = [];
  const shares = new StreamShares(maxStreams, () => {});
  const openStream = (name: string, account: string | undefined, peer = '10.0.0.1:1'): boolean => {
    const stream: ServedStream = { peer, reject: ({ code }) => void rejectedStreams.push(`${name} ${code}`) };
    const identities = account === undefined ? [] : [`spiffe://td/ns/${account.replace('/', '/sa/')}`];
    if (shares.rejectionOf(stream, identities) !== undefined) return false;
    shares.add(stream, identities);
    return true;
  };
  return { rejected: rejectedStreams, open: openStream };
}

describe('streams above the limit', () => {
  it('are closed in a namespace with many accounts if another namespace needs them, and not accepted again', () => {
    const { rejected, open } = createShares(1_000);
    for (let i = 0; i < 1_000; i++) expect(open(`flood ${i}`, `mallory/account-${i % 2}`)).toBe(true);
    expect(open('more', 'mallory/account-0')).toBe(false);
    expect(open('bank', 'bank/pay')).toBe(true);
    expect(rejected).toEqual([expect.stringMatching(/^flood 99\d RESOURCE_EXHAUSTED$/)]);
    expect(open('again', 'mallory/account-0')).toBe(false);
  });

  it('count as those of one namespace if their clients have no identity, and are divided by address', () => {
    const { rejected, open } = createShares(4);
    for (let i = 0; i < 4; i++) open(`flood ${i}`, undefined, `10.0.0.66:${i}`);
    expect([open('bank', 'bank/pay'), open('other', undefined, '10.0.0.7:1')]).toEqual([true, true]);
    expect(rejected.map((text) => text.split(' ')[0])).toEqual(['flood', 'flood']);
  });

  it('are limited by default to half of the heap', () => {
    expect(maxServedStreamsForHeap(512 * 1024 * 1024)).toBe(8_192);
  });
});

test('a stream above the limit is rejected with the reason, and served after another stream ends', async ({
  start,
}) => {
  const { client } = await start({ limits: { maxServedStreams: 2 } });
  const [first] = [await openSubscribedStream(client()), await openSubscribedStream(client())];
  const rejectedStream = client().sotw();
  rejectedStream.send({ node: givenNode, typeUrl: clusterType });
  expect(await rejectedStream.ended).toMatchObject({
    code: status.RESOURCE_EXHAUSTED,
    details: expect.stringMatching(/2 of at most 2 xDS streams .*127.0.0.1.* \[STREAMS_EXHAUSTED\]$/),
  });
  first!.cancel();
  await first!.ended;
  await eventually('the slot is free', async () => {
    const stream = client().sotw();
    stream.send({ node: givenNode, typeUrl: clusterType });
    return Promise.race([stream.next().then(() => true), stream.ended.then(() => false)]);
  });
});
