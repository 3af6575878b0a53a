/** Parses claims of verified JWTs in header matches, such as `@request.auth.claims.groups` and `@request.auth.claims[a.b][c]`. */

export const claimPrefix = '@request.auth.claims';

export function isClaimKey(key: string): boolean {
  return key.startsWith('@');
}

export function claimPath(key: string): readonly string[] | undefined {
  if (!key.startsWith(claimPrefix)) return undefined;
  const suffix = key.slice(claimPrefix.length);
  if (suffix.startsWith('.')) {
    const path = suffix.slice(1).split('.');
    return path.includes('') ? undefined : path;
  }
  if (!/^(\[[^[\]]+\])+$/.test(suffix)) return undefined;
  return suffix.slice(1, -1).split('][');
}
