/**
 * A node that was served comes back again and again, by a new connection each time, while strangers from its very address
 * take all the new streams that a second has room for. It has its first response within three times what it takes when
 * the strangers are busy with something else, without the time in which the server or the client could have run and others
 * of the machine had its processors.
 */
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdsTestClient, typeUrls } from '../ads-client.ts';
import { cartCluster, sidecar } from '../harness/control-plane.ts';
import { freePorts } from '../harness/free-ports.ts';
import type { Program } from '../harness/program.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { makeRoot, startAttackedServer } from './attacked-server.ts';
import { type AttackName, attackedNode } from './attacks.ts';
import { HostileProcess } from './hostile-process.ts';

/** Below this a machine that does other things as well tells nothing: it is two turns of the rate. */
const floorMs = 80;
const streamsPerSecond = 25;
/** With these the slowest is the p99. */
const visits = 10;
const betweenMs = 300;
/** Until the strangers have taken up what there is: the storm has its address held off after three seconds. */
const leadMs = { elsewhere: 0, idStorm: 3_500 } as Partial<Record<AttackName, number>>;
const usualLeadMs = 1_500;
const tries = 3;

const root = makeRoot();
let server: Program;
let port: number;
let strangers: HostileProcess;
let quietMs: number;

beforeAll(async () => {
  const [grpc, http] = (await freePorts(2)) as [number, number];
  port = grpc;
  const env = { PILOT_MAX_REQUESTS_PER_SECOND: `${streamsPerSecond}` };
  [strangers, server] = await Promise.all([HostileProcess.start(), startAttackedServer(root, { port, http }, env)]);
  quietMs = await slowestBeside('elsewhere');
});

afterAll(async () => {
  strangers?.stop();
  await server?.stop({ deadlineMs: 8_000 });
  rmSync(root, { recursive: true, force: true });
});

/** Comes, is served, acknowledges and goes. @returns milliseconds from its connection to its first response */
async function visit(node: { readonly id: string }): Promise<number> {
  const client = new AdsTestClient(port);
  const stream = client.sotw();
  try {
    const refused = stream.ended.then(({ details }) => Promise.reject(new Error(details)));
    let responseNonce = '';
    const ms = await msWithoutQueueing([process.pid, server.pid], async () => {
      stream.send({ node, typeUrl: typeUrls.CDS });
      ({ nonce: responseNonce } = await Promise.race([stream.next(), refused]));
    });
    stream.send({ typeUrl: typeUrls.CDS, responseNonce });
    // What is asked after it is answered after it.
    stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
    await Promise.race([stream.next(), refused]);
    return ms;
  } catch {
    return Infinity;
  } finally {
    stream.cancel();
    client.close();
  }
}

async function slowestBeside(attack: AttackName): Promise<number> {
  await strangers.begin(attack, port);
  await sleep(leadMs[attack] ?? usualLeadMs);
  let slowest = 0;
  for (let i = 0; i < visits && slowest < Infinity; i++) {
    slowest = Math.max(slowest, await visit(sidecar));
    await sleep(betweenMs);
  }
  await strangers.end();
  return slowest;
}

test.each<[string, AttackName]>([
  ['come and go with new ids, and acknowledge', 'idStorm'],
  ['open streams, say nothing, and stay', 'heldStreams'],
  ['say that they are new nodes, and stay', 'heldNodes'],
  ['say that they are a node that is known', 'spoofing'],
])('a node that was served gets in beside strangers of its address that %s', async (_, attack) => {
  for (const id of [sidecar.id, attackedNode]) for (let i = 0; i < 2; i++) await visit({ ...sidecar, id });
  let slowestMs = Infinity;
  let limitMs = 3 * Math.max(floorMs, quietMs);
  for (let i = 0; i < tries && slowestMs >= limitMs; i++) {
    // A machine that was quiet then may have become busy.
    if (i > 0) limitMs = 3 * Math.max(floorMs, await slowestBeside('elsewhere'));
    slowestMs = await slowestBeside(attack);
  }
  expect(server.hopeless()).toBeUndefined();
  expect(slowestMs).toBeLessThan(limitMs);
});
