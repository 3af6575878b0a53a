import type { LogEntry } from '../../runtime/log-events/log-events.ts';
import type { Environment } from '../environment.ts';
import { addressPaceLimits } from '../xds/admission/address-pace.ts';
import { unidentifiedLimits } from '../xds/admission/unidentified-connections.ts';
import { type AdsLimits, defaultMaxNames } from '../xds/ads-limits.ts';
import { maxServedStreamsForHeap } from '../xds/stream/stream-shares.ts';

/** Limits are at least 1, because 0 would reject every client. */
export function clientLimitsOf(
  environment: Environment,
  openFiles: number,
  writeEntry: (entry: LogEntry) => void,
): Pick<AdsLimits, 'maxNames' | 'maxServedStreams' | 'unidentified' | 'addressPace'> {
  const { maxPerAddress, maxIdlePerAddress } = unidentifiedLimits;
  const requestedConnections = environment.number('PILOT_XDS_MAX_CONNECTIONS', unidentifiedLimits.maxConnections, 1);
  const maxConnections = Math.min(requestedConnections, connectionsWithin(openFiles));
  if (maxConnections < requestedConnections) {
    writeEntry({
      event: 'option.connectionsLimited',
      connections: maxConnections,
      wanted: requestedConnections,
      openFiles,
    });
  }
  const perSecond = environment.number('PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS', addressPaceLimits.perSecond, 1);
  return {
    maxServedStreams: environment.number('PILOT_XDS_MAX_STREAMS', maxServedStreamsForHeap(), 1),
    maxNames: environment.number('PILOT_XDS_MAX_NAMES_PER_STREAM', defaultMaxNames, 1),
    unidentified: {
      maxConnections,
      // Half of the connections are reserved for clients that send requests.
      maxIdleConnections: Math.min(unidentifiedLimits.maxIdleConnections, Math.ceil(maxConnections / 2)),
      maxPerAddress: environment.number('PILOT_XDS_MAX_CONNECTIONS_PER_ADDRESS', maxPerAddress, 1),
      maxIdlePerAddress: environment.number('PILOT_XDS_MAX_UNIDENTIFIED_PER_ADDRESS', maxIdlePerAddress, 1),
    },
    addressPace: { perSecond, burst: perSecond * burstSeconds },
  };
}

/** The allowance of an address is refilled in this time. */
const burstSeconds = addressPaceLimits.burst / addressPaceLimits.perSecond;

/** Reserved for configuration, probes, debug pages and sources. */
const otherFiles = 1_024;

/** Without free file descriptors, the process does not respond to probes and would be restarted. */
function connectionsWithin(openFiles: number): number {
  return Math.max(1, openFiles - reservedFiles(openFiles));
}

export function reservedFiles(openFiles: number): number {
  return Math.min(otherFiles, Math.ceil(openFiles / 2));
}
