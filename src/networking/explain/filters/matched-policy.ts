/** Evaluates RBAC rules as Envoy does (Envoy's docs: config.rbac.v3). */
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { CidrRange } from '../../../gen/envoy/config/core/v3/address_pb.ts';
import type { TypedExtensionConfig } from '../../../gen/envoy/config/core/v3/extension_pb.ts';
import {
  RBAC_Action as Action,
  type Permission,
  type Policy,
  type Principal,
  type Principal_Authenticated,
  type RBAC,
} from '../../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import type { HeaderMatcher } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { UriTemplateMatchConfigSchema } from '../../../gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.ts';
import type { PathMatcher } from '../../../gen/envoy/type/matcher/v3/path_pb.ts';
import { regexLiteral } from '../../authorization/text-matcher.ts';
import { isInCidr } from '../filter-chain-match.ts';
import { headerOf } from '../route-match.ts';
import { matchesHeader, matchesString } from '../string-matches.ts';
import { UndecidedError } from './filter-result.ts';
import { hasMetadata, type Subject } from './subject.ts';

export interface RulesResult {
  readonly isAllowed: boolean;
  /** The first matching policy, in order of names. */
  readonly policy?: string;
}

/** @throws UndecidedError if a condition depends on a fact that is missing in the question */
export function decideRules({ action, policies }: RBAC, subject: Subject): RulesResult {
  const names = Object.keys(policies).sort();
  const policy = names.find((name) => matchesPolicy(policies[name]!, subject));
  const isAllowed = action === Action.LOG || (action === Action.ALLOW) === (policy !== undefined);
  return { isAllowed, ...(policy !== undefined && { policy }) };
}

function matchesPolicy({ permissions, principals, condition, checkedCondition }: Policy, subject: Subject): boolean {
  const matches =
    permissions.some((permission) => matchesPermission(permission, subject)) &&
    principals.some((principal) => matchesPrincipal(principal, subject));
  if (matches && (condition ?? checkedCondition)) throw new UndecidedError('a policy has a CEL condition');
  return matches;
}

function matchesPermission({ rule }: Permission, subject: Subject): boolean {
  switch (rule.case) {
    case 'any':
      return rule.value;
    case 'andRules':
      return rule.value.rules.every((nestedRule) => matchesPermission(nestedRule, subject));
    case 'orRules':
      return rule.value.rules.some((nestedRule) => matchesPermission(nestedRule, subject));
    case 'notRule':
      return !matchesPermission(rule.value, subject);
    case 'header':
      return matchesHeaderOf(rule.value, subject);
    case 'urlPath':
      return matchesPath(rule.value, subject);
    case 'uriTemplate':
      return matchesTemplate(rule.value, subject);
    case 'destinationIp':
      return isInRange(subject.question.destination.address, rule.value, '--address');
    case 'destinationPort':
      return subject.question.destination.port === rule.value;
    case 'destinationPortRange':
      return (
        subject.question.destination.port >= rule.value.start && subject.question.destination.port < rule.value.end
      );
    case 'requestedServerName':
      return matchesString(rule.value, subject.inspected.serverName);
    case 'metadata':
      return hasMetadata(rule.value, subject);
    case 'sourcedMetadata':
      return hasMetadata(rule.value.metadataMatcher, subject);
    default:
      throw new UndecidedError(`a policy has a permission of type ${rule.case ?? 'unknown'}`);
  }
}

function matchesPrincipal({ identifier }: Principal, subject: Subject): boolean {
  switch (identifier.case) {
    case 'any':
      return identifier.value;
    case 'andIds':
      return identifier.value.ids.every((nestedId) => matchesPrincipal(nestedId, subject));
    case 'orIds':
      return identifier.value.ids.some((nestedId) => matchesPrincipal(nestedId, subject));
    case 'notId':
      return !matchesPrincipal(identifier.value, subject);
    case 'authenticated':
      return isAuthenticated(identifier.value, subject);
    case 'sourceIp':
    case 'directRemoteIp':
      return isInRange(subject.question.source?.address, identifier.value, '--source');
    case 'remoteIp':
      return isInRange(subject.remoteAddress ?? subject.question.source?.address, identifier.value, '--source');
    case 'header':
      return matchesHeaderOf(identifier.value, subject);
    case 'urlPath':
      return matchesPath(identifier.value, subject);
    case 'metadata':
      return hasMetadata(identifier.value, subject);
    case 'sourcedMetadata':
      return hasMetadata(identifier.value.metadataMatcher, subject);
    default:
      throw new UndecidedError(`a policy has a principal of type ${identifier.case ?? 'unknown'}`);
  }
}

/** Without a principal name, the matcher accepts any TLS connection. A client without a certificate has an empty name. */
function isAuthenticated({ principalName }: Principal_Authenticated, { tls }: Subject): boolean {
  if (tls === undefined) return false;
  return principalName === undefined || matchesString(principalName, tls.principal ?? '');
}

function isInRange(address: string | undefined, range: CidrRange, flag: string): boolean {
  if (address === undefined) throw new UndecidedError(`a policy matches an IP address that is not known; set ${flag}`);
  return isInCidr(address, range);
}

function matchesHeaderOf(matcher: HeaderMatcher, { request }: Subject): boolean {
  return matchesHeader(matcher, request && headerOf(request, matcher.name.toLowerCase()));
}

function matchesPath({ rule }: PathMatcher, { request }: Subject): boolean {
  return request !== undefined && rule.case === 'path' && matchesString(rule.value, stripQuery(request.path));
}

function stripQuery(path: string): string {
  return path.replace(/[?#].*$/s, '');
}

/** `*` matches one path segment, `**` any number. */
function matchesTemplate({ typedConfig }: TypedExtensionConfig, { request }: Subject): boolean {
  const template = typedConfig && anyUnpack(typedConfig, UriTemplateMatchConfigSchema)?.pathTemplate;
  if (template === undefined) throw new UndecidedError('a policy matches paths by an extension');
  const pattern = template
    .split(/(\*\*|\*)/)
    .map((segment) => (segment === '**' ? '.*' : segment === '*' ? '[^/]+' : regexLiteral(segment)))
    .join('');
  return request !== undefined && new RegExp(`^${pattern}$`, 's').test(stripQuery(request.path));
}
