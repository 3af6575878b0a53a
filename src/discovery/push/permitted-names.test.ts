import { describe, expect, it } from 'vitest';
import { permittedSecrets } from './permitted-names.ts';

describe('names of secrets that a client may ask for', () => {
  const names = ['kubernetes://web', 'kubernetes://shop/web', 'kubernetes://other/web', 'nonsense'];

  it('are those of the namespace that it is of', () => {
    expect(permittedSecrets(names, 'shop', 'shop')).toEqual(['kubernetes://web', 'kubernetes://shop/web']);
    expect(permittedSecrets(names, 'other', 'other')).toEqual(['kubernetes://web', 'kubernetes://other/web']);
  });

  it('are none when nobody knows who it is, or when it is of another namespace than its node says', () => {
    expect(permittedSecrets(names, undefined, 'shop')).toEqual([]);
    expect(permittedSecrets(['kubernetes://web'], 'other', 'shop')).toEqual([]);
  });

  it('are the same list for the same list, and all of them the list itself', () => {
    expect(permittedSecrets(names, 'shop', 'shop')).toBe(permittedSecrets(names, 'shop', 'shop'));
    const good = ['kubernetes://web'];
    expect(permittedSecrets(good, 'shop', 'shop')).toBe(good);
    expect(permittedSecrets(names, undefined, 'shop')).toBe(permittedSecrets(good, undefined, 'b'));
  });
});
