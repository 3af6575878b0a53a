import type { JwtProvider } from '../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { ownValue } from '../../../runtime/json-object.ts';
import type { RoutedRequest } from '../route-match.ts';

export interface LocatedToken {
  readonly text: string;
  /** Issuers that accept tokens at this location. An empty string means any issuer. */
  readonly issuers: readonly string[];
}

interface TokenLocations {
  readonly headers: readonly { readonly name: string; readonly valuePrefix: string }[];
  readonly params: readonly string[];
  readonly cookies: readonly string[];
}

const defaultLocations: TokenLocations = {
  headers: [{ name: 'authorization', valuePrefix: 'Bearer ' }],
  params: ['access_token'],
  cookies: [],
};

/** Tokens in Envoy's order: headers, parameters, cookies. */
export function tokensInRequest(providers: readonly JwtProvider[], request: RoutedRequest): readonly LocatedToken[] {
  const tokensByLocation = new Map<string, { text: string; issuers: string[] }>();
  const addToken = (tokenLocation: string, text: string | undefined, issuer: string): void => {
    if (text === undefined) return;
    const cachedLocation = tokensByLocation.get(tokenLocation);
    if (cachedLocation === undefined) tokensByLocation.set(tokenLocation, { text, issuers: [issuer] });
    else cachedLocation.issuers.push(issuer);
  };
  const tokenLocations = providers.map((provider) => ({ issuer: provider.issuer, ...locationsOf(provider) }));
  for (const { issuer, headers } of tokenLocations) {
    for (const { name, valuePrefix } of headers) {
      const value = ownValue(request.headers, name.toLowerCase());
      addToken(`header ${name.toLowerCase()} ${valuePrefix}`, value && stripPrefix(value, valuePrefix), issuer);
    }
  }
  const query = new URLSearchParams(/\?([^#]*)/.exec(request.path)?.[1] ?? '');
  for (const { issuer, params } of tokenLocations) {
    for (const name of params) addToken(`parameter ${name}`, query.get(name) ?? undefined, issuer);
  }
  const cookies = cookiesOf(ownValue(request.headers, 'cookie') ?? '');
  for (const { issuer, cookies: names } of tokenLocations) {
    for (const name of names) addToken(`cookie ${name}`, cookies.get(name), issuer);
  }
  return [...tokensByLocation.values()];
}

function locationsOf({ fromHeaders, fromParams, fromCookies }: JwtProvider): TokenLocations {
  if (fromHeaders.length + fromParams.length + fromCookies.length === 0) return defaultLocations;
  return { headers: fromHeaders, params: fromParams, cookies: fromCookies };
}

function stripPrefix(value: string, prefix: string): string | undefined {
  if (prefix === '') return value;
  const separatorIndex = value.indexOf(prefix);
  return separatorIndex === -1 ? undefined : (/[\w.-]+/.exec(value.slice(separatorIndex + prefix.length))?.[0] ?? '');
}

function cookiesOf(header: string): ReadonlyMap<string, string> {
  const pairs = header.split(';').map((text) => text.trim().split('='));
  return new Map(pairs.map(([name = '', ...value]) => [name, value.join('=').replace(/^"(.*)"$/, '$1')]));
}
