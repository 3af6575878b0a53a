import { peersOf } from '../peers.ts';
import type { ConfigChanged, ConfigRejected, ServingReport } from './protocol.ts';
import type { TrustBundleReceived, TrustBundleServed } from './secrets-protocol.ts';

/** The actors of the agent that are spoken to by name. */
export const peer = peersOf<{
  supervisor: ConfigChanged | ConfigRejected;
  status: ServingReport;
  secrets: TrustBundleReceived;
  'xds-proxy': TrustBundleServed;
}>();
