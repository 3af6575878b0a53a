import type {
  JwtAuthenticationSchema,
  JwtProviderSchema,
  JwtRequirementSchema,
} from '../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { compareText } from '../../model/config/config.ts';
import type { JwtRule } from '../../model/kinds/policies/request-authentication.ts';
import type { ConnectionContext } from '../inputs/connection-context.ts';
import type { Init } from '../messages/init.ts';
import { keySetText } from './key-set-text.ts';
import { payloadKey } from './token-metadata.ts';

type Requirement = Init<typeof JwtRequirementSchema>;

/** OAuth claims that are space-separated lists (RFC 8693 §4.2), of which policies match single items. */
const spacedClaims = ['permission', 'scope'];

/** Accepts requests without a token, on which AuthorizationPolicies decide, and requests whose tokens are all valid. */
export function jwtAuthentication({
  policies,
  direction,
}: ConnectionContext): Init<typeof JwtAuthenticationSchema> | undefined {
  const rules = policies.requestAuthentications
    .flatMap(({ spec }) => spec.jwtRules)
    .toSorted((a, b) => compareText(a.issuer, b.issuer));
  if (rules.length === 0) return undefined;
  // Only routes of gateways match claims.
  const namedProviders = rules.map(
    (rule, index) => [`origins-${index}`, provider(rule, direction === 'gateway')] as const,
  );
  return {
    providers: Object.fromEntries(namedProviders),
    rules: [
      {
        match: { pathSpecifier: { case: 'prefix', value: '/' } },
        requirementType: {
          case: 'requires',
          value: requirementOf(
            namedProviders.map(([name], index) => ({ name, isRequired: rules[index]!.presence === 'REQUIRED' })),
          ),
        },
      },
    ],
    bypassCorsPreflight: true,
  };
}

function requirementOf(providers: readonly { readonly name: string; readonly isRequired: boolean }[]): Requirement {
  const requirements = providers.map(
    ({ name }): Requirement => ({ requiresType: { case: 'providerName', value: name } }),
  );
  const [firstRequirement, ...otherRequirements] = requirements;
  if (providers.some(({ isRequired }) => isRequired)) {
    const allRequirements = requirements.map((requirement, index) =>
      providers[index]!.isRequired ? requirement : allowMissingToken(requirement),
    );
    return otherRequirements.length === 0
      ? firstRequirement!
      : { requiresType: { case: 'requiresAll', value: { requirements: allRequirements } } };
  }
  if (otherRequirements.length === 0) return allowMissingToken(firstRequirement!);
  const all = [firstRequirement!, ...otherRequirements];
  return anyOf([
    ...all,
    { requiresType: { case: 'requiresAll', value: { requirements: all.map(allowMissingToken) } } },
  ]);
}

function allowMissingToken(requirement: Requirement): Requirement {
  return anyOf([requirement, allowMissing]);
}

const allowMissing: Requirement = { requiresType: { case: 'allowMissing', value: {} } };

function anyOf(requirements: Requirement[]): Requirement {
  return { requiresType: { case: 'requiresAny', value: { requirements } } };
}

function provider(rule: JwtRule, clearRouteCache: boolean): Init<typeof JwtProviderSchema> {
  const { outputPayloadToHeader, outputClaimToHeaders = [], spaceDelimitedClaims = [] } = rule;
  return {
    issuer: rule.issuer,
    audiences: [...(rule.audiences ?? [])],
    jwksSourceSpecifier: {
      case: 'localJwks',
      value: { specifier: { case: 'inlineString', value: keySetText(rule) } },
    },
    forward: rule.forwardOriginalToken ?? false,
    fromHeaders: (rule.fromHeaders ?? []).map(({ name, prefix }) => ({ name, valuePrefix: prefix ?? '' })),
    fromParams: [...(rule.fromParams ?? [])],
    fromCookies: [...(rule.fromCookies ?? [])],
    ...(outputPayloadToHeader && { forwardPayloadHeader: outputPayloadToHeader }),
    claimToHeaders: outputClaimToHeaders.map(({ header, claim }) => ({ headerName: header, claimName: claim })),
    payloadInMetadata: payloadKey,
    normalizePayloadInMetadata: { spaceDelimitedClaims: [...new Set([...spacedClaims, ...spaceDelimitedClaims])] },
    ...(clearRouteCache && { clearRouteCache }),
  };
}
