import { createHash } from 'node:crypto';

/** Of a set of roots in PEM: the same whatever their order, and however their lines are broken. */
export function hashOfRoots(roots: readonly string[]): string {
  const each = roots.map((root) => createHash('sha256').update(root.replaceAll(/\s+/g, '')).digest('hex'));
  return createHash('sha256')
    .update([...new Set(each)].sort().join('\n'))
    .digest('hex');
}
