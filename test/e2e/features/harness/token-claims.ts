/** What Envoy's JWT filter keeps of a bearer token for the routes: its claims. Whether it is valid is not looked at. */

const filter = 'envoy.filters.http.jwt_authn';

/** @param authorization value of the header; undefined when there is no token in it */
export function claimsOf(authorization: string | undefined): Readonly<Record<string, unknown>> | undefined {
  const [, payload] = /^Bearer [^.]+\.([^.]+)\./i.exec(authorization ?? '') ?? [];
  if (payload === undefined) return undefined;
  try {
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
    // By default, and by the issuer, which is how this control plane names payloads.
    return { [filter]: { payload: claims, [String(claims.iss)]: claims } };
  } catch {
    return undefined;
  }
}
