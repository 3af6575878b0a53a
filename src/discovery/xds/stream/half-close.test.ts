/** Tools such as grpcurl send their requests, half-close the stream, and read responses until its status. */
import { setTimeout as sleep } from 'node:timers/promises';
import { test as base, expect } from 'vitest';
import {
  clusterType,
  endpointType,
  listenerType,
  routeType,
  secretType,
} from '../../../../machines/discovery/xds/ads-types.ts';
import { type GiveServer, givenNode, giveServers } from '../../../../test/fixtures/given-server.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import type { AdsServerOptions } from '../ads-server-options.ts';
import type { OneShot } from '../one-shot.ts';
import type { ResourceSource } from '../resource-source.ts';
import { encodeValue } from '../responses/encoding.ts';

const test = base.extend<{ start: GiveServer }>({ start: ({ task: _ }, use) => giveServers(use) });

const syncz = 'istio.io/debug/syncz';
const all = [clusterType, endpointType, listenerType, routeType];

/** Clusters that a listener and a route name, with their endpoints. */
function mesh(size = 0): ScriptedSource {
  const source = new ScriptedSource();
  // A client uses the cluster after its ACK, which a half-closed stream never receives.
  source.usability.set('a', { usableAfter: 'warming', assignment: 'a', secrets: new Set() });
  source.set(clusterType, 'a', size);
  source.set(endpointType, 'a');
  source.setNaming(listenerType, 'a', 'a');
  source.setNaming(routeType, 'a', 'a');
  return source;
}

/** Builds each response in steps that other work can interrupt. */
function inSteps(source: ScriptedSource, steps: number): ResourceSource {
  return {
    openNode(node) {
      const openedSource = source.openNode(node);
      if ('error' in openedSource) return openedSource;
      const { resources } = openedSource;
      const prepare: typeof resources.prepare = (typeUrl, names) => {
        let remainingSteps = steps;
        return { runStep: () => --remainingSteps > 0, result: () => resources.get(typeUrl, names) };
      };
      return { resources: { ...resources, prepare } };
    },
  };
}

/** Responds after a while, like a page that waits for other replicas. */
const delayedOneShot: OneShot = async ({ typeUrl }) => {
  await sleep(50);
  return { version: 'v', resources: [encodeValue(typeUrl, Buffer.from('synced'), 'a')] };
};

function holding(source: ScriptedSource): Partial<AdsServerOptions> {
  return { source, references: source.references };
}

const cases: readonly [string, Partial<AdsServerOptions>, readonly string[]][] = [
  ['that requested a debug page', { oneShot: delayedOneShot }, [syncz]],
  ['that requested several debug pages', { oneShot: delayedOneShot }, [syncz, syncz, syncz]],
  ['whose response is built in steps', { source: inSteps(mesh(), 50) }, all],
  ['whose responses wait for each other', { source: mesh(3_000_000) }, all],
  ['whose listeners and routes wait for clusters', holding(mesh()), all],
];

test.for(cases)('a half-closed stream %s ends with OK after all responses', async ([, options, types], { start }) => {
  const { client } = await start(options);
  for (const protocol of ['sotw', 'delta'] as const) {
    const stream = client()[protocol]();
    for (const typeUrl of types) {
      const names = typeUrl === clusterType || typeUrl === listenerType ? [] : ['a'];
      const node = givenNode;
      stream.send(
        protocol === 'sotw'
          ? { node, typeUrl, resourceNames: names }
          : ({ node, typeUrl, resourceNamesSubscribe: names } as object),
      );
    }
    stream.halfClose();
    expect(await stream.ended).toMatchObject({ code: 0 });
    expect(stream.responses.map(({ typeUrl }) => typeUrl).sort()).toEqual([...types].sort());
    for (const { resources } of stream.responses) expect(resources).toHaveLength(1);
  }
});

test('a half-closed stream ends with the status of a denied debug request', async ({ start }) => {
  const oneShot: OneShot = async () => {
    await sleep(50);
    return { code: 'PERMISSION_DENIED', reason: 'not for you' };
  };
  const { client } = await start({ oneShot });
  const stream = client().sotw();
  stream.send({ node: givenNode, typeUrl: syncz });
  stream.halfClose();
  expect(await stream.ended).toMatchObject({ code: 7, details: 'not for you' });
});

test('a half-closed stream without a pending response ends at once', async ({ start }) => {
  const { client } = await start(holding(mesh()));
  const stream = client().sotw();
  stream.send({ node: givenNode, typeUrl: secretType, resourceNames: ['missing'] });
  stream.halfClose();
  expect(await stream.ended).toMatchObject({ code: 0 });
  expect(stream.responses).toEqual([]);
});
