/** Claims of verified tokens in header matches: `@request.auth.claims.groups`, `@request.auth.claims[a.b][c]` (§8.6). */

export const claimPrefix = '@request.auth.claims';

export function isClaimKey(key: string): boolean {
  return key.startsWith('@');
}

/** The keys from the token's body down to the claim; undefined for a key that names none. */
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
