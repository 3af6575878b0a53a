/** A target of public xDS conformance harnesses. */

import type { Logger } from '../../runtime/output/log.ts';
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { ConnectionView } from '../xds/ads-observer.ts';
import { createAdsServer } from '../xds/ads-server.ts';
import { bindError } from '../xds/grpc-bind.ts';
import { createConformanceAdapter, listenInsecurely } from './conformance-adapter.ts';
import { ConformanceCache } from './conformance-cache.ts';

export interface ConformanceTargetOptions {
  readonly host: string;
  /** 0 selects any free port. */
  readonly port: number;
  readonly adapterPort: number;
  readonly logger: Logger;
  readonly recorder?: Recorder;
}

export interface ConformanceTarget {
  readonly port: number;
  readonly adapterPort: number;
  connections(): readonly ConnectionView[];
  close(): void;
}

/** @throws ChartpilotError PORT_IN_USE or LISTEN_FAILED. Neither port is open then. */
export async function startConformanceTarget(options: ConformanceTargetOptions): Promise<ConformanceTarget> {
  const { host, logger, recorder } = options;
  const cache = new ConformanceCache((change) => xds.push(change));
  // A harness counts responses, so a changed cluster must not resend its endpoints. Its client sometimes acknowledges the wrong type on a stream.
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
