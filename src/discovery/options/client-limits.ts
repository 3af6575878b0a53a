/** What one client, one address and all of them may use of the xDS server. */
import type { LogEntry } from '../../runtime/log-events/log-events.ts';
import type { Environment } from '../environment.ts';
import { addressPaceLimits } from '../xds/admission/address-pace.ts';
import { unidentifiedLimits } from '../xds/admission/unidentified-connections.ts';
import { type AdsLimits, defaultMaxNames } from '../xds/ads-limits.ts';
import { maxServedStreamsWithin } from '../xds/stream/stream-shares.ts';

/** A limit of none would be a server that serves nobody. */
export function clientLimitsOf(
  from: Environment,
  openFiles: number,
  note: (entry: LogEntry) => void,
): Pick<AdsLimits, 'maxNames' | 'maxServedStreams' | 'unidentified' | 'addressPace'> {
  const { maxPerAddress, maxIdlePerAddress } = unidentifiedLimits;
  const wanted = from.number('PILOT_XDS_MAX_CONNECTIONS', unidentifiedLimits.maxInWhole, 1);
  const maxInWhole = Math.min(wanted, connectionsWithin(openFiles));
  if (maxInWhole < wanted) {
    note({ event: 'option.connectionsLimited', connections: maxInWhole, wanted, openFiles });
  }
  const perSecond = from.number('PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS', addressPaceLimits.perSecond, 1);
  return {
    maxServedStreams: from.number('PILOT_XDS_MAX_STREAMS', maxServedStreamsWithin(), 1),
    maxNames: from.number('PILOT_XDS_MAX_NAMES_PER_STREAM', defaultMaxNames, 1),
    unidentified: {
      maxInWhole,
      // Silent connections leave room for those that speak.
      maxIdleInWhole: Math.min(unidentifiedLimits.maxIdleInWhole, Math.ceil(maxInWhole / 2)),
      maxPerAddress: from.number('PILOT_XDS_MAX_CONNECTIONS_PER_ADDRESS', maxPerAddress, 1),
      maxIdlePerAddress: from.number('PILOT_XDS_MAX_UNIDENTIFIED_PER_ADDRESS', maxIdlePerAddress, 1),
    },
    addressPace: { perSecond, burst: perSecond * secondsAtOnce },
  };
}

/** What an address may use up at once, in seconds of what comes back to it. */
const secondsAtOnce = addressPaceLimits.burst / addressPaceLimits.perSecond;

/** Files that are left for what else there is: configuration that is read, probes and debug pages, sources. */
const otherFiles = 1_024;

/** A process that has no file left to open answers no probe either, and is taken for dead. */
function connectionsWithin(openFiles: number): number {
  return Math.max(1, openFiles - filesBeside(openFiles));
}

/** Open files that xDS leaves to everything else. */
export function filesBeside(openFiles: number): number {
  return Math.min(otherFiles, Math.ceil(openFiles / 2));
}
