import type { TelemetryMode } from '../../model/kinds/extensions/telemetry.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';

export type TelemetrySide = 'CLIENT' | 'SERVER';

/** Treats a gateway as a client in the mesh. */
export function sideOf(direction: ConnectionContext['direction']): TelemetrySide {
  return direction === 'inbound' ? 'SERVER' : 'CLIENT';
}

export function appliesToSide(match: { readonly mode?: TelemetryMode } | undefined, side: TelemetrySide): boolean {
  const mode = match?.mode ?? 'CLIENT_AND_SERVER';
  return mode === 'CLIENT_AND_SERVER' || mode === side;
}
