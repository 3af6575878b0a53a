/** `validate` reports each error once: no two problems of a field have the same meaning. */
import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { faultyObjects } from '../../../../test/fixtures/objects-with-warnings.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { reachCodes } from '../../../model/isolation/cross-namespace-reach.ts';
import { packageRoot } from '../../../runtime/package-root.ts';
import { validateFiles } from './validate-files.ts';

/** Pairs of problems at one field that are different errors, each with its own correction. */
const differentFaults: readonly (readonly [RegExp, RegExp])[] = [
  // Whether a patch applies, and the order of patches.
  [/^PATCH_NOT_APPLIED/, /INSERT_BEFORE depends on other EnvoyFilters/],
  // Certificates of the object, and an unsupported field.
  [/no reference has a valid CA certificate/, /^FIELD_WITHOUT_EFFECT/],
  // Content of a Secret, and its other users.
  [/has no entries tls\.crt and tls\.key/, /^CERTIFICATE_SHARED/],
];

const reach: ReadonlySet<string | undefined> = new Set<string>(reachCodes);

const meaningOf = ({ code, message }: Problem): string => `${code ?? ''} ${message}`;

function isWithin(field: string, outer: string): boolean {
  return field === outer || outer === '' || field.startsWith(`${outer}.`) || field.startsWith(`${outer}[`);
}

function isOnSameField(one: Problem, other: Problem): boolean {
  const [a = '', b = ''] = [one.field, other.field];
  if (one.object === undefined || one.object !== other.object) return false;
  if (!isWithin(a, b) && !isWithin(b, a)) return false;
  // The effect of an object on other namespaces is a separate error.
  if (reach.has(one.code) !== reach.has(other.code)) {
    return [one.code, other.code].includes('rules-foreign-host') && [one.code, other.code].includes('RULE_NOT_APPLIED');
  }
  const isPair = ([first, secondPattern]: readonly [RegExp, RegExp], x: Problem, y: Problem): boolean =>
    first.test(meaningOf(x)) && secondPattern.test(meaningOf(y));
  return !differentFaults.some((pair) => isPair(pair, one, other) || isPair(pair, other, one));
}

async function repeatedIn(file: string, text: string): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file, text }]);
  return problems.flatMap((one, index) =>
    problems
      .slice(index + 1)
      .filter((other) => isOnSameField(one, other))
      .map((other) => `${one.object} ${one.field}: ${meaningOf(one)} | ${other.field}: ${meaningOf(other)}`),
  );
}

const files = globSync(['test/fields/worlds/*.yaml', 'test/networking/cases/*.in.yaml'], { cwd: packageRoot() });

it.each(files.sort())('validate reports each error of %s once', async (file) => {
  expect(await repeatedIn(file, readFileSync(`${packageRoot()}/${file}`, 'utf8'))).toEqual([]);
});

it.each(faultyObjects)('validate reports the error $code once: $fault', async ({ yaml }) => {
  expect(await repeatedIn('mesh.yaml', yaml)).toEqual([]);
});

const httpRoute = (apiKind: string, filters: string): string => `
apiVersion: v1
kind: Service
metadata: {name: a, namespace: shop}
spec: {clusterIP: 10.0.0.1, ports: [{port: 80, name: http}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ${apiKind}
metadata: {name: web, namespace: shop}
spec: {parentRefs: [{name: edge}], rules: [{${filters}}]}
`;
const backend = 'backendRefs: [{name: a, port: 80';
const extension = 'filters: [{type: ExtensionRef, extensionRef: {group: x.test, kind: X, name: x}}]';
const cors = 'filters: [{type: CORS, cors: {allowOrigins: ["https://a.test"]}}]';

it.each([
  ['an extension filter of a rule', 'HTTPRoute', `${extension}, ${backend}}]`, 'filters[0]'],
  ['a CORS filter of a rule', 'HTTPRoute', `${cors}, ${backend}}]`, 'filters[0]'],
  ['an extension filter of a backend', 'HTTPRoute', `${backend}, ${extension}}]`, 'backendRefs[0].filters[0]'],
  ['an extension filter of a GRPCRoute', 'GRPCRoute', `${extension}, ${backend}}]`, 'filters[0]'],
])('validate reports an unsupported filter once, at the filter: %s', async (_, kind, filters, field) => {
  const text = httpRoute(kind, filters);
  const { problems } = await validateFiles([], [{ file: 'mesh.yaml', text }]);
  expect(problems.map((problem) => `${problem.code} ${problem.field}`)).toEqual([
    `NOT_PROGRAMMED spec.rules[0].${field}`,
  ]);
});

it('validate reports an unsupported filter at its field if the route has no Gateway', async () => {
  const text = httpRoute('HTTPRoute', `${extension}, ${backend}}]`).replace(/kind: Gateway\n/, 'kind: GatewayX\n');
  const { problems } = await validateFiles([], [{ file: 'mesh.yaml', text }]);
  expect(problems.map(({ code, field }) => `${code} ${field}`)).toContain(
    'FIELD_WITHOUT_EFFECT spec.rules[0].filters[0].extensionRef',
  );
});
