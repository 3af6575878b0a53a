import { peersOf } from '../peers.ts';
import type { ConfigChanged, ConfigRejected, ServingReport } from './protocol.ts';

/** Who in the agent is spoken to by name. */
export const peer = peersOf<{
  supervisor: ConfigChanged | ConfigRejected;
  status: ServingReport;
}>();
