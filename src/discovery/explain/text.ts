import type { Message } from '@bufbuild/protobuf';
import type { Metadata } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { FilterChain } from '../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { Route } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { grpcStatusNames } from '../../model/fields/grpc-status.ts';
import type { Explanation } from '../../networking/explain/explanation.ts';
import type { LocalResponse, RequestOutcome, Target } from '../../networking/explain/outcome.ts';
import { originsOf } from '../../networking/inputs/message-origin.ts';
import { type ConfigOrigin, type ConfigOrigins, originsOfMetadata } from './sources.ts';

export interface ExplanationStep {
  readonly what: 'listener' | 'filter chain' | 'virtual host' | 'route' | 'cluster';
  readonly name: string;
  readonly note?: string;
  /** `undefined` if none are missing or the reason is unknown. */
  readonly missingEndpoints?: readonly string[];
  /** Most important first. */
  readonly from: readonly ConfigOrigin[];
}

export interface ExplanationText {
  readonly steps: readonly ExplanationStep[];
  readonly filters: readonly string[];
  readonly outcome: RequestOutcome;
}

export function describeExplanation(explanation: Explanation, sources: ConfigOrigins): ExplanationText {
  const { listener, chain, virtualHost, route, routeConfiguration, targets, filters, outcome } = explanation;
  const originsFrom = (
    messagePart: Message & { readonly metadata?: Metadata | undefined },
  ): readonly ConfigOrigin[] => {
    const messageOrigins = originsOf(messagePart);
    return (messageOrigins.length > 0 ? messageOrigins : originsOfMetadata(messagePart.metadata)).map((origin) =>
      sources.originOf(origin),
    );
  };
  const steps: ExplanationStep[] = [];
  if (listener) {
    const handOverText = listener.firstListener && `handed over by ${listener.firstListener.name}`;
    steps.push({
      what: 'listener',
      name: listener.listener.name,
      ...(handOverText && { note: handOverText }),
      from: originsFrom(listener.listener),
    });
  }
  if (chain)
    steps.push({
      what: 'filter chain',
      name: chainName(chain, listener?.listener),
      ...optionalNote(matchText(chain)),
      from: originsFrom(chain),
    });
  if (virtualHost) {
    const note = `of route configuration ${routeConfiguration}; domains ${listText(virtualHost.domains)}`;
    steps.push({ what: 'virtual host', name: virtualHost.name, note, from: originsFrom(virtualHost) });
  }
  if (route)
    steps.push({ what: 'route', name: route.name || '(no name)', note: routeText(route), from: originsFrom(route) });
  const totalWeight = targets.reduce((sum, { weight }) => sum + weight, 0);
  for (const target of targets)
    steps.push({
      what: 'cluster',
      name: target.name,
      note: targetText(target, totalWeight),
      ...(target.missingEndpoints && { missingEndpoints: target.missingEndpoints }),
      from: target.cluster ? originsFrom(target.cluster) : [],
    });
  return { steps, filters, outcome };
}

/** @param otherLines lines to print before the outcome */
export function explanationText(
  heading: string,
  { steps, filters, outcome }: ExplanationText,
  otherLines: readonly string[] = [],
): string {
  const outputLines = [heading];
  for (const { what, name, note, missingEndpoints, from } of steps) {
    outputLines.push(`${what.padEnd(13)} ${name}${note === undefined ? '' : `  (${note})`}`);
    for (const reason of missingEndpoints ?? []) outputLines.push(`${' '.repeat(14)}endpoints: ${reason}`);
    for (const source of from) outputLines.push(`${' '.repeat(14)}← ${sourceText(source)}`);
  }
  if (filters.length > 0) outputLines.push(`${'filters'.padEnd(13)} ${filters.join(', ')}`);
  outputLines.push(...otherLines, `${'outcome'.padEnd(13)} ${outcomeText(outcome)}`);
  return `${outputLines.join('\n')}\n`;
}

export function sourceText({ object, field, place }: ConfigOrigin): string {
  return [object, field, place && `at ${place}`].filter(Boolean).join(' ');
}

