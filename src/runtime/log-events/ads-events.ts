import { type LogEventTable, noAction } from './log-event.ts';

export const adsEvents = {
  'client.connected': {
    level: 'info',
    message: 'client connected',
    meaning: 'A proxy opened an xDS stream and is known by its node.',
    action: noAction,
  },
  'client.disconnected': {
    level: 'info',
    message: 'client disconnected',
    meaning: 'The xDS stream of a proxy ended.',
    action: noAction,
  },
  'admission.queued': {
    level: 'info',
    message: 'clients wait to connect, admission is limited by load',
    meaning:
      'Many proxies connect at the same time, for example after a restart of a replica. Connections and streams are admitted one after the other, so that pushes to served proxies are not delayed.',
    action: 'None. `pilot_xds_waiting_clients` shows the progress; `admission.completed` reports the end.',
  },
  'admission.completed': {
    level: 'info',
    message: 'all waiting clients were admitted',
    meaning: 'Clients waited for `seconds`, and `streams` were admitted in this time.',
    action: 'Add replicas or processors if it takes too long.',
  },
  'admission.streamsRefused': {
    level: 'warn',
    message: 'streams rejected, too many wait to be admitted',
    meaning:
      'Streams waited for 60 s without a free slot, or for 1 s because of `PILOT_MAX_REQUESTS_PER_SECOND`, or too many of one address waited. Their clients retry.',
    action:
      'Raise or remove `PILOT_MAX_REQUESTS_PER_SECOND` if it is set; else add replicas or processors. See `pilot_xds_refused_streams_total`.',
  },
  'admission.failed': {
    level: 'error',
    message: 'admission by load failed, new streams are no longer limited by load',
    meaning: 'A bug: the actor that decides how many clients may connect at a time has stopped.',
    action: 'Report the `error`; restart the control plane.',
  },
  'peer.unauthenticated': {
    level: 'warn',
    message: 'client authentication failed',
    meaning: 'A client has neither a valid certificate nor a valid token.',
    action: 'See `reason`; find the client by `peer`.',
  },
  'token.notYetValid': {
    level: 'warn',
    message: 'token not valid yet, clocks of the hosts differ',
    meaning:
      'The signature of a token is valid, and its start (`nbf`) is `aheadSeconds` in the future, more than the leeway. All clients of `issuer` may be rejected until then. At most one line a minute for each `authenticator`; `repeated` counts those in between.',
    action:
      'Check the clocks of this host and of the issuer (NTP). If this clock was set back, set it right. If the issuer was ahead, issue new tokens.',
  },
  'node.refused': {
    level: 'warn',
    message: 'client rejected, invalid node',
    meaning: 'The node of the first request is missing or malformed.',
    action: "See `reason`; check the client's bootstrap.",
  },
  'node.forbidden': {
    level: 'warn',
    message: 'client rejected, its identity does not match its node',
    meaning: 'A client claims a namespace or service account that its certificate or token does not have.',
    action: 'Identify the client: this may be an attack.',
  },
  'node.unreadable': {
    level: 'debug',
    message: 'node metadata not readable, ignoring it',
    meaning: 'A later request has a malformed node.',
    action: noAction,
  },
  'workload.rejected': {
    level: 'warn',
    message: 'xDS stream rejected',
    meaning: 'The stream ends with `code`, for example because the workload cannot be registered.',
    action: 'Act on the code in `reason` (docs/errors.md); the client retries.',
  },
  'request.received': {
    level: 'debug',
    message: 'request received',
    meaning:
      'A proxy subscribes to resources or acknowledges a response (`nonce`). `names`: resources that it names, of a delta stream those that it adds.',
    action: noAction,
  },
  'response.sent': {
    level: 'debug',
    message: 'response sent',
    meaning:
      'A proxy was sent `resources` of one type, and `removed` names. `awaits`: clusters for which other resources of this type wait.',
    action: noAction,
  },
  'response.skipped': {
    level: 'debug',
    message: 'response skipped',
    meaning: 'There was nothing to send, see `why`. `awaits`: clusters for which the resources wait.',
    action: noAction,
  },
  'request.judged.rejection': {
    level: 'warn',
    message: 'client rejected xDS resources',
    meaning: 'The client sent a NACK and keeps the last accepted resources of this type.',
    action: 'See `reason`, which is from the client; correct the object that it names.',
  },
  'request.judged.stale': {
    level: 'debug',
    message: 'request acknowledges an earlier response, ignoring it',
    meaning: 'Normal when responses and requests cross.',
    action: noAction,
  },
  'request.judged.misuse': {
    level: 'warn',
    message: 'request neither acknowledges nor requests anything, ignoring it',
    meaning: 'The client violates the xDS protocol.',
    action: 'Check the client.',
  },
  'request.judged.unserved': {
    level: 'warn',
    message: 'request for an unknown type, ignoring it',
    meaning: 'The control plane does not serve this type.',
    action: 'Check the client and its version.',
  },
  'clusters.abandoned': {
    level: 'warn',
    message: 'clusters not ready in time, sending listeners and routes that use them',
    meaning: 'Make-before-break gave up waiting for the client to acknowledge clusters: requests may fail briefly.',
    action: 'Check why the clusters do not warm, see `PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT`.',
  },
  'clusters.evicted': {
    level: 'warn',
    message: 'client keeps too many removed clusters, evicting the oldest',
    meaning: 'Removed clusters are kept for a while so that no request fails; there are more than `maxClusters`.',
    action:
      'None unless requests fail: routes of this client may still use the evicted clusters. Reduce the rate of changes of clusters.',
  },
  'resources.failed': {
    level: 'error',
    message: 'resources not built, client keeps its last ones',
    meaning: 'An error in the control plane.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'push.failed': {
    level: 'error',
    message: 'push to a client failed',
    meaning: 'An error in the control plane; the other clients are not affected.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'stream.failed': {
    level: 'error',
    message: 'xDS stream failed',
    meaning: 'An error in the control plane closed this stream; the client reconnects.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'stream.openFailed': {
    level: 'error',
    message: 'xDS stream not opened',
    meaning: 'An error in the control plane; the client reconnects.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'connection.failed': {
    level: 'error',
    message: 'xDS connection failed',
    meaning: 'An error in the control plane closed this connection; the client reconnects.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'memory.released': {
    level: 'debug',
    message: 'memory of disconnected proxies released',
    meaning:
      'Many proxies were served, and none is. Garbage was collected and its memory returned to the system, which blocked the program for `pauseMs`. `proxies`: the most that were served concurrently.',
    action: 'None.',
  },
  'memory.releaseFailed': {
    level: 'error',
    message: 'memory of disconnected proxies not released',
    meaning: 'An error in the control plane; the memory is reused for the next proxies.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'connections.limitReached': {
    level: 'warn',
    message: 'connection rejected, too many are open',
    meaning: 'The limit of all connections or of one address is reached.',
    action: 'See `PILOT_XDS_MAX_CONNECTIONS`; check which clients open them.',
  },
  'streams.limitReached': {
    level: 'warn',
    message: 'xDS stream limit reached, closing streams of the largest namespace',
    meaning: 'The limit of streams is reached.',
    action: 'See `PILOT_XDS_MAX_STREAMS`; check which namespace opens them.',
  },
  'address.throttled': {
    level: 'warn',
    message: 'address throttled, too many connections without a node',
    meaning: 'An address opens connections or streams on which no proxy identifies itself.',
    action: 'Check the client; see `PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS`.',
  },
  'secrets.withheld': {
    level: 'warn',
    message: 'client is not authenticated, sending no secrets',
    meaning: 'Secrets are sent only to clients with an identity.',
    action: 'Connect the client to the secure port.',
  },
} as const satisfies LogEventTable;
