/** Operator-facing names of chart states, for the log. */
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
      'at work.operating.announcing replica': 'syncing',
      'at work.operating.opening secure xDS port': 'syncing',
      'at work.operating.opening xDS port': 'syncing',
      'at work.operating.serving': 'serving',
      'at work.draining': 'draining',
      stopped: 'stopped',
    },
  },
  causes: {
    'after shutdownDuration': 'shutdown deadline passed',
    'authenticators done': 'authenticators are ready',
    'config-sources done': 'configuration sources are ready',
    'environment done': 'environment checked',
    'registries done': 'registries are ready',
    'server-certificates done': 'server certificates are ready',
    'ads.drained': 'streams closed',
    'ads.failed': 'xDS server failed',
    'ads.listening': 'xDS ports are open',
    'authority.failed': 'certificate authority failed',
    'configs.failed': 'configuration not available',
    'context.failed': 'push context not built',
    'http.closed': 'HTTP server closed',
    'http.failed': 'HTTP server failed',
    'leaders.announced': 'replica announced',
    'leaders.resigned': 'Leases released',
    'services.failed': 'services not built',
    'signal.received': '{signal}',
  },
  alarming: [],
};
