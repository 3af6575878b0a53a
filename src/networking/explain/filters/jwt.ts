import type {
  JwtAuthentication,
  JwtProvider,
  JwtRequirement,
  PerRouteConfig,
} from '../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { matchesRoute, type RoutedRequest } from '../route-match.ts';
import { isPreflight } from './cors.ts';
import { type FilterResult, UndecidedError } from './filter-result.ts';
import { tokensInRequest } from './jwt-locations.ts';
import {
  type JsonWebToken,
  parseToken,
  type TokenError,
  tokenError,
  type VerifiedToken,
  type VerifyOptions,
} from './jwt-token.ts';

interface Verification {
  readonly error?: TokenError;
  readonly verifiedTokens: readonly VerifiedToken[];
}

export interface JwtResult {
  readonly filterResult: FilterResult;
  readonly verifiedTokens: readonly VerifiedToken[];
}

const passedResult: JwtResult = { filterResult: undefined, verifiedTokens: [] };

/** @throws UndecidedError if Envoy fetches the keys */
export function evaluateJwt(
  filter: JwtAuthentication,
  perRoute: PerRouteConfig | undefined,
  request: RoutedRequest,
  options: VerifyOptions,
): JwtResult {
  if (filter.bypassCorsPreflight && isPreflight(request)) return passedResult;
  const requirement = requirementFor(filter, perRoute, request);
  if (requirement === undefined) return passedResult;
  const verifier = new Verifier(filter, request, options);
  const { error, verifiedTokens } = verifier.verify(requirement);
  if (error === undefined) return { filterResult: undefined, verifiedTokens };
  const status = error === 'for another audience' ? 403 : 401;
  const reason = error === 'missing' ? 'the request has no token' : `the token is ${error}`;
  const details = 'jwt_authn_access_denied';
  return { filterResult: { outcome: { kind: 'denied', status, details, why: reason } }, verifiedTokens: [] };
}

function requirementFor(
  { rules, requirementMap, filterStateRules }: JwtAuthentication,
  perRoute: PerRouteConfig | undefined,
  request: RoutedRequest,
): JwtRequirement | undefined {
  if (perRoute?.requirementSpecifier.case === 'disabled' && perRoute.requirementSpecifier.value) return undefined;
  if (perRoute?.requirementSpecifier.case === 'requirementName')
    return requirementMap[perRoute.requirementSpecifier.value];
  if (filterStateRules) throw new UndecidedError('the filter state of another filter selects the required tokens');
  const rule = rules.find(({ match }) => match !== undefined && matchesRoute(match, request));
  const requirementKind = rule?.requirementType;
  return requirementKind?.case === 'requirementName' ? requirementMap[requirementKind.value] : requirementKind?.value;
}

class Verifier {
  readonly #providers: JwtAuthentication['providers'];
  readonly #request: RoutedRequest;
  readonly #options: VerifyOptions;

  constructor({ providers }: JwtAuthentication, request: RoutedRequest, options: VerifyOptions) {
    this.#providers = providers;
    this.#request = request;
    this.#options = options;
  }

  verify({ requiresType: requirementType }: JwtRequirement): Verification {
    switch (requirementType.case) {
      case 'providerName':
        return this.#verifyByProvider(this.#providerNamed(requirementType.value));
      case 'providerAndAudiences': {
        const { providerName, audiences } = requirementType.value;
        return this.#verifyByProvider({ ...this.#providerNamed(providerName), audiences });
      }
      case 'requiresAny':
        return this.#verifyAny(requirementType.value.requirements);
      case 'requiresAll':
        return this.#verifyAll(requirementType.value.requirements);
      case 'allowMissing':
        return this.#verifyUnlessMissing(Object.values(this.#providers));
      case 'allowMissingOrFailed':
        return { verifiedTokens: this.#verifyUnlessMissing(Object.values(this.#providers)).verifiedTokens };
      default:
        return { verifiedTokens: [] };
    }
  }

  #providerNamed(name: string): JwtProvider {
    const provider = this.#providers[name];
    if (provider === undefined) throw new UndecidedError(`there is no provider ${name}`);
    return provider;
  }

