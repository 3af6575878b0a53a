/** States of the control plane's charts in the words of an operator, for the log. */
import type { OperatorStates } from '../../runtime/actors/log-records.ts';

export const discoveryStates: OperatorStates = {
  words: {
    discovery: {
      'preparing environment': 'starting',
      'at work.operating': 'starting',
      'at work.operating.syncing configuration': 'syncing',
      'at work.operating.syncing registries': 'syncing',
      'at work.operating.fetching keys of issuers': 'syncing',
      'at work.operating.building first push context': 'syncing',
      'at work.operating.opening secure xDS port': 'syncing',
      'at work.operating.opening xDS port': 'syncing',
      'at work.operating.serving': 'serving',
      'at work.draining': 'draining',
      stopped: 'stopped',
    },
  },
  causes: {
    'ads.drained': 'streams closed',
    'ads.listening': 'xDS ports are open',
    'http.closed': 'HTTP server closed',
    'leaders.resigned': 'Leases released',
    'signal.received': '{signal}',
  },
  alarming: [],
};
