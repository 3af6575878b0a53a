import { expect, test } from 'vitest';
import { parseImageUrl } from './image-reference.ts';

const digest = 'a'.repeat(64);
const hub = 'index.docker.io';

test.each([
  ['oci://ghcr.io/team/plugin:v1', { registry: 'ghcr.io', repository: 'team/plugin', reference: 'v1', digest: '' }],
  ['oci://127.0.0.1:5000/a', { registry: '127.0.0.1:5000', repository: 'a', reference: 'latest', digest: '' }],
  ['oci://localhost/a', { registry: 'localhost', repository: 'a', reference: 'latest', digest: '' }],
  ['oci://[::1]:5000/a:b', { registry: '[::1]:5000', repository: 'a', reference: 'b', digest: '' }],
  ['OCI://Reg.Test/a:B', { registry: 'reg.test', repository: 'a', reference: 'B', digest: '' }],
  ['oci://team/plugin', { registry: hub, repository: 'team/plugin', reference: 'latest', digest: '' }],
  ['oci://docker.io/plugin:1', { registry: hub, repository: 'library/plugin', reference: '1', digest: '' }],
  [
    `oci://reg.test/a/b:v1@sha256:${digest}`,
    { registry: 'reg.test', repository: 'a/b', reference: `sha256:${digest}`, digest },
  ],
])('accepts the image name %s', (url, image) => {
  expect(parseImageUrl(url)).toEqual(image);
});

test.each([
  ['oci://reg.test/', 'invalid repository ""'],
  ['oci://reg.test/a/../b', 'invalid repository "a/../b"'],
  ['oci://reg.test/a?b=c', 'invalid repository "a?b=c"'],
  ['oci://reg.test\\@other.test/a', 'invalid'],
  ['oci://-.:x/a', 'invalid registry "-.:x"'],
  ['oci://reg.test/a:b/c', 'invalid'],
  ['oci://reg.test/a:', 'invalid tag ""'],
  ['oci://reg.test/a@sha512:00', 'digest of the image must be sha256'],
  [`oci://reg.test/${'a'.repeat(2_000)}`, 'at most 1024 characters'],
])('rejects the image name %s', (url, message) => {
  expect(() => parseImageUrl(url)).toThrow(message);
});
