import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readConfigFile } from '../../model/config/config-file.ts';
import { problemText } from '../../model/config/problem.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { ConfigReviews } from './config-reviews.ts';

const createReviews = (): ConfigReviews => new ConfigReviews({ log: silentLogger, now: () => 0 });

const entry = (spec: unknown, extraFields: object = {}) => ({
  ...{
    apiVersion: 'networking.istio.io/v1',
    kind: 'ServiceEntry',
    metadata: { name: 'cart', namespace: 'shop' },
    spec,
  },
  ...extraFields,
});
const valid = { hosts: ['cart.test'], ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], resolution: 'DNS' };
const invalidSpec = { ...valid, hosts: ['not a host'], ports: [{ number: 70_000, name: 'http', protocol: 'HTTP' }] };

const review = (object: unknown, request: object = {}) => ({
  ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
  request: {
    ...{ uid: 'u1', operation: 'CREATE', namespace: 'shop', name: 'cart', object },
    kind: { group: 'networking.istio.io', version: 'v1', kind: 'ServiceEntry' },
    ...request,
  },
});

test('a valid object is allowed', () => {
  const reviews = createReviews();
  expect(reviews.review(review(entry(valid))).response).toEqual({ uid: 'u1', allowed: true });
  expect([...reviews.passed]).toEqual([['networking.istio.io/serviceentries', 1]]);
});

test.each(['CREATE', 'UPDATE'])(
  'a %s of an invalid object is rejected with the errors of pilot-discovery validate',
  (operation) => {
    const { problems } = readConfigFile('', JSON.stringify(entry(invalidSpec)), { creationTimestamp: 0 });
    const errors = problems.filter(({ severity }) => severity === 'error').map(({ message }) => message);
    expect(errors.length).toBeGreaterThan(1);
    const reviews = createReviews();
    const { response } = reviews.review(review(entry(invalidSpec), { operation }));
    expect(response).toMatchObject({ uid: 'u1', allowed: false, status: { code: 422 } });
    for (const error of errors) expect(response.status?.message).toContain(error);
    expect(response.status?.message).toContain('ServiceEntry shop/cart: spec.');
    expect([...reviews.failed]).toEqual([['networking.istio.io/serviceentries', 1]]);
    expect(reviews.review(review(entry(invalidSpec), { operation, dryRun: true })).response).toEqual(response);
  },
);

test('warnings of pilot-discovery validate are sent to the client', () => {
  const object = entry(valid, { metadata: { name: 'cart', namespace: 'shop', labels: { 'istio.io/revv': 'a' } } });
  const { problems } = readConfigFile('', JSON.stringify(object), { creationTimestamp: 0 });
  const { response } = createReviews().review(review(object));
  expect(response).toMatchObject({ allowed: true });
  expect(problems).toHaveLength(1);
  expect(response.warnings).toEqual([problemText({ ...problems[0]!, file: '' })]);
});

test('an object that requests its own rejection is rejected, to prove that the webhook is called', () => {
  const annotations = { 'internal.istio.io/webhook-always-reject': 'true' };
  const object = entry(valid, { metadata: { name: 'cart', namespace: 'shop', annotations } });
  expect(createReviews().review(review(object)).response).toMatchObject({ allowed: false });
});

test.each(['DELETE', 'CONNECT'])('a %s is allowed without review', (operation) => {
  expect(createReviews().review(review(null, { operation })).response).toEqual({ uid: 'u1', allowed: true });
});

test('an unknown kind, an unknown field next to the spec, or a missing object is rejected', () => {
  const reviews = createReviews();
  const messageOf = (body: unknown): string | undefined => reviews.review(body).response.status?.message;
  expect(messageOf(review(entry(valid), { kind: { group: 'apps', kind: 'Deployment' } }))).toContain('apps/Deployment');
  expect(messageOf(review(entry(valid, { sepc: {} })))).toContain('sepc');
  expect(messageOf(review(undefined))).toBeDefined();
  expect(messageOf({})).toContain('AdmissionReview');
  expect([...reviews.passed]).toEqual([]);
});

test('an object whose name will be generated after the review is allowed', () => {
  const object = entry(valid, { metadata: { generateName: 'cart-' } });
  expect(createReviews().review(review(object, { name: '' })).response).toEqual({ uid: 'u1', allowed: true });
});

test('every request to /validate gets a response', () => {
  const reviews = createReviews();
  const json = fc.jsonValue({ maxDepth: 3 });
  const request = fc.record({
    operation: fc.constantFrom('CREATE', 'UPDATE'),
    object: json,
    namespace: json,
    name: json,
  });
  fc.assert(
    fc.property(request, fc.record({ metadata: json, spec: json }), (fields, randomParts) => {
      for (const object of [fields.object, entry(randomParts.spec), entry(valid, { metadata: randomParts.metadata })]) {
        expect(typeof reviews.review(review(object, { ...fields, object })).response.allowed).toBe('boolean');
      }
    }),
    { numRuns: 200 },
  );
});
