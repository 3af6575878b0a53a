/** Texts for chart states in the log. */
import type { OperatorStates } from '../../runtime/actors/log-records.ts';

export const discoveryStates: OperatorStates = {
  words: {
    discovery: {
      'preparing environment': 'starting',
      'active.operating': 'starting',
      'active.operating.syncing configuration': 'syncing',
      'active.operating.syncing registries': 'syncing',
      'active.operating.fetching issuer keys': 'syncing',
      'active.operating.building first push context': 'syncing',
      'active.operating.announcing replica': 'syncing',
      'active.operating.opening secure xDS port': 'syncing',
      'active.operating.opening xDS port': 'syncing',
      'active.operating.serving': 'serving',
      'active.draining': 'draining',
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
    'replica.announced': 'replica announced',
    'elections.resigned': 'Leases released',
    'services.failed': 'services not built',
    'signal.received': '{signal}',
  },
  alarming: [],
};
