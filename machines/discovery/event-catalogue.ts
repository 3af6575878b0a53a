/** Events of pilot-discovery as a table, for tests and tools. The protocol files describe them. */
import type { CatalogueRow } from '../catalogue-row.ts';
import { authorityCatalogue } from './ca/authority-protocol.ts';
import { sharedAuthorityCatalogue } from './ca/shared-authority-protocol.ts';
import { signingRequestCatalogue } from './ca/signing-request.machine.ts';
import { xdsSourceCatalogue } from './config/xds-source-protocol.ts';
import { consulCatalogue } from './consul/consul-protocol.ts';
import { leaderCatalogue } from './election/leader-protocol.ts';
import { kubernetesCatalogue } from './kubernetes/kubernetes-protocol.ts';
import { nameServerCatalogue } from './names/name-server-protocol.ts';
import { registrationCatalogue } from './registration/registration-protocol.ts';
import { webhookServerCatalogue } from './webhooks/webhook-server-protocol.ts';
import { adsCatalogue } from './xds/ads-protocol.ts';
import { memoryReleaseCatalogue } from './xds/memory-release-protocol.ts';
import { streamAdmissionCatalogue } from './xds/stream-admission-protocol.ts';

type Diagram =
  | 'api-server'
  | 'remote-clusters'
  | 'consul'
  | 'consul-catalog'
  | 'informer'
  | 'elections'
  | 'leader'
  | 'elected-writer'
  | 'authority'
  | 'bootstrap'
  | 'bootstrap-detailed'
  | 'ads'
  | 'make-before-break'
  | 'settings'
  | 'configuration'
  | 'config-source'
  | 'config-sources'
  | 'gateway-name'
  | 'gateway-names'
  | 'jwks'
  | 'key-set'
  | 'registries'
  | 'registry'
  | 'registration'
  | 'registrations'
  | 'push'
  | 'push-queue'
  | 'distribution'
  | 'secret-access'
  | 'access-review'
  | 'server-certificate'
  | 'shared-authority'
  | 'signing-request'
  | 'stream-admission'
  | 'memory-release'
  | 'xds-source'
  | 'shutdown'
  | 'trust-bundle'
  | 'trust-bundles'
  | 'credential-dates'
  | 'name-server'
  | 'webhook-server';

