/** An uncaught error in later work of a stream (a timer, a promise) ends only this stream. */
import { test as base, expect } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import {
  type GiveServer,
  givenNode,
  giveServers,
  openSubscribedStream,
} from '../../../../test/fixtures/given-server.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

test.for<[string, () => void]>([
  ['timer', () => void setTimeout(() => fail())],
  ['promise', () => void Promise.resolve().then(fail)],
])('an uncaught error in a %s ends the stream that caused it', async ([, throwLater], { start }) => {
  const caughtErrors = uncaughtErrors();
  const { source, client } = await start();
  const other = await openSubscribedStream(client());
  const { openNode } = source;
  source.openNode = (node) => {
    const openedSource = openNode.call(source, node);
    if ('error' in openedSource) return openedSource;
    const { get } = openedSource.resources;
    const failing: typeof get = (...parameters) => {
      throwLater();
      return get(...parameters);
    };
    return { resources: { ...openedSource.resources, get: failing } };
  };
  const stream = client().sotw();
  stream.send({ node: givenNode, typeUrl: clusterType });
  expect((await stream.ended).details).toBe('internal error [INTERNAL_ERROR]');
  expect(caughtErrors.map(({ owner }) => owner)).toEqual(['ads-connection-2']);
  source.openNode = openNode;
  other.send({ typeUrl: clusterType, resourceNames: ['a'], responseNonce: other.responses[0]!.nonce });
  await other.next();
  await openSubscribedStream(client());
});

function fail(): never {
  throw new Error('planted');
}
