/** An ADS server over a scripted source, with clients that it ends. */

import { clusterType } from '../../../machines/discovery/ads-types.ts';
import { AdsTestClient } from '../../../test/ads-client.ts';
import { ScriptedSource } from '../../../test/simulation/scripted-source.ts';
import { silentLogger } from '../../runtime/log.ts';
import { type AdsServer, type AdsServerOptions, createAdsServer } from './ads-server.ts';

export const givenNode = { id: 'sidecar~10.0.0.1~a.b~b.svc' };

export interface GivenServer {
  readonly source: ScriptedSource;
  readonly server: AdsServer;
  readonly port: number;
  /** A client with a TCP connection of its own. */
  client(): AdsTestClient;
}

export type GiveServer = (options?: Partial<AdsServerOptions>) => Promise<GivenServer>;

/** A fixture: starts servers over sources with the cluster `a`; they, and their clients, end with the test. */
export async function giveServers(use: (give: GiveServer) => Promise<void>): Promise<void> {
  const endings: (() => void)[] = [];
  await use(async (options = {}) => {
    const source = new ScriptedSource();
    source.set(clusterType, 'a');
    const server = createAdsServer({ source, logger: silentLogger, ...options });
    const { port } = await server.listen('127.0.0.1:0');
    endings.push(() => server.close());
    const client = (): AdsTestClient => {
      const made = new AdsTestClient(port);
      endings.unshift(() => made.close());
      return made;
    };
    return { source, server, port, client };
  });
  for (const end of endings) end();
}

/** A stream that has its clusters, and acknowledges all. */
export async function subscribed(client: AdsTestClient) {
  const stream = client.sotw();
  stream.onResponse = ({ typeUrl, nonce: responseNonce }) => stream.send({ typeUrl, responseNonce });
  stream.send({ node: givenNode, typeUrl: clusterType });
  await stream.next();
  return stream;
}