/** The runtime records `spawn` and `timer …` rows, because the specification shows handlers and timers as messages. */
const ownCatalogue = [
  { type: 'spawn', from: 'discovery', to: 'mesh-config', diagram: 'bootstrap', seeds: ['13.1 #1'] },
  { type: 'spawn', from: 'discovery', to: 'mesh-networks', diagram: 'bootstrap', seeds: ['13.1 #2'] },
  {
    type: 'spawn',
    from: 'discovery',
    to: 'config-controller',
    diagram: 'bootstrap',
    seeds: ['6.8 #7', '13.1 #7', '13.2 #13', '13.2 #14', '13.2 #21'],
  },
  {
    type: 'spawn',
    from: 'discovery',
    to: 'service-registry',
    diagram: 'bootstrap',
    seeds: ['6.8 #5', '6.8 #6', '13.1 #5', '13.1 #6', '13.2 #22', '13.2 #23', '13.2 #24'],
  },
  { type: 'spawn', from: 'discovery', to: 'jwks', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'trust-bundles', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'credential-dates', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'authority', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'server-certificate', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'api-server-0', diagram: 'bootstrap-detailed', seeds: ['13.2 #1'] },
  { type: 'spawn', from: 'discovery', to: 'secret-access', diagram: 'secret-access', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'distribution', diagram: 'distribution', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'remote-clusters', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'consul', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'discovery/environment', diagram: 'bootstrap-detailed', seeds: [] },
  {
    type: 'spawn',
    from: 'discovery',
    to: 'discovery/config-sources',
    diagram: 'bootstrap-detailed',
    seeds: ['13.2 #9'],
  },
  { type: 'spawn', from: 'discovery', to: 'discovery/registries', diagram: 'bootstrap-detailed', seeds: ['13.2 #23'] },
  { type: 'spawn', from: 'discovery', to: 'discovery/server-certificates', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'discovery/authenticators', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'discovery/http', diagram: 'bootstrap-detailed', seeds: ['13.2 #26'] },
  { type: 'spawn', from: 'discovery', to: 'discovery/ads-server', diagram: 'bootstrap-detailed', seeds: ['13.2 #27'] },
  { type: 'spawn', from: 'discovery', to: 'push-queue', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'discovery', to: 'push', diagram: 'bootstrap', seeds: [] },
  { type: 'signal.received', from: 'discovery/signals', to: 'discovery', diagram: 'shutdown', seeds: [] },
  { type: 'settings.load', from: 'discovery', to: 'mesh-config', diagram: 'bootstrap-detailed', seeds: ['13.2 #2'] },
  { type: 'settings.load', from: 'discovery', to: 'mesh-networks', diagram: 'bootstrap-detailed', seeds: ['13.2 #6'] },
  {
    type: 'settings.loaded',
    from: 'mesh-config',
    to: 'discovery',
    diagram: 'bootstrap-detailed',
    seeds: ['13.2 #2', '13.2 #5'],
  },
  {
    type: 'settings.loaded',
    from: 'mesh-networks',
    to: 'discovery',
    diagram: 'bootstrap-detailed',
    seeds: ['13.2 #6'],
  },
  {
    type: 'files.changed',
    from: 'mesh-config/files',
    to: 'mesh-config',
    diagram: 'settings',
    seeds: ['13.1 #8', '13.2 #3'],
  },
  {
    type: 'files.changed',
    from: 'mesh-networks/files',
    to: 'mesh-networks',
    diagram: 'settings',
    seeds: ['13.1 #8', '13.2 #7'],
  },
  { type: 'settings.changed', from: 'mesh-config', to: 'discovery', diagram: 'settings', seeds: [] },
  { type: 'mesh.changed', from: 'mesh-config', to: 'config-controller', diagram: 'config-sources', seeds: [] },
  { type: 'mesh.changed', from: 'mesh-config', to: 'trust-bundles', diagram: 'trust-bundles', seeds: [] },
  { type: 'settings.changed', from: 'mesh-networks', to: 'discovery', diagram: 'settings', seeds: [] },
  { type: 'settings.rejected', from: 'mesh-config', to: 'discovery', diagram: 'settings', seeds: [] },
  { type: 'settings.rejected', from: 'mesh-networks', to: 'discovery', diagram: 'settings', seeds: [] },
  { type: 'timer debounceTime', from: 'mesh-config', to: 'mesh-config', diagram: 'settings', seeds: [] },
  { type: 'timer retryDelay', from: 'mesh-config', to: 'mesh-config', diagram: 'settings', seeds: [] },
  { type: 'timer debounceTime', from: 'mesh-networks', to: 'mesh-networks', diagram: 'settings', seeds: [] },
  { type: 'timer retryDelay', from: 'mesh-networks', to: 'mesh-networks', diagram: 'settings', seeds: [] },
  {
    type: 'http.open',
    from: 'discovery',
    to: 'discovery/http',
    diagram: 'bootstrap-detailed',
    seeds: ['13.2 #28', '13.2 #30'],
  },
  { type: 'http.listening', from: 'discovery/http', to: 'discovery', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'http.failed', from: 'discovery/http', to: 'discovery', diagram: 'shutdown', seeds: [] },
  { type: 'readiness.began', from: 'discovery', to: 'discovery/http', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'readiness.ended', from: 'discovery', to: 'discovery/http', diagram: 'shutdown', seeds: [] },
  { type: 'full-push.requested', from: 'discovery/http', to: 'discovery', diagram: 'push', seeds: [] },
  { type: 'http.close', from: 'discovery', to: 'discovery/http', diagram: 'shutdown', seeds: [] },
  { type: 'http.closed', from: 'discovery/http', to: 'discovery', diagram: 'shutdown', seeds: [] },
  {
    type: 'configs.load',
    from: 'discovery',
    to: 'config-controller',
    diagram: 'bootstrap-detailed',
    seeds: ['13.2 #9', '13.2 #15'],
  },
  { type: 'configs.synced', from: 'config-controller', to: 'discovery', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'configs.failed', from: 'config-controller', to: 'discovery', diagram: 'shutdown', seeds: [] },
  { type: 'configs.rejected', from: 'service-registry', to: 'discovery', diagram: 'configuration', seeds: [] },
  { type: 'config.recovered', from: 'service-registry', to: 'discovery', diagram: 'configuration', seeds: [] },
  { type: 'configs.rejected', from: 'config-controller', to: 'discovery', diagram: 'configuration', seeds: [] },
  { type: 'config.recovered', from: 'config-controller', to: 'discovery', diagram: 'configuration', seeds: [] },
  { type: 'configs.pending', from: 'config-controller', to: 'discovery', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'config-controller', to: 'config-controller/sources', diagram: 'config-sources', seeds: [] },
  {
    type: 'sources.list',
    from: 'config-controller',
    to: 'config-controller/sources',
    diagram: 'config-sources',
    seeds: [],
  },
  {
    type: 'sources.listed',
    from: 'config-controller/sources',
    to: 'config-controller',
    diagram: 'config-sources',
    seeds: [],
  },
  {
    type: 'sources.invalid',
    from: 'config-controller/sources',
    to: 'config-controller',
    diagram: 'config-sources',
    seeds: [],
  },
  { type: 'sources.pending', from: 'config-controller', to: 'discovery', diagram: 'config-sources', seeds: [] },
  { type: 'spawn', from: 'config-controller', to: 'config-source-N', diagram: 'config-source', seeds: [] },
  { type: 'spawn', from: 'config-source-N', to: 'config-source-N/watch', diagram: 'config-source', seeds: [] },
  { type: 'spawn', from: 'config-source-N', to: 'config-source-N/reading', diagram: 'config-source', seeds: [] },
  {
    type: 'source.changed',
    from: 'config-source-N/watch',
    to: 'config-source-N',
    diagram: 'config-source',
    seeds: ['13.2 #16'],
  },
  { type: 'timer coalescing', from: 'config-source-N', to: 'config-source-N', diagram: 'config-source', seeds: [] },
  { type: 'timer burstLimit', from: 'config-source-N', to: 'config-source-N', diagram: 'config-source', seeds: [] },
  { type: 'timer burstQuiet', from: 'config-source-N', to: 'config-source-N', diagram: 'config-source', seeds: [] },
  { type: 'timer quiet', from: 'config-source-N', to: 'config-source-N', diagram: 'config-source', seeds: [] },
  { type: 'timer retryDelay', from: 'config-source-N', to: 'config-source-N', diagram: 'config-source', seeds: [] },
  { type: 'source.read', from: 'config-source-N', to: 'config-controller', diagram: 'config-source', seeds: [] },
  { type: 'source.missing', from: 'config-source-N', to: 'config-controller', diagram: 'config-source', seeds: [] },
  { type: 'source.failed', from: 'config-source-N', to: 'config-controller', diagram: 'config-source', seeds: [] },
  { type: 'spawn', from: 'config-controller', to: 'config-controller/joining', diagram: 'configuration', seeds: [] },
  { type: 'timer retryDelay', from: 'config-controller', to: 'config-controller', diagram: 'configuration', seeds: [] },
  {
    type: 'configs.changed',
    from: 'config-controller',
    to: 'service-registry',
    diagram: 'configuration',
    seeds: ['13.1 #10', '13.2 #16', '13.2 #17'],
  },
  { type: 'configs.changed', from: 'config-controller', to: 'jwks', diagram: 'jwks', seeds: [] },
  { type: 'jwks.load', from: 'discovery', to: 'jwks', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'jwks.synced', from: 'jwks', to: 'discovery', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'jwks', to: 'jwks/sources', diagram: 'jwks', seeds: [] },
  { type: 'timer startPause', from: 'jwks', to: 'jwks', diagram: 'jwks', seeds: [] },
  { type: 'spawn', from: 'jwks', to: 'key-set-N', diagram: 'key-set', seeds: [] },
  { type: 'spawn', from: 'key-set-N', to: 'key-set-N/fetching', diagram: 'key-set', seeds: [] },
  { type: 'key-fetch.requested', from: 'key-set-N', to: 'jwks', diagram: 'key-set', seeds: [] },
  { type: 'key-fetch.granted', from: 'jwks', to: 'key-set-N', diagram: 'key-set', seeds: [] },
  { type: 'key-fetch.finished', from: 'key-set-N', to: 'jwks', diagram: 'key-set', seeds: [] },
  { type: 'key-set.fetched', from: 'key-set-N', to: 'jwks', diagram: 'key-set', seeds: [] },
  { type: 'key-set.failed', from: 'key-set-N', to: 'jwks', diagram: 'key-set', seeds: [] },
  { type: 'key-set.late', from: 'key-set-N', to: 'jwks', diagram: 'key-set', seeds: [] },
  { type: 'timer firstKeysTimeout', from: 'key-set-N', to: 'key-set-N', diagram: 'key-set', seeds: [] },
  { type: 'timer retryDelay', from: 'key-set-N', to: 'key-set-N', diagram: 'key-set', seeds: [] },
  { type: 'timer refreshInterval', from: 'key-set-N', to: 'key-set-N', diagram: 'key-set', seeds: [] },
  { type: 'timer backoffDelay', from: 'key-set-N', to: 'key-set-N', diagram: 'key-set', seeds: [] },
  { type: 'bundles.load', from: 'discovery', to: 'trust-bundles', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'spawn', from: 'trust-bundles', to: 'trust-bundles/endpoints', diagram: 'trust-bundles', seeds: [] },
  { type: 'spawn', from: 'trust-bundles', to: 'trust-bundle-N', diagram: 'trust-bundle', seeds: [] },
  { type: 'spawn', from: 'trust-bundle-N', to: 'trust-bundle-N/recalling', diagram: 'trust-bundle', seeds: [] },
  { type: 'spawn', from: 'trust-bundle-N', to: 'trust-bundle-N/fetching', diagram: 'trust-bundle', seeds: [] },
  { type: 'trust-bundle.fetched', from: 'trust-bundle-N', to: 'trust-bundles', diagram: 'trust-bundle', seeds: [] },
  { type: 'trust-bundle.failed', from: 'trust-bundle-N', to: 'trust-bundles', diagram: 'trust-bundle', seeds: [] },
  {
    type: 'timer refreshInterval',
    from: 'trust-bundle-N',
    to: 'trust-bundle-N',
    diagram: 'trust-bundle',
    seeds: [],
  },
  { type: 'timer retryDelay', from: 'trust-bundle-N', to: 'trust-bundle-N', diagram: 'trust-bundle', seeds: [] },
  { type: 'spawn', from: 'distribution', to: 'distribution/facts', diagram: 'distribution', seeds: [] },
  { type: 'distribution.changed', from: 'distribution/facts', to: 'distribution', diagram: 'distribution', seeds: [] },
  { type: 'timer debounceTime', from: 'distribution', to: 'distribution', diagram: 'distribution', seeds: [] },
  { type: 'spawn', from: 'distribution', to: 'distribution/computing', diagram: 'distribution', seeds: [] },
  { type: 'timer recheckDelay', from: 'distribution', to: 'distribution', diagram: 'distribution', seeds: [] },
  { type: 'spawn', from: 'secret-access', to: 'secret-access/accounts', diagram: 'secret-access', seeds: [] },
  { type: 'accounts.listed', from: 'secret-access/accounts', to: 'secret-access', diagram: 'secret-access', seeds: [] },
  { type: 'spawn', from: 'secret-access', to: 'access-review-N', diagram: 'access-review', seeds: [] },
  { type: 'spawn', from: 'access-review-N', to: 'access-review-N/reviewing', diagram: 'access-review', seeds: [] },
  { type: 'access.reviewed', from: 'access-review-N', to: 'secret-access', diagram: 'access-review', seeds: [] },
  { type: 'access.unavailable', from: 'access-review-N', to: 'secret-access', diagram: 'access-review', seeds: [] },
  {
    type: 'timer refreshInterval',
    from: 'access-review-N',
    to: 'access-review-N',
    diagram: 'access-review',
    seeds: [],
  },
  { type: 'timer retryDelay', from: 'access-review-N', to: 'access-review-N', diagram: 'access-review', seeds: [] },
  {
    type: 'services.load',
    from: 'discovery',
    to: 'service-registry',
    diagram: 'bootstrap-detailed',
    seeds: ['13.2 #25'],
  },
  {
    type: 'registries.listed',
    from: 'service-registry/registries',
    to: 'service-registry',
    diagram: 'registries',
    seeds: [],
  },
  {
    type: 'registry.changed',
    from: 'service-registry/registries',
    to: 'service-registry',
    diagram: 'registries',
    seeds: [],
  },
  {
    type: 'gateways.resolved',
    from: 'service-registry/registries',
    to: 'service-registry',
    diagram: 'registries',
    seeds: [],
  },
  {
    type: 'gateway-names.listed',
    from: 'gateway-names/names',
    to: 'gateway-names',
    diagram: 'gateway-names',
    seeds: [],
  },
  { type: 'spawn', from: 'gateway-names', to: 'gateway-name-N', diagram: 'gateway-name', seeds: [] },
  { type: 'spawn', from: 'gateway-name-N', to: 'gateway-name-N/resolving', diagram: 'gateway-name', seeds: [] },
  { type: 'gateway-name.resolved', from: 'gateway-name-N', to: 'gateway-names', diagram: 'gateway-name', seeds: [] },
  { type: 'gateway-name.failed', from: 'gateway-name-N', to: 'gateway-names', diagram: 'gateway-name', seeds: [] },
  { type: 'timer resolveLimit', from: 'gateway-name-N', to: 'gateway-name-N', diagram: 'gateway-name', seeds: [] },
  { type: 'timer refreshInterval', from: 'gateway-name-N', to: 'gateway-name-N', diagram: 'gateway-name', seeds: [] },
  { type: 'timer retryDelay', from: 'gateway-name-N', to: 'gateway-name-N', diagram: 'gateway-name', seeds: [] },
  { type: 'spawn', from: 'service-registry', to: 'registry-N', diagram: 'registry', seeds: [] },
  { type: 'spawn', from: 'registry-N', to: 'registry-N/feed', diagram: 'registry', seeds: [] },
  { type: 'registry.synced', from: 'registry-N/feed', to: 'registry-N', diagram: 'registry', seeds: [] },
  { type: 'registry.changed', from: 'registry-N/feed', to: 'registry-N', diagram: 'registry', seeds: [] },
  { type: 'registry.failed', from: 'registry-N/feed', to: 'registry-N', diagram: 'registry', seeds: [] },
  { type: 'registry.synced', from: 'registry-N', to: 'service-registry', diagram: 'registry', seeds: [] },
  { type: 'registry.changed', from: 'registry-N', to: 'service-registry', diagram: 'registry', seeds: [] },
  { type: 'registry.failed', from: 'registry-N', to: 'service-registry', diagram: 'registry', seeds: [] },
  { type: 'timer retryDelay', from: 'registry-N', to: 'registry-N', diagram: 'registry', seeds: [] },
  { type: 'registry.failed', from: 'service-registry', to: 'discovery', diagram: 'registries', seeds: [] },
  { type: 'services.pending', from: 'service-registry', to: 'discovery', diagram: 'bootstrap-detailed', seeds: [] },
  {
    type: 'timer firstListsLimit',
    from: 'service-registry',
    to: 'service-registry',
    diagram: 'bootstrap-detailed',
    seeds: [],
  },
  { type: 'spawn', from: 'service-registry', to: 'service-registry/computing', diagram: 'configuration', seeds: [] },
  { type: 'timer retryDelay', from: 'service-registry', to: 'service-registry', diagram: 'configuration', seeds: [] },
  { type: 'services.synced', from: 'service-registry', to: 'discovery', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'services.failed', from: 'service-registry', to: 'discovery', diagram: 'configuration', seeds: [] },
  { type: 'push.start', from: 'discovery', to: 'push', diagram: 'bootstrap-detailed', seeds: [] },
  {
    type: 'push.request',
    from: 'mesh-config',
    to: 'push',
    diagram: 'push',
    seeds: ['6.8 #9', '13.1 #9', '13.2 #3'],
  },
  {
    type: 'push.request',
    from: 'mesh-networks',
    to: 'push',
    diagram: 'push',
    seeds: ['6.8 #9', '13.1 #9', '13.2 #7'],
  },
  { type: 'push.request', from: 'config-controller', to: 'push', diagram: 'push', seeds: ['6.8 #8', '13.1 #11'] },
  {
    type: 'push.request',
    from: 'service-registry',
    to: 'push',
    diagram: 'push',
    seeds: ['6.8 #8', '6.8 #10', '13.1 #11'],
  },
  { type: 'push.request', from: 'jwks', to: 'push', diagram: 'push', seeds: [] },
  { type: 'push.request', from: 'secret-access', to: 'push', diagram: 'push', seeds: [] },
  { type: 'push.request', from: 'credential-dates', to: 'push', diagram: 'push', seeds: [] },
  {
    type: 'spawn',
    from: 'credential-dates',
    to: 'credential-dates/comparing',
    diagram: 'credential-dates',
    seeds: [],
  },
  {
    type: 'timer checkDelay',
    from: 'credential-dates',
    to: 'credential-dates',
    diagram: 'credential-dates',
    seeds: [],
  },
  { type: 'push.request', from: 'discovery', to: 'push', diagram: 'push', seeds: [] },
  { type: 'timer quietTime', from: 'push', to: 'push', diagram: 'push', seeds: ['6.8 #11'] },
  { type: 'timer maxDelay', from: 'push', to: 'push', diagram: 'push', seeds: ['6.8 #11'] },
  { type: 'timer sharedDelay', from: 'push', to: 'push', diagram: 'push', seeds: [] },
  { type: 'timer servingTime', from: 'push', to: 'push', diagram: 'push', seeds: [] },
  { type: 'timer retryDelay', from: 'push', to: 'push', diagram: 'push', seeds: [] },
  { type: 'spawn', from: 'push', to: 'push/context', diagram: 'push', seeds: ['6.8 #12', '6.8 #13'] },
  { type: 'spawn', from: 'push', to: 'push/endpoints', diagram: 'push', seeds: ['6.8 #17', '6.8 #18'] },
  { type: 'clients.push', from: 'push', to: 'push-queue', diagram: 'push', seeds: ['6.8 #14', '6.8 #17'] },
  { type: 'clients.served', from: 'push-queue', to: 'push', diagram: 'push', seeds: [] },
  { type: 'proxy.connected', from: 'discovery/ads-server', to: 'push-queue', diagram: 'push-queue', seeds: [] },
  { type: 'proxy.disconnected', from: 'discovery/ads-server', to: 'push-queue', diagram: 'push-queue', seeds: [] },
  { type: 'proxies.serve', from: 'push-queue', to: 'discovery/ads-server', diagram: 'push-queue', seeds: ['6.8 #20'] },
  { type: 'proxies.served', from: 'discovery/ads-server', to: 'push-queue', diagram: 'push-queue', seeds: [] },
  { type: 'context.built', from: 'push', to: 'discovery', diagram: 'push', seeds: [] },
  { type: 'context.failed', from: 'push', to: 'discovery', diagram: 'push', seeds: [] },
  {
    type: 'ads.listen',
    from: 'discovery',
    to: 'discovery/ads-server',
    diagram: 'bootstrap-detailed',
    seeds: ['13.2 #28', '13.2 #29'],
  },
  { type: 'ads.listening', from: 'discovery/ads-server', to: 'discovery', diagram: 'bootstrap-detailed', seeds: [] },
  { type: 'ads.failed', from: 'discovery/ads-server', to: 'discovery', diagram: 'shutdown', seeds: [] },
  { type: 'queue.drain', from: 'discovery', to: 'push-queue', diagram: 'shutdown', seeds: [] },
  { type: 'ads.drain', from: 'discovery', to: 'discovery/ads-server', diagram: 'shutdown', seeds: [] },
  { type: 'ads.drained', from: 'discovery/ads-server', to: 'discovery', diagram: 'shutdown', seeds: [] },
  { type: 'timer shutdownDuration', from: 'discovery', to: 'discovery', diagram: 'shutdown', seeds: [] },
] as const satisfies readonly CatalogueRow<Diagram>[];

export const eventCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...ownCatalogue,
  ...adsCatalogue,
  ...streamAdmissionCatalogue,
  ...memoryReleaseCatalogue,
  ...authorityCatalogue,
  ...sharedAuthorityCatalogue,
  ...signingRequestCatalogue,
  ...xdsSourceCatalogue,
  ...kubernetesCatalogue,
  ...registrationCatalogue,
  ...leaderCatalogue,
  ...consulCatalogue,
  ...nameServerCatalogue,
  ...webhookServerCatalogue,
];
