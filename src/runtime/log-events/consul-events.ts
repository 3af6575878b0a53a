import { type LogEventTable, noAction } from './log-event.ts';

export const consulEvents = {
  'strategy.chosen': {
    level: 'info',
    message: 'Consul catalog watched',
    meaning:
      '`strategy`: a blocking query for each node, for each service, or `coarse` (three lists; each change reads all services again). Logged once for each choice.',
    action: 'For `coarse`: use HTTPS, or raise `limits.http_max_conns_per_client` of the agent.',
  },
  'catalog.synced': {
    level: 'info',
    message: 'Consul catalog synced',
    meaning: 'The first complete read is served.',
    action: noAction,
  },
  'catalog.held': {
    level: 'warn',
    message: 'Consul response held back, serving the last known services',
    meaning:
      'The response would remove everything, or most of it without evidence. It is applied when a consistent read repeats it for five minutes with a token that may see everything.',
    action:
      'Check the servers and the token of Consul. If the response is right, apply it: POST `/debug/consulz?accept=REGISTRY` with the token of the debugger.',
  },
  'catalog.released': {
    level: 'info',
    message: 'Consul response no longer held back',
    meaning: 'The services are read and served again. `cause` is the reason.',
    action: noAction,
  },
  'query.failed': {
    level: 'debug',
    message: 'Consul query failed, will retry',
    meaning: 'A blocking query ended with an error; `failure` has the reason. `catalog.failed` reports an outage.',
    action: noAction,
  },
  'catalog.failed': {
    level: 'warn',
    message: 'Consul not responding, serving the last known services, will retry',
    meaning: 'Requests fail or time out. Changes of services do not reach proxies.',
    action: 'See `reason`; check the servers of Consul, its address and the token.',
  },
  'catalog.recovered': {
    level: 'info',
    message: 'Consul responding again',
    meaning: 'An outage is over; the whole catalog was read.',
    action: noAction,
  },
  'consul.serviceIncomplete': {
    level: 'warn',
    message: 'Consul service not served completely',
    meaning: 'A name, port, address or protocol cannot be used. `reason` names what is left out.',
    action: 'Correct the registration in Consul.',
  },
  'consul.changeFailed': {
    level: 'error',
    message: 'Consul change not processed',
    meaning: 'An error in the control plane: a change of services may not reach proxies.',
    action: 'Report a bug with the trace (`--trace`).',
  },
} as const satisfies LogEventTable;
