/**
 * Builds placeholders for rejected objects, by kind: the strictest configuration that the object may have requested, for the workloads that it may
 * have selected.
 */
import * as E from 'fp-ts/lib/Either.js';
import { isObject } from '../../runtime/json-object.ts';
import { type Decoder, port as portNumber } from '../fields/decode.ts';
import { booleanOf } from '../fields/go-boolean.ts';
import { maxItems } from '../fields/limits.ts';
import { isDnsLabel } from '../fields/names.ts';
import { nearestName } from '../fields/nearest-name.ts';
import type { DestinationRule } from './destinations/destination-rule.ts';
import { clientTls } from './destinations/traffic-policy.decode.ts';
import type { ClientTlsSettings, PortTrafficPolicy, TrafficPolicy } from './destinations/traffic-policy.ts';
import { wasmMatches } from './extensions/wasm-plugin.decode.ts';
import type { WasmPlugin } from './extensions/wasm-plugin.ts';
import { exportTo, selectorLabels } from './field-rules.ts';
import {
  type BackendTlsPolicy,
  type BackendTlsTarget,
  backendTlsTarget,
  everyService,
  maxBackendTlsTargets,
} from './gateway-api/backend-tls-policy.ts';
import { maxPortModes, maxPortSettings, maxSubsets } from './object-limits.ts';
import type { AuthorizationPolicy } from './policies/authorization-policy.ts';
import { mutualTls } from './policies/peer-authentication.decode.ts';
import type { MutualTlsMode, PeerAuthentication } from './policies/peer-authentication.ts';
import { scopeFields } from './policies/policy-target.decode.ts';
import type { PolicyScope } from './policies/policy-target.ts';
import { jwtRuleFields } from './policies/request-authentication.decode.ts';
import type { JwtRule, RequestAuthentication } from './policies/request-authentication.ts';

export interface RejectedConfig {
  readonly spec: unknown;
  /** Whether the YAML is invalid, so that the parsed part may be incomplete. */
  readonly isBroken: boolean;
  readonly annotations: Readonly<Record<string, unknown>>;
  /** `undefined` if the namespace cannot be read. */
  readonly namespace: string | undefined;
}

export const closedKinds = [
  'AuthorizationPolicy',
  'PeerAuthentication',
  'RequestAuthentication',
  'DestinationRule',
  'WasmPlugin',
  'BackendTLSPolicy',
] as const;

