/** What a source over xDS may send and how long the control plane is patient with it. */
import type { Environment } from '../../environment.ts';
import type { ConfigLimits } from '../files/config-limits.ts';

export interface XdsSourceLimits {
  /** Bytes of one response (PILOT_XDS_SOURCE_MAX_MESSAGE_BYTES). */
  readonly maxMessageBytes: number;
  /** Objects of one source (PILOT_XDS_SOURCE_MAX_OBJECTS). */
  readonly maxObjects: number;
  /** Bytes of all objects of one source, as for files (PILOT_CONFIG_MAX_BYTES). */
  readonly maxBytes: number;
  /** Responses per second that are read, after five times as many at once (PILOT_XDS_SOURCE_MAX_RESPONSES). */
  readonly maxResponsesPerSecond: number;
  /** Until paused deletions apply, in milliseconds (PILOT_XDS_SOURCE_GRACE). */
  readonly pauseMs: number;
  /** Directory of the last state (PILOT_XDS_SOURCE_STATE_DIR); empty: none is saved. */
  readonly stateDirectory: string;
  /** File of a bearer token (PILOT_XDS_SOURCE_TOKEN_FILE); empty: none. */
  readonly tokenFile: string;
}

const mebibyte = 1024 * 1024;

/** Limits as the environment has them; files and sources may have as many bytes. */
export function xdsSourceLimitsOf(from: Environment, { maxBytes }: Pick<ConfigLimits, 'maxBytes'>): XdsSourceLimits {
  return {
    // A response has all objects of a kind: gRPC's default of 4 MiB is too small.
    maxMessageBytes: from.number('PILOT_XDS_SOURCE_MAX_MESSAGE_BYTES', 64 * mebibyte, 1),
    maxObjects: from.number('PILOT_XDS_SOURCE_MAX_OBJECTS', 100_000, 1),
    maxBytes,
    maxResponsesPerSecond: from.number('PILOT_XDS_SOURCE_MAX_RESPONSES', 20, 1),
    pauseMs: from.timerMs('PILOT_XDS_SOURCE_GRACE', 300_000),
    stateDirectory: from.text('PILOT_XDS_SOURCE_STATE_DIR', ''),
    tokenFile: from.text('PILOT_XDS_SOURCE_TOKEN_FILE', ''),
  };
}
