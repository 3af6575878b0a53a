/** Target of public xDS conformance harnesses: an xDS port with a cache, and the adapter that fills it. */

import type { Logger } from '../../runtime/output/log.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { ConnectionView } from '../xds/ads-observer.ts';
import { createAdsServer } from '../xds/ads-server.ts';
import { bindError } from '../xds/grpc-bind.ts';
import { createConformanceAdapter, listenInsecurely } from './conformance-adapter.ts';
import { ConformanceCache } from './conformance-cache.ts';

export interface ConformanceTargetOptions {
  readonly host: string;
  /** xDS port; 0 for any free port. */
  readonly port: number;
  /** Adapter's port; 0 for any free port. */
  readonly adapterPort: number;
  readonly logger: Logger;
  readonly recorder?: Recorder;
}

export interface ConformanceTarget {
  readonly port: number;
  readonly adapterPort: number;
  /** Subscriptions of each client, from the requests read so far. */
  connections(): readonly ConnectionView[];
  /** Closes both servers and their connections. */
  close(): void;
}

/**
 * Opens both ports; resolves when both accept connections.
 *
 * @throws ChartpilotError PORT_IN_USE or LISTEN_FAILED; then neither is open
 */
export async function startConformanceTarget(options: ConformanceTargetOptions): Promise<ConformanceTarget> {
  const { host, logger, recorder } = options;
  const cache = new ConformanceCache((change) => xds.push(change));
  // A harness counts responses, so a cluster's change must not resend its endpoints. Its client, with two types on one stream, may
  // acknowledge the wrong one; changes must nevertheless arrive within 3 s.
  const xds = createAdsServer({
    source: cache,
    logger,
    resendsEndpoints: false,
    acceptsLateNames: false,
    limits: { ackTimeoutMs: 500 },
    ...(recorder !== undefined && { recorder }),
  });
  const adapter = createConformanceAdapter(cache);
  const close = (): void => {
    adapter.forceShutdown();
    xds.close();
  };
  try {
    const { port } = await xds.listen(`${host}:${options.port}`);
    const address = `${host}:${options.adapterPort}`;
    const adapterPort = await listenInsecurely(adapter, address).catch((error: Error) => {
      throw bindError(address, error);
    });
    return { port, adapterPort, connections: () => xds.connections(), close };
  } catch (error) {
    close();
    throw error;
  }
}