export interface Placeholder {
  readonly kind: (typeof closedKinds)[number];
  readonly apiVersion: string;
  readonly spec:
    | AuthorizationPolicy
    | PeerAuthentication
    | RequestAuthentication
    | DestinationRule
    | WasmPlugin
    | BackendTlsPolicy;
  readonly isScopeKnown: boolean;
  /** Returns the blocked traffic, as the end of a sentence. `location` describes the scope, such as `namespace shop`. */
  readonly effect: (location: string) => string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Builders by kind of the rejected object. Other kinds restrict nothing, or their absence denies access. */
export const placeholderBuilders: ReadonlyMap<string, (refused: RejectedConfig) => Placeholder | undefined> = new Map<
  string,
  (refused: RejectedConfig) => Placeholder | undefined
>([
  ['AuthorizationPolicy', closedPolicy],
  ['PeerAuthentication', closedPeerAuthentication],
  ['RequestAuthentication', closedRequestAuthentication],
  ['Sidecar', closedIngress],
  ['DestinationRule', closedUpstream],
  ['WasmPlugin', closedPlugin],
  ['BackendTLSPolicy', closedBackendTls],
]);

const security = 'security.istio.io/v1';

/** Policies that deny nothing (AUDIT and dry run) need no placeholder. */
function closedPolicy(rejectedConfig: RejectedConfig): Placeholder | undefined {
  const { action } = fieldsOf(rejectedConfig.spec);
  if (typeof action === 'string' && action.trim().toUpperCase() === 'AUDIT') return undefined;
  const dryRun = rejectedConfig.annotations['istio.io/dry-run'];
  if (typeof dryRun === 'string' && booleanOf(dryRun) === true) return undefined;
  return denyAllSpec(scopeOf(rejectedConfig), rejectedConfig);
}

function denyAllSpec({ isScopeKnown, scope }: ReadScope, { namespace }: RejectedConfig): Placeholder {
  return {
    ...{ kind: 'AuthorizationPolicy', apiVersion: security, isScopeKnown },
    spec: { ...scope, action: 'DENY', rules: [{}] },
    effect: (scopeText) => `every request to ${workloads(scope, namespace, scopeText)} is denied`,
  };
}

/** Requires mutual TLS. Modes that can be read apply, except the mode for all ports if an unreadable part might override it. */
function closedPeerAuthentication(rejectedConfig: RejectedConfig): Placeholder {
  const { isScopeKnown, scope } = scopeOf(rejectedConfig);
  const fields = fieldsOf(rejectedConfig.isBroken ? undefined : rejectedConfig.spec);
  const { selector: _, mtls, portLevelMtls, ...unknownFields } = fields;
  const modesOfPorts =
    isScopeKnown && scope.selector !== undefined ? portModes(portLevelMtls) : { modes: {}, areModesReadable: false };
  const isSpecReadable =
    isObject(rejectedConfig.spec) && !rejectedConfig.isBroken && Object.keys(unknownFields).length === 0;
  const arePortsReadable = portLevelMtls === undefined || modesOfPorts.areModesReadable;
  const mode = isSpecReadable && arePortsReadable && mtls !== undefined ? decodeIfValid(mutualTls, mtls) : undefined;
  const spec: PeerAuthentication = {
    ...(scope.selector && { selector: scope.selector }),
    mtls: mode === undefined || mode === 'UNSET' ? 'STRICT' : mode,
    ...(Object.keys(modesOfPorts.modes).length > 0 && { portLevelMtls: modesOfPorts.modes }),
  };
  const exceptions = Object.entries(modesOfPorts.modes).map(([port, mode]) => `${mode} on port ${port}`);
  return {
    ...{ kind: 'PeerAuthentication', apiVersion: security, isScopeKnown, spec },
    effect: (scopeText) =>
      `${workloads(scope, rejectedConfig.namespace, scopeText)} accept connections as with mode ${[spec.mtls, ...exceptions].join(', ')}`,
  };
}

function portModes(value: unknown): { modes: Record<string, MutualTlsMode>; areModesReadable: boolean } {
  const portEntries = Object.entries(fieldsOf(value));
  if (portEntries.length > maxPortModes) return { modes: {}, areModesReadable: false };
  const portModePairs = portEntries.map(
    ([port, mode]) => [port, decodeIfValid(mutualTls, mode) ?? 'STRICT'] as [string, MutualTlsMode],
  );
  const validPairs = portModePairs.filter(([port]) => /^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65535);
  return {
    modes: Object.fromEntries(validPairs),
    areModesReadable: isObject(value) && validPairs.length === portModePairs.length,
  };
}

/** Each issuer gets an empty key set. Requests without a token have no principal, so no policy that requires one allows them. */
function closedRequestAuthentication(rejectedConfig: RejectedConfig): Placeholder {
  const { isScopeKnown, scope } = scopeOf(rejectedConfig);
  const { jwtRules } = fieldsOf(rejectedConfig.isBroken ? undefined : rejectedConfig.spec);
  // With too many rules, deny every request instead of building a key set per rule.
  if (Array.isArray(jwtRules) && jwtRules.length > maxItems)
    return denyAllSpec({ isScopeKnown, scope }, rejectedConfig);
  const rules = Array.isArray(jwtRules) && jwtRules.length > 0 ? jwtRules.map(closedRule) : [closedRule(undefined)];
  return {
    ...{ kind: 'RequestAuthentication', apiVersion: security, isScopeKnown },
    spec: { ...scope, jwtRules: rules },
    effect: (scopeText) =>
      `${workloads(scope, rejectedConfig.namespace, scopeText)} accept no token: requests with a token are denied`,
  };
}

const noKeys = '{"keys":[]}';
const defaultTokenLocations: Pick<JwtRule, 'fromHeaders' | 'fromParams'> = {
  fromHeaders: [{ name: 'Authorization', prefix: 'Bearer ' }],
  fromParams: ['access_token'],
};

/** Extracts tokens from every location that the rule may have named, because a token that is not extracted would pass. */
function closedRule(value: unknown): JwtRule {
  const rule = fieldsOf(value);
  const { issuer, fromHeaders, fromParams, fromCookies, presence } = jwtRuleFields;
  const headers = readableItemsOf(fromHeaders.decoder, rule.fromHeaders);
  const params = readableItemsOf(fromParams.decoder, rule.fromParams);
  const cookies = readableItemsOf(fromCookies.decoder, rule.fromCookies);
  const isComplete = isObject(value) && [headers, params, cookies].every((locationList) => locationList.isComplete);
  const tokenLocations = {
    fromHeaders: [...headers.items, ...(isComplete ? [] : defaultTokenLocations.fromHeaders!)],
    fromParams: [...params.items, ...(isComplete ? [] : defaultTokenLocations.fromParams!)],
    fromCookies: cookies.items,
  };
  const requiresToken = rule.presence !== undefined && decodeIfValid(presence.decoder, rule.presence) !== 'OPTIONAL';
  return {
    // An empty issuer matches any issuer.
    issuer: (rule.issuer === undefined ? undefined : decodeIfValid(issuer.decoder, rule.issuer)) ?? '',
    jwks: noKeys,
    ...tokenLocations,
    ...(requiresToken && { presence: 'REQUIRED' }),
  };
}

function readableItemsOf<A>(
  decoder: Decoder<readonly A[]>,
  value: unknown,
): { items: readonly A[]; isComplete: boolean } {
  if (value === undefined) return { items: [], isComplete: true };
  if (!Array.isArray(value)) return { items: [], isComplete: false };
  const items = value.flatMap((item) => decodeIfValid(decoder, [item]) ?? []);
  return { items, isComplete: items.length === value.length };
}

/** Denies every request to workloads whose Sidecar requires TLS from clients, because their service ports would otherwise accept plaintext. */
function closedIngress(rejectedConfig: RejectedConfig): Placeholder | undefined {
  // The excluded fields contain no TLS settings. An unknown field may be a misspelled `ingress`.
  const { workloadSelector, egress: _e, outboundTrafficPolicy: _o, ...ingress } = fieldsOf(rejectedConfig.spec);
  if (!hasField(ingress, 'tls')) return undefined;
  const labels = decodeIfValid(selectorLabels, fieldsOf(workloadSelector).labels);
  const isScopeKnown = !rejectedConfig.isBroken && (workloadSelector === undefined || labels !== undefined);
  const scope = isScopeKnown && labels !== undefined ? { selector: labels } : {};
  const denySpec = denyAllSpec({ isScopeKnown, scope }, rejectedConfig);
  return {
    ...denySpec,
    effect: (scopeText) => `${denySpec.effect(scopeText)}, unless another Sidecar applies to the workload`,
  };
}

/** Without readable TLS settings, mutual TLS of the mesh applies, so that no traffic is sent in plaintext unintentionally. */
function closedUpstream(rejectedConfig: RejectedConfig): Placeholder | undefined {
  const { rule, unknown } = upstreamFields(fieldsOf(rejectedConfig.spec));
  if (!hasField([rule.trafficPolicy, rule.subsets, unknown], 'tls')) return undefined;
  if (typeof rule.host !== 'string' || rule.host === '') return undefined;
  const isMeshWide = rejectedConfig.namespace === undefined;
  const exportTargets = isMeshWide ? ['*'] : decodeIfValid(exportTo, rule.exportTo);
  const labels = isMeshWide ? undefined : decodeIfValid(selectorLabels, fieldsOf(rule.workloadSelector).matchLabels);
  const hasTooManySubsets = Array.isArray(rule.subsets) && rule.subsets.length > maxSubsets;
  // A route to an omitted subset has no cluster, so its requests fail.
  const subsets = Array.isArray(rule.subsets) && !hasTooManySubsets ? rule.subsets.flatMap(closedSubset) : [];
  const ruleTrafficPolicy = closedTraffic(rule.trafficPolicy);
  const trafficPolicy =
    hasTooManySubsets || hasField(unknown, 'tls') ? { ...ruleTrafficPolicy, tls: strictestTls } : ruleTrafficPolicy;
  const securedPolicies = [trafficPolicy, ...subsets.map((subset) => subset.trafficPolicy)].flatMap((policy) => [
    policy?.tls,
    ...(policy?.portLevelSettings ?? []).map((port) => port.tls),
  ]);
  if (securedPolicies.every((tls) => tls === undefined || tls.mode === 'DISABLE')) return undefined;
  const spec: DestinationRule = {
    host: rule.host.toLowerCase(),
    ...(trafficPolicy && { trafficPolicy }),
    ...(subsets.length > 0 && { subsets }),
    ...(exportTargets && { exportTo: exportTargets }),
    ...(labels && { workloadSelector: { labels } }),
  };
  return {
    ...{ kind: 'DestinationRule', apiVersion: 'networking.istio.io/v1', isScopeKnown: true, spec },
    effect: () =>
      `connections to ${rule.host} use the valid part of its TLS settings, and ISTIO_MUTUAL where that is incomplete`,
  };
}

const upstreamNames = ['host', 'trafficPolicy', 'subsets', 'exportTo', 'workloadSelector'] as const;

/** Returns fields by correct name. Misspelled fields are included, but correctly spelled ones have priority. */
function upstreamFields(writtenFields: Fields): {
  readonly rule: Partial<Record<(typeof upstreamNames)[number], unknown>>;
  readonly unknown: Fields;
} {
  const rule: Record<string, unknown> = {};
  const unknownFields: Record<string, unknown> = {};
  for (const name of upstreamNames) if (Object.hasOwn(writtenFields, name)) rule[name] = writtenFields[name];
  for (const [field, value] of Object.entries(writtenFields)) {
    if (upstreamNames.some((name) => name === field)) continue;
    const nearestField = nearestName(field, upstreamNames);
    if (nearestField === undefined || Object.hasOwn(rule, nearestField)) unknownFields[field] = value;
    else rule[nearestField] = value;
  }
  return { rule, unknown: unknownFields };
}

function closedSubset(value: unknown): NonNullable<DestinationRule['subsets']> {
  const { name, labels = {}, trafficPolicy } = fieldsOf(value);
  if (typeof name !== 'string' || !isDnsLabel(name) || !isObject(labels)) return [];
  const texts = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const subsetTrafficPolicy = closedTraffic(trafficPolicy);
  return [
    { name, labels: Object.fromEntries(texts), ...(subsetTrafficPolicy && { trafficPolicy: subsetTrafficPolicy }) },
  ];
}

function closedTraffic(value: unknown): TrafficPolicy | undefined {
  if (!hasField(value, 'tls')) return undefined;
  const { portLevelSettings, tls: writtenTls, ...otherFields } = fieldsOf(value);
  if (Array.isArray(portLevelSettings) && portLevelSettings.length > maxPortSettings) return { tls: strictestTls };
  const settings: readonly unknown[] = Array.isArray(portLevelSettings) ? portLevelSettings : [];
  const ports = settings.map(closedPort);
  const arePortsReadable =
    portLevelSettings === undefined || (Array.isArray(portLevelSettings) && !ports.includes('unknown'));
  const isPolicyReadable = arePortsReadable && !hasField(otherFields, 'tls');
  const tls = isPolicyReadable ? (writtenTls === undefined ? undefined : tlsOf(writtenTls)) : strictestTls;
  const readablePorts = ports.filter(
    (portPolicy) => portPolicy !== 'unknown' && portPolicy !== undefined,
  ) as PortTrafficPolicy[];
  return { ...(tls && { tls }), ...(readablePorts.length > 0 && { portLevelSettings: readablePorts }) };
}

function closedPort(value: unknown): PortTrafficPolicy | 'unknown' | undefined {
  if (!hasField(value, 'tls')) return undefined;
  const { port, tls } = fieldsOf(value);
  const number = decodeIfValid(portNumber, fieldsOf(port).number);
  return number === undefined ? 'unknown' : { port: { number }, tls: tlsOf(tls) };
}

function tlsOf(value: unknown): ClientTlsSettings {
  return decodeIfValid(clientTls, value) ?? strictestTls;
}

const strictestTls: ClientTlsSettings = { mode: 'ISTIO_MUTUAL' };

const pluginFields = ['phase', 'failStrategy', 'type', 'match'] as const;

/** Blocks the traffic that a plugin for authentication or authorization would check. */
function closedPlugin(rejectedConfig: RejectedConfig): Placeholder | undefined {
  const writtenSpec = fieldsOf(rejectedConfig.spec);
  const readField = (name: (typeof pluginFields)[number]): unknown => {
    if (Object.hasOwn(writtenSpec, name)) return writtenSpec[name];
    return Object.entries(writtenSpec).find(([field]) => nearestName(field, pluginFields) === name)?.[1];
  };
  const phase = readField('phase');
  if (phase === undefined || phase === 'UNSPECIFIED_PHASE' || phase === 'STATS') return undefined;
  if (readField('failStrategy') === 'FAIL_OPEN') return undefined;
  const { isScopeKnown, scope } = scopeOf(rejectedConfig);
  const isNetwork = readField('type') === 'NETWORK';
  const match = rejectedConfig.isBroken ? undefined : decodeIfValid(wasmMatches, readField('match'));
  const spec: WasmPlugin = {
    ...scope,
    url: 'oci://refused',
    phase: phase === 'AUTHZ' ? 'AUTHZ' : 'AUTHN',
    ...(isNetwork && { type: 'NETWORK' }),
    ...(match && { match }),
  };
  return {
    ...{ kind: 'WasmPlugin', apiVersion: 'extensions.istio.io/v1alpha1', isScopeKnown, spec },
    effect: (scopeText) =>
      `${workloads(scope, rejectedConfig.namespace, scopeText)} deny every ${isNetwork ? 'connection' : 'request'} that the plugin would process`,
  };
}

/** Makes gateways' connections to the targets fail. Unreadable targets mean all Services of the namespace. */
function closedBackendTls({ spec: writtenSpec, isBroken, namespace }: RejectedConfig): Placeholder {
  const fields = fieldsOf(writtenSpec);
  const field = nearestName('targetRefs', Object.keys(fields));
  const writtenTargets = field === undefined ? undefined : fields[field];
  const list: readonly unknown[] = Array.isArray(writtenTargets) ? writtenTargets : [writtenTargets];
  const targets = list.length > maxBackendTlsTargets ? [] : list.map(serviceOf);
  const areTargetsReadable = !isBroken && targets.length > 0 && !targets.includes(undefined);
  const targetRefs = areTargetsReadable
    ? (targets as BackendTlsTarget[])
    : [{ group: '', kind: 'Service', name: everyService }];
  const names = targetRefs.map(({ name, sectionName }) => `${name}${sectionName ? ` port ${sectionName}` : ''}`);
  const services = areTargetsReadable ? `Service ${names.join(', ')}` : 'each Service';
  return {
    ...{ kind: 'BackendTLSPolicy', apiVersion: 'gateway.networking.k8s.io/v1', isScopeKnown: areTargetsReadable },
    spec: { targetRefs, validation: { hostname: '', caCertificateRefs: [], subjectAltNames: [] }, options: {} },
    effect: (scopeText) =>
      `requests from gateways to ${services} of ${namespace === undefined ? 'any namespace' : scopeText} get 503`,
  };
}

function serviceOf(value: unknown): BackendTlsTarget | undefined {
  const { group = '', kind: writtenKind = 'Service', name } = fieldsOf(value);
  const kind = typeof writtenKind === 'string' ? (nearestName(writtenKind, ['Service']) ?? writtenKind) : writtenKind;
  return decodeIfValid(backendTlsTarget, value) ?? decodeIfValid(backendTlsTarget, { group, kind, name });
}

interface ReadScope {
  readonly isScopeKnown: boolean;
  readonly scope: PolicyScope;
}

function scopeOf({ spec, isBroken, namespace }: RejectedConfig): ReadScope {
  const { selector, targetRef, targetRefs } = fieldsOf(spec);
  const setFields = [selector, targetRef, targetRefs].filter((setField) => setField !== undefined);
  if (!isObject(spec) || isBroken || setFields.length > 1) return { isScopeKnown: false, scope: {} };
  if (selector !== undefined) {
    const labels = decodeIfValid(scopeFields.selector.decoder, selector);
    return { isScopeKnown: labels !== undefined, scope: labels === undefined ? {} : { selector: labels } };
  }
  if (setFields.length === 0) return { isScopeKnown: true, scope: {} };
  const targets = decodeIfValid(scopeFields.targetRefs.decoder, targetRefs ?? [targetRef]);
  // A target in another namespace would never apply, so the scope counts as unknown.
  const targetsOwnNamespace =
    namespace !== undefined && targets?.every((target) => (target.namespace ?? namespace) === namespace);
  return targetsOwnNamespace
    ? { isScopeKnown: true, scope: { targetRefs: targets! } }
    : { isScopeKnown: false, scope: {} };
}

function workloads(
  { selector = {}, targetRefs = [] }: PolicyScope,
  namespace: string | undefined,
  scopeText: string,
): string {
  const labels = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
  if (targetRefs.length > 0)
    return targetRefs.map(({ kind, name }) => `${kind} ${name} of namespace ${namespace}`).join(', ');
  return `the workloads of ${scopeText}${labels.length > 0 ? ` with ${labels.join(', ')}` : ''}`;
}

function hasField(value: unknown, field: string): boolean {
  if (Array.isArray(value)) return value.some((item) => hasField(item, field));
  return Object.entries(fieldsOf(value)).some(
    ([key, element]) => nearestName(key, [field]) !== undefined || hasField(element, field),
  );
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

function decodeIfValid<A>(decoder: Decoder<A>, value: unknown): A | undefined {
  const result = decoder(value, '');
  return E.isRight(result) ? result.right : undefined;
}
