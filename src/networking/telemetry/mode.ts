/** Which side of a connection a rule of telemetry is for (spec/discovery.md §8.11). */
import type { TelemetryMode } from '../../model/kinds/extensions/telemetry.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';

export type Side = 'CLIENT' | 'SERVER';

/** A gateway is a client of the mesh, whoever its own clients are. */
export function sideOf(direction: ConnectionContext['direction']): Side {
  return direction === 'inbound' ? 'SERVER' : 'CLIENT';
}

export function isFor(match: { readonly mode?: TelemetryMode } | undefined, side: Side): boolean {
  const mode = match?.mode ?? 'CLIENT_AND_SERVER';
  return mode === 'CLIENT_AND_SERVER' || mode === side;
}