  #verifyByProvider(provider: JwtProvider): Verification {
    const tokens = tokensInRequest([provider], this.#request);
    if (tokens.length === 0) return { error: 'missing', verifiedTokens: [] };
    const verifiedTokens: VerifiedToken[] = [];
    for (const { text, issuers } of tokens) {
      const token = parseToken(text);
      const error = token === undefined ? 'malformed' : this.#errorOf(token, provider, issuers);
      if (error !== undefined) return { error, verifiedTokens: [] };
      verifiedTokens.push({ provider, text, claims: token!.claims });
    }
    return { verifiedTokens: verifiedTokens };
  }

  #errorOf(token: JsonWebToken, provider: JwtProvider, issuers: readonly string[]): TokenError | undefined {
    const issuer = String(token.claims.iss ?? '');
    if (!issuers.some((allowedIssuer) => allowedIssuer === '' || allowedIssuer === issuer))
      return 'of an unknown issuer';
    return tokenError(token, provider, this.#options);
  }

  #verifyAll(requirements: readonly JwtRequirement[]): Verification {
    const verifiedTokens: VerifiedToken[] = [];
    for (const requirement of requirements) {
      const result = this.verify(requirement);
      if (result.error !== undefined) return result;
      verifiedTokens.push(...result.verifiedTokens);
    }
    return { verifiedTokens: verifiedTokens };
  }

  /** Tries `allow_missing` and `allow_missing_or_failed` last. They use only the locations of their own providers. */
  #verifyAny(requirements: readonly JwtRequirement[]): Verification {
    const tokenRequirements = requirements.filter(({ requiresType }) => !isBypassRequirement(requiresType.case));
    const bypassRequirements = requirements.filter(({ requiresType }) => isBypassRequirement(requiresType.case));
    let error: TokenError = 'missing';
    for (const requirement of tokenRequirements) {
      const result = this.verify(requirement);
      if (result.error === undefined) return result;
      if (error === 'missing' || error === 'of an unknown issuer' || !isLessSpecificError(result.error))
        error = result.error;
    }
    if (bypassRequirements.length === 0) return { error, verifiedTokens: [] };
    const namedProviders = tokenRequirements.flatMap(({ requiresType: type }) =>
      type.case === 'providerName' ? [this.#providerNamed(type.value)] : [],
    );
    const result = this.#verifyUnlessMissing(
      namedProviders.length > 0 ? namedProviders : Object.values(this.#providers),
    );
    const toleratesErrors = bypassRequirements.some(({ requiresType }) => requiresType.case === 'allowMissingOrFailed');
    if (result.error === undefined || toleratesErrors) return { verifiedTokens: result.verifiedTokens };
    return { error: isLessSpecificError(result.error) ? error : result.error, verifiedTokens: [] };
  }

  #verifyUnlessMissing(providers: readonly JwtProvider[]): Verification {
    const verifiedTokens: VerifiedToken[] = [];
    let error: TokenError | undefined;
    for (const { text, issuers } of tokensInRequest(providers, this.#request)) {
      const token = parseToken(text);
      const issuer = String(token?.claims.iss ?? '');
      const provider = Object.values(this.#providers).find(
        (candidate) => candidate.issuer === issuer || candidate.issuer === '',
      );
      if (token === undefined) error = 'malformed';
      else error = provider === undefined ? 'of an unknown issuer' : this.#errorOf(token, provider, issuers);
      if (error === undefined && provider !== undefined) verifiedTokens.push({ provider, text, claims: token!.claims });
    }
    return { verifiedTokens: verifiedTokens, ...(error !== undefined && { error }) };
  }
}

function isBypassRequirement(type: JwtRequirement['requiresType']['case']): boolean {
  return type === 'allowMissing' || type === 'allowMissingOrFailed';
}

/** Whether another provider's error has priority over this one. */
function isLessSpecificError(error: TokenError): boolean {
  return error === 'missing' || error === 'of an unknown issuer';
}
