/** Claims of verified JWTs in header matches: `@request.auth.claims.groups`, `@request.auth.claims[a.b][c]` (§8.6). */

export const claimPrefix = '@request.auth.claims';

export function isClaimKey(key: string): boolean {
  return key.startsWith('@');
}

/** Keys from the token's payload to the claim; `undefined` for a key that does not name a claim. */
export function claimPath(key: string): readonly string[] | undefined {
  if (!key.startsWith(claimPrefix)) return undefined;
  const rest = key.slice(claimPrefix.length);
  if (rest.startsWith('.')) {
    const path = rest.slice(1).split('.');
    return path.includes('') ? undefined : path;
  }
  if (!/^(\[[^[\]]+\])+$/.test(rest)) return undefined;
  return rest.slice(1, -1).split('][');
}
