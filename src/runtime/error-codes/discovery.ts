import type { ErrorTable } from './error-table.ts';

/** A log line, gRPC status, condition or Event reports these errors with the code in brackets after the text. */
export const discoveryTable = {
  API_REQUEST_REJECTED: {
    meaning: 'the API server responded with an error status',
    action:
      'act on its message; for `forbidden` check the RBAC rules of the service account. Requests are retried, except invalid ones',
  },
  API_SERVER_UNREACHABLE: {
    meaning: 'no connection to the API server',
    action: 'check its address, its certificate and the network; the control plane retries and keeps its last state',
  },
  API_CONNECTION_CLOSED: {
    meaning: 'the connection to the API server ended before the response was complete',
    action: 'none if it is rare: the control plane retries. Otherwise check proxies and load balancers on the way',
  },
  API_TIMEOUT: {
    meaning: 'the API server did not respond in time',
    action: 'check the load of the API server; the control plane retries',
  },
  API_RESPONSE_INVALID: {
    meaning: 'the response is not one of a Kubernetes API server, or exceeds a limit',
    action: 'check that the address is that of an API server',
  },
  API_CREDENTIALS_INVALID: {
    meaning: 'the kubeconfig, token, certificate or exec plugin has no usable credentials',
    action: 'correct the file or plugin that the message names; it is read again at each retry',
  },
  API_REQUEST_CANCELLED: {
    meaning: 'the control plane cancelled the request, for example because this replica is no longer the leader',
    action: 'none',
  },
  SOURCE_RESOURCE_INVALID: {
    meaning: 'a resource of a configuration source over xDS cannot be decoded',
    action: 'correct the object at the source; its last valid version applies',
  },
  SOURCE_CREDENTIALS_INVALID: {
    meaning: 'the TLS settings or the token of a configuration source over xDS cannot be used',
    action:
      'correct `tlsSettings` of `configSources`, or the file that the message names; it is read again at each retry',
  },
  CONSUL_UNREACHABLE: {
    meaning: 'no complete response from Consul: no connection, no leader, or a time-out',
    action: 'check the address of Consul and its servers; the last known services are served until it responds',
  },
  CONSUL_TOKEN_REJECTED: {
    meaning: 'Consul rejected the token',
    action: 'put a token that may read all services and nodes into the token file; the last known services are served',
  },
  CONSUL_RESPONSE_INVALID: {
    meaning: 'Consul responded with an error status, or with what is no catalog',
    action: 'act on its message; for `429` raise `limits.http_max_conns_per_client` of the agent or use HTTPS',
  },
  SERVER_NOT_READY: {
    meaning: 'the control plane has not synced its configuration and services yet',
    action: 'none: clients reconnect. If it lasts, `/ready` reports what is awaited',
  },
  SERVER_SHUTTING_DOWN: {
    meaning:
      'this replica is shutting down and accepts no streams. Streams that are served end with OK and no reason instead',
    action: 'none: clients reconnect to another replica',
  },
  INTERNAL_ERROR: {
    meaning: 'an error in the control plane',
    action: 'report a bug with the error of the log and the trace (`--trace`); clients retry',
  },
  STREAM_RATE_EXCEEDED: {
    meaning: 'too many new xDS streams at a time',
    action:
      'none: clients retry. If it lasts, raise or remove `PILOT_MAX_REQUESTS_PER_SECOND` if it is set, or add replicas',
  },
  STREAMS_EXHAUSTED: {
    meaning:
      'the replica has as many xDS streams as it can serve. A new stream: its namespace has its fair share. An open one: its namespace has the most streams, and another one needs a slot',
    action: 'add replicas, or raise `PILOT_XDS_MAX_STREAMS`',
  },
  STREAM_NAMES_EXHAUSTED: {
    meaning: 'the client subscribed to more resource names than one stream may have',
    action:
      'reduce what the proxy uses (Sidecar, `exportTo`), or raise `PILOT_XDS_MAX_NAMES_PER_STREAM`. For a gRPC program the limit is fixed: call fewer targets from one process',
  },
  STREAM_TIMEOUT: {
    meaning:
      'the client did not send a request in time or did not read a response, or a response to a half-closed stream was not complete within 5 s. The stream of a client that does not read is reset without a status, so only log and metrics have this code',
    action: 'check the client and the network; it reconnects',
  },
  CLIENT_UNAUTHENTICATED: {
    meaning: 'the client has neither a valid certificate nor a valid token',
    action:
      'the log line `peer.unauthenticated` or `caller.unauthenticated` has the reason; correct the credentials of the client',
  },
  CLIENT_FORBIDDEN: {
    meaning: 'the client is authenticated, and its identity does not permit the request',
    action: 'use the identity of one workload of this mesh; check `TRUST_DOMAIN` of the client',
  },
  NODE_INVALID: {
    meaning: 'the node of the first xDS request is missing or malformed',
    action: "correct the node in the client's bootstrap",
  },
  NODE_FORBIDDEN: {
    meaning: 'the node is not of the namespace or service account of the client',
    action: 'correct the node or the identity of the client; if neither is wrong, this is an attack',
  },
  XDS_REQUEST_INVALID: {
    meaning: 'the request is not a discovery request that this service serves',
    action: 'check the client and its version',
  },
  REGISTRATION_REJECTED: {
    meaning: 'the workload cannot be registered as a WorkloadEntry',
    action: 'correct the metadata of the proxy, the WorkloadGroup or the WorkloadEntry that the message names',
  },
  REGISTRATIONS_EXHAUSTED: {
    meaning: 'the replica, namespace or service account has reached its limit of registered workloads',
    action: 'remove workloads that are not needed, or add replicas',
  },
  CERTIFICATE_REQUEST_INVALID: {
    meaning:
      'the certificate signing request is malformed, or requests an identity or name that the caller must not use',
    action: 'correct the request; agents request their own SPIFFE ID and no other name',
  },
  CERTIFICATE_REQUESTS_EXHAUSTED: {
    meaning: 'more certificates are requested than can be signed at a time',
    action: 'none: clients retry after the reported time. If it lasts, add replicas',
  },
  AUTHORITY_UNAVAILABLE: {
    meaning: 'no certificate authority can sign at the moment',
    action: 'none at start or in a rotation: clients retry. If it lasts, see the log lines `authority.*`',
  },
  AUTHORITY_EXPIRED: {
    meaning: 'the certificate of the authority has expired',
    action: 'rotate the authority (docs/identity.md); check the clock',
  },
  SIGNER_FAILED: {
    meaning:
      'the Kubernetes signer denied the CertificateSigningRequest, did not respond, or returned an unusable certificate',
    action: 'check the signer that `K8S_SIGNER` names and its permission for this signer name',
  },
  KEY_SET_UNAVAILABLE: {
    meaning: 'the JSON Web Key Set of an issuer cannot be fetched or read',
    action: 'check `jwksUri` or the issuer, and that the control plane can reach it; it retries',
  },
  TRUST_BUNDLE_UNAVAILABLE: {
    meaning: 'the SPIFFE bundle of a trust domain cannot be fetched or read',
    action: 'check `spiffeBundleUrl`, and that the control plane can reach it; it retries',
  },
  CONFIG_FILE_IGNORED: {
    meaning: 'a file in a directory of configuration has nearly the extension of one that is read, as `.YAML`',
    action: 'rename it to `.yaml`, `.yml` or `.json`',
  },
  CONFIG_SOURCE_UNREADABLE: {
    meaning: 'a file or directory of configuration cannot be read or watched, or exceeds a limit',
    action: 'correct what the message names; the last valid content applies until then',
  },
  WEBHOOK_UNPROVED: {
    meaning:
      'the API server did not show that it calls the webhook `/validate`, so that `failurePolicy` stays `Ignore`: invalid objects may be accepted',
    action:
      'if it lasts: let the API server reach port 15017 of the control plane (firewall, NetworkPolicy), and see what the message names',
  },
  OBJECT_DISPUTED: {
    meaning: 'another controller overwrites an object that this control plane writes',
    action: 'find the other writer (`kubectl get --show-managed-fields`) and stop one of them',
  },
  OBJECT_FOREIGN: {
    meaning:
      'an object that this control plane does not own has the name of one that it has to create; it is not changed',
    action: 'delete it, or choose another name (of a Gateway: annotation `gateway.istio.io/name-override`)',
  },
  DEBUG_REQUEST_INVALID: {
    meaning: 'an xDS debug request names no page or proxy, or several',
    action: 'request exactly one name; the message lists the pages',
  },
} as const satisfies ErrorTable;
