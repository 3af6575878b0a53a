/** Compares the explanation of a request with the lines of Envoy's access log. */
import type { Explanation } from '../../src/networking/explain/explanation.ts';
import type { LocalResponse, RequestOutcome } from '../../src/networking/explain/outcome.ts';

/** Fields of a JSON log line. */
export const logFormat = {
  remote: '%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%',
  local: '%DOWNSTREAM_LOCAL_ADDRESS%',
  chain: '%FILTER_CHAIN_NAME%',
  virtual_host: '%CEL(xds.virtual_host_name)%',
  route: '%ROUTE_NAME%',
  cluster: '%UPSTREAM_CLUSTER_RAW%',
  code: '%RESPONSE_CODE%',
  flags: '%RESPONSE_FLAGS%',
  details: '%RESPONSE_CODE_DETAILS%',
  termination: '%CONNECTION_TERMINATION_DETAILS%',
};

/** A log line; unknown fields are null or `-`. */
export type Logged = Readonly<Record<keyof typeof logFormat, unknown>>;

/** One sentence for each difference; empty if explain and Envoy agree. */
export function differencesOf({ chain, virtualHost, route, targets, outcome }: Explanation, logged: Logged): string[] {
  const found: string[] = [];
  const compare = (aspect: string, ours: string, theirs: string): void => {
    if (theirs !== '' && ours !== theirs) found.push(`${aspect}: explain reports ${ours || 'none'}, Envoy ${theirs}`);
  };
  // A listener filter without a decision precedes the choice of a filter chain.
  const isChainKnown = chain !== undefined || outcome.kind !== 'not decided';
  if (isChainKnown && textOf(logged, 'chain') !== (chain?.name ?? ''))
    found.push(`filter chain: explain reports ${chain?.name}, Envoy ${textOf(logged, 'chain')}`);
  compare('virtual host', virtualHost?.name ?? '', textOf(logged, 'virtual_host'));
  compare('route', route?.name ?? '', textOf(logged, 'route'));
  const cluster = textOf(logged, 'cluster');
  const possible = targets.filter(({ weight }) => weight > 0).map(({ name }) => name);
  if (cluster !== '' && !possible.includes(cluster)) {
    found.push(`cluster: explain reports ${possible.join(' or ') || 'none'}, Envoy ${cluster}`);
  }
  return agreesWith(outcome, logged)
    ? found
    : [...found, `outcome: explain reports ${JSON.stringify(outcome)}, Envoy ${lineText(logged)}`];
}

function agreesWith(outcome: RequestOutcome, logged: Logged): boolean {
  const isHttp = textOf(logged, 'code') !== '0' && textOf(logged, 'code') !== '';
  switch (outcome.kind) {
    case 'not decided':
    case 'other':
      return true;
    // Envoy's log has no such field.
    case 'accepted':
      return false;
    case 'forwarded':
      return isHttp
        ? isFromUpstream(logged)
        : localFlags(logged).filter((flag) => flag !== 'UF').length === 0 && textOf(logged, 'termination') === '';
    case 'closed':
      return !isHttp && (localFlags(logged).join() === (outcome.flag ?? '') || textOf(logged, 'termination') !== '');
    case 'divided':
      return outcome.shares.some((share) => agreesWith(share.outcome, logged));
    case 'redirected':
    case 'answered':
      return isLocal({ status: outcome.status, details: 'direct_response' }, logged);
    default:
      return isLocal(outcome, logged);
  }
}

function isLocal({ status, flag = '', details = '' }: LocalResponse, logged: Logged): boolean {
  const code = textOf(logged, 'code');
  return (
    (status === undefined ? code === '0' || code === '' : code === String(status)) &&
    localFlags(logged).join() === flag &&
    textOf(logged, 'details').startsWith(details) &&
    (flag === 'UF' || !isFromUpstream(logged))
  );
}

/** Whether an upstream server responded or failed: explain does not know whether servers are up. */
function isFromUpstream(logged: Logged): boolean {
  return /^(via_upstream|upstream_|response_timeout|duration_timeout|downstream_remote)/.test(
    textOf(logged, 'details'),
  );
}

/** Response flags of events that explain does not predict: delays, retries, timeouts and resets. */
const flagsOnTheWay = new Set(['DI', 'URX', 'UC', 'UR', 'UT', 'DC', 'UPE', 'LR']);

function localFlags(logged: Logged): string[] {
  const flags = textOf(logged, 'flags').split(',');
  return flags.filter((flag) => flag !== '' && !flagsOnTheWay.has(flag));
}

function textOf(logged: Logged, key: keyof Logged): string {
  const value = logged[key];
  return value === null || value === undefined || value === '-' ? '' : String(value);
}

function lineText(logged: Logged): string {
  const keys = ['code', 'flags', 'details', 'termination', 'cluster'] as const;
  return JSON.stringify(Object.fromEntries(keys.map((key) => [key, textOf(logged, key)])));
}
