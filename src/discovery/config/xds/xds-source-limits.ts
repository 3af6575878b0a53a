import type { Environment } from '../../environment.ts';
import type { ConfigLimits } from '../files/config-limits.ts';

export interface XdsSourceLimits {
  readonly maxMessageBytes: number;
  readonly maxObjects: number;
  /** PILOT_CONFIG_MAX_BYTES, as for files. */
  readonly maxBytes: number;
  /** PILOT_XDS_SOURCE_MAX_RESPONSES, after a burst of five times as many. */
  readonly maxResponsesPerSecond: number;
  /** PILOT_XDS_SOURCE_GRACE */
  readonly pauseMs: number;
  /** PILOT_XDS_SOURCE_STATE_DIR. If empty, no state is saved. */
  readonly stateDirectory: string;
  /** Bearer token (PILOT_XDS_SOURCE_TOKEN_FILE). If empty, no token is sent. */
  readonly tokenFile: string;
}

const mebibyte = 1024 * 1024;

export function xdsSourceLimitsOf(
  environment: Environment,
  { maxBytes }: Pick<ConfigLimits, 'maxBytes'>,
): XdsSourceLimits {
  return {
    // gRPC's default of 4 MiB is too small, because a response contains all objects of a kind.
    maxMessageBytes: environment.number('PILOT_XDS_SOURCE_MAX_MESSAGE_BYTES', 64 * mebibyte, 1),
    maxObjects: environment.number('PILOT_XDS_SOURCE_MAX_OBJECTS', 100_000, 1),
    maxBytes,
    maxResponsesPerSecond: environment.number('PILOT_XDS_SOURCE_MAX_RESPONSES', 20, 1),
    pauseMs: environment.timerMs('PILOT_XDS_SOURCE_GRACE', 300_000),
    stateDirectory: environment.text('PILOT_XDS_SOURCE_STATE_DIR', ''),
    tokenFile: environment.text('PILOT_XDS_SOURCE_TOKEN_FILE', ''),
  };
}
