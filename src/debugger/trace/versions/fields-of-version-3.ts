/** Names of fields and child actors that version 4 of the trace format changed, old to new. */
import type { RenameMap } from './renamed.ts';

/** Fields of payloads, at any depth, by the current type of the event. */
export const renamedPayloadFields: Readonly<Record<string, RenameMap>> = {
  'child.abort': { why: 'reason' },
  'epoch.retire': { doomed: 'isOrphaned' },
  'jwks.synced': { unanswered: 'unresponsive' },
  'listeners.checked': { why: 'reason' },
  'patches.completed': { answer: 'result' },
  'probe.run': { asItIs: 'acceptsMissingListeners' },
  'process.exited': { lastWords: 'lastOutput' },
  'request.classified': { verdict: 'requestClass' },
  'response.skipped': { why: 'reason' },
  'responses.scheduled': { asked: 'requested' },
  'responses.send': { asked: 'requested' },
  'server.reachable': { anew: 'afterLongOutage' },
  'settings.changed': { what: 'name' },
  'settings.loaded': { what: 'name' },
  'settings.rejected': { what: 'name' },
  'shared-authority.read': { before: 'previousSigners', fits: 'isCompatible' },
  'upstream.opened': { shown: 'credential' },
  'watch.changed': { asked: 'requested' },
  'watch.failed': { seen: 'knownHash' },
};

/** Fields of the context of a machine, of its input and output, and of the inputs of its effects, at any depth. */
export const renamedContextFields: Readonly<Record<string, RenameMap>> = {
  'ads-connection': { asked: 'requested' },
  'bootstrap-patches': { shows: 'credential' },
  'cert-watcher': { filesInForce: 'activeFiles', notJudged: 'notValidated' },
  'config-controller': { listed: 'isConfigured' },
  'config-source': { everywhere: 'isFullRead' },
  'directory-watch': { seen: 'knownHash' },
  'elected-writer': { anew: 'includesAll' },
  epoch: { asked: 'isProbeRequested', doomed: 'isOrphaned' },
  leader: { answerMs: 'requestLimitMs' },
  'mesh-config': { what: 'name' },
  push: {
    gathered: 'pendingRequests',
    unbuilt: 'failedRequests',
    underWay: 'buildingRequests',
    urgent: 'pendingEndpoints',
    urgentUnderWay: 'buildingEndpoints',
  },
  'push-queue': { line: 'queue' },
  restart: { beside: 'isBesideServing', needsNobody: 'hasNoParent' },
  secret: { shown: 'credential' },
  secrets: {
    bundleTaken: 'reportedBundle',
    certificateTold: 'reportedCertificate',
    heldBack: 'deferredCertificate',
    isWanted: 'isSubscribed',
    wasWanted: 'wasSubscribed',
  },
  'shared-authority': { before: 'previousSigners' },
  status: { question: 'pendingRequest', why: 'reason' },
  supervisor: { calledOff: 'cancelledStarts', setback: 'lastFailure' },
  'workload-health': { told: 'reportedHealth' },
  'xds-proxy': { shows: 'credential' },
  'xds-stream': { shows: 'credential' },
};

/** Children of a machine: segments of the names of actors. */
export const renamedChildren: Readonly<Record<string, RenameMap>> = {
  'access-review': { asking: 'reviewing' },
  'bootstrap-patches': { ask: 'request' },
  distribution: { looking: 'computing' },
  'gateway-names': { wanted: 'names' },
  secrets: { look: 'probe' },
};
