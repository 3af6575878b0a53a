/** A client that is rejected while it is served receives the reason after earlier responses. */
import { status } from '@grpc/grpc-js';
import { expect, it, onTestFinished } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { AdsTestClient, typeUrls } from '../../../../test/ads-client.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import { createAdsServer } from '../ads-server.ts';
import type { StreamRejection } from '../resource-source.ts';

const node = { id: 'sidecar~10.0.0.1~a.b~b.svc' };
const rejection: StreamRejection = { code: 'FAILED_PRECONDITION', reason: 'no such group' };

/** Opens a stream, and returns a function that rejects its node. */
async function openRejectableStream() {
  const source = new ScriptedSource();
  source.set(clusterType, 'a');
  let refuse: (why: StreamRejection) => void = () => {};
  const server = createAdsServer({
    source: {
      openNode: (openedNode, onRejected) => {
        refuse = (reason) => onRejected?.(reason);
        return source.openNode(openedNode);
      },
    },
    logger: silentLogger,
  });
  const { port } = await server.listen('127.0.0.1:0');
  const client = new AdsTestClient(port);
  onTestFinished(() => {
    client.close();
    server.close();
  });
  return { stream: client.sotw(), refuse: () => refuse(rejection), source };
}

it.each(['before an ACK', 'after an ACK'])(
  'a stream that is rejected after its first response (%s) ends with the reason',
  async (rejectionTime) => {
    const { stream, refuse, source } = await openRejectableStream();
    stream.send({ node, typeUrl: typeUrls.CDS });
    const { nonce, versionInfo } = await stream.next();
    if (rejectionTime === 'after an ACK') stream.send({ typeUrl: typeUrls.CDS, responseNonce: nonce, versionInfo });
    refuse();
    expect(await stream.ended).toMatchObject({ code: status.FAILED_PRECONDITION, details: rejection.reason });
    expect(source.nodes).toEqual([]);
  },
);