function outcomeText(requestOutcome: RequestOutcome): string {
  switch (requestOutcome.kind) {
    case 'forwarded':
      return 'sent to the cluster';
    case 'accepted':
      return 'the server handles the call';
    case 'redirected':
      return `redirected with ${statusText(requestOutcome)} to ${requestOutcome.to}`;
    case 'answered':
      return `response ${statusText(requestOutcome)}${requestOutcome.body === '' ? '' : ` ${JSON.stringify(requestOutcome.body)}`}`;
    case 'closed':
      return `the connection is closed: ${requestOutcome.why}`;
    case 'not decided':
      return `not decided: ${requestOutcome.why}`;
    case 'divided':
      return requestOutcome.shares
        .map(
          ({ share, outcome: shareOutcome }) => `${percentText(share)} of the requests: ${outcomeText(shareOutcome)}`,
        )
        .join(`\n${' '.repeat(14)}`);
    case 'other':
      return requestOutcome.why;
    default:
      return localResponseText(requestOutcome);
  }
}

function localResponseText(response: LocalResponse & { readonly why: string }): string {
  const { status, grpcStatus, flag, why } = response;
  if (status === undefined && grpcStatus !== undefined)
    return `the call fails with ${grpcStatusNames[grpcStatus]}: ${why}`;
  const flagText = flag === undefined ? '' : ` (response flag ${flag})`;
  return `${status === undefined ? 'the connection is closed' : `response ${statusText(response)}`}${flagText}: ${why}`;
}

function statusText({ status, grpcStatus }: LocalResponse): string {
  return grpcStatus === undefined ? `${status}` : `${status} and grpc-status ${grpcStatus}`;
}

function percentText(fraction: number): string {
  return `${Math.round(fraction * 1_000) / 10} %`;
}

function chainName(chain: FilterChain, listener: Listener | undefined): string {
  const name = chain.name || '(no name)';
  return chain === listener?.defaultFilterChain ? `${name} (default filter chain)` : name;
}

function optionalNote(note: string): { note?: string } {
  return note === '' ? {} : { note };
}

export function matchText({ filterChainMatch: match }: FilterChain): string {
  if (match === undefined) return '';
  const ranges = match.prefixRanges.map(({ addressPrefix, prefixLen }) => `${addressPrefix}/${prefixLen ?? 0}`);
  const conditions: readonly [string, readonly (string | number)[]][] = [
    ['port', match.destinationPort === undefined ? [] : [match.destinationPort]],
    ['to', ranges],
    ['SNI', match.serverNames],
    ['transport', match.transportProtocol === '' ? [] : [match.transportProtocol]],
    ['ALPN', match.applicationProtocols],
  ];
  return conditions
    .flatMap(([subject, values]) => (values.length === 0 ? [] : [`${subject} ${listText(values)}`]))
    .join('; ');
}

function routeText({ match }: Route): string {
  const path = match?.pathSpecifier;
  const value = path?.case === 'safeRegex' ? path.value.regex : typeof path?.value === 'string' ? path.value : '';
  const headers = match?.headers.map(({ name, invertMatch }) =>
    invertMatch ? `not header ${name}` : `header ${name}`,
  );
  const parameters = match?.queryParameters.map(({ name }) => `parameter ${name}`);
  return [`${path?.case ?? 'any path'} ${value}`.trim(), ...(headers ?? []), ...(parameters ?? [])].join('; ');
}

function targetText({ weight, cluster, assignment }: Target, totalWeight: number): string {
  const shareText = totalWeight === weight ? [] : [`${Math.round((100 * weight) / totalWeight)} % of the requests`];
  if (cluster === undefined) return [...shareText, 'the proxy has no such cluster'].join('; ');
  return [...shareText, ...(assignment ? [endpointsText(assignment)] : [])].join('; ');
}

const maxShownItems = 5;

function endpointsText({ endpoints }: ClusterLoadAssignment): string {
  const addresses = endpoints
    .flatMap(({ lbEndpoints }) => lbEndpoints)
    .flatMap(({ hostIdentifier: host }) => {
      const address = host.case === 'endpoint' ? host.value.address?.address : undefined;
      if (address?.case === 'pipe') return [address.value.path];
      return address?.case === 'socketAddress' ? [`${address.value.address}:${address.value.portSpecifier.value}`] : [];
    });
  return addresses.length === 0 ? 'no endpoints' : `endpoints ${listText(addresses)}`;
}

function listText(values: readonly (string | number)[]): string {
  const shownItems = values.slice(0, maxShownItems).join(', ');
  return values.length > maxShownItems ? `${shownItems} and ${values.length - maxShownItems} more` : shownItems;
}
