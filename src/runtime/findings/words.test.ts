import { expect, test } from 'vitest';
import { fileName } from './words.ts';

test.each([
  ['/etc/certs/tls.crt', 'tls.crt'],
  ['tls.crt', 'tls.crt'],
  ['/etc/certs/..2026_11_29_08_10_13.1', 'certs/'],
  ['/etc/certs/..data/tls.crt', 'certs/'],
  ['../certs/tls.crt', 'tls.crt'],
  ['/', '/'],
])('fileName returns for %s the name of the file or of its Kubernetes volume: %s', (path, name) => {
  expect(fileName(path)).toBe(name);
});
