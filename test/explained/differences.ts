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
export function differencesOf(
  { chain, virtualHost, route, targets, outcome }: Explanation,
  logEntry: Logged,
): string[] {
  const differences: string[] = [];
  const compare = (aspect: string, explainText: string, envoyText: string): void => {
    if (envoyText !== '' && explainText !== envoyText)
      differences.push(`${aspect}: explain reports ${explainText || 'none'}, Envoy ${envoyText}`);
  };
  // A listener filter without a decision precedes the choice of a filter chain.
  const isChainKnown = chain !== undefined || outcome.kind !== 'not decided';
  if (isChainKnown && textOf(logEntry, 'chain') !== (chain?.name ?? ''))
    differences.push(`filter chain: explain reports ${chain?.name}, Envoy ${textOf(logEntry, 'chain')}`);
  compare('virtual host', virtualHost?.name ?? '', textOf(logEntry, 'virtual_host'));
  compare('route', route?.name ?? '', textOf(logEntry, 'route'));
  const cluster = textOf(logEntry, 'cluster');
  const possible = targets.filter(({ weight }) => weight > 0).map(({ name }) => name);
  if (cluster !== '' && !possible.includes(cluster)) {
    differences.push(`cluster: explain reports ${possible.join(' or ') || 'none'}, Envoy ${cluster}`);
  }
  return agreesWith(outcome, logEntry)
    ? differences
    : [...differences, `outcome: explain reports ${JSON.stringify(outcome)}, Envoy ${lineText(logEntry)}`];
}

function agreesWith(outcome: RequestOutcome, logEntry: Logged): boolean {
  const isHttp = textOf(logEntry, 'code') !== '0' && textOf(logEntry, 'code') !== '';
  switch (outcome.kind) {
    case 'not decided':
    case 'other':
      return true;
    // Envoy's log has no field for this outcome.
    case 'accepted':
      return false;
    case 'forwarded':
      return isHttp
        ? isFromUpstream(logEntry)
        : localFlags(logEntry).filter((flag) => flag !== 'UF').length === 0 && textOf(logEntry, 'termination') === '';
    case 'closed':
      return (
        !isHttp && (localFlags(logEntry).join() === (outcome.flag ?? '') || textOf(logEntry, 'termination') !== '')
      );
    case 'divided':
      return outcome.shares.some((share) => agreesWith(share.outcome, logEntry));
    case 'redirected':
    case 'answered':
      return isLocal({ status: outcome.status, details: 'direct_response' }, logEntry);
    default:
      return isLocal(outcome, logEntry);
  }
}

function isLocal({ status, flag = '', details = '' }: LocalResponse, logEntry: Logged): boolean {
  const code = textOf(logEntry, 'code');
  return (
    (status === undefined ? code === '0' || code === '' : code === String(status)) &&
    localFlags(logEntry).join() === flag &&
    textOf(logEntry, 'details').startsWith(details) &&
    (flag === 'UF' || !isFromUpstream(logEntry))
  );
}

/** Whether an upstream server responded or failed: explain does not know whether servers are up. */
function isFromUpstream(logEntry: Logged): boolean {
  return /^(via_upstream|upstream_|response_timeout|duration_timeout|downstream_remote)/.test(
    textOf(logEntry, 'details'),
  );
}

/** Response flags of events that explain does not predict: delays, retries, timeouts and resets. */
const flagsOnTheWay = new Set(['DI', 'URX', 'UC', 'UR', 'UT', 'DC', 'UPE', 'LR']);

function localFlags(logEntry: Logged): string[] {
  const flags = textOf(logEntry, 'flags').split(',');
  return flags.filter((flag) => flag !== '' && !flagsOnTheWay.has(flag));
}

function textOf(logEntry: Logged, key: keyof Logged): string {
  const value = logEntry[key];
  return value === null || value === undefined || value === '-' ? '' : String(value);
}

function lineText(logEntry: Logged): string {
  const keys = ['code', 'flags', 'details', 'termination', 'cluster'] as const;
  return JSON.stringify(Object.fromEntries(keys.map((key) => [key, textOf(logEntry, key)])));
}
