import { expect, it } from 'vitest';
import { validateFiles } from '../../discovery/config/validation/validate-files.ts';

const httpRoute = (type: string, value: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec: {parentRefs: [{name: edge}], rules: [{matches: [{path: {type: ${type}, value: "${value}"}}], backendRefs: [{name: a, port: 80}]}]}
`;
const ingress = (pathType: string, path: string): string => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {ingressClassName: istio, rules: [{http: {paths: [{path: "${path}", pathType: ${pathType}, backend: {service: {name: a, port: {number: 80}}}}]}}]}
`;

it.each([
  [
    'a prefix of an HTTPRoute',
    httpRoute('PathPrefix', '/api/*'),
    'spec.rules[0].matches[0].path.value',
    'value: /api for',
  ],
  ['an exact path of an HTTPRoute', httpRoute('Exact', '/a/*/b'), 'spec.rules[0].matches[0].path.value', 'regular'],
  ['a prefix of an Ingress', ingress('Prefix', '/api/*'), 'spec.rules[0].http.paths[0].path', 'path: /api/ for'],
  ['an exact path of an Ingress', ingress('Exact', '/*'), 'spec.rules[0].http.paths[0].path', 'path: / for'],
])('validate reports %s with a literal *, and suggests the intended prefix', async (_, text, field, advice) => {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text }]);
  const doubtful = problems.filter(({ code }) => code === 'FIELD_DOUBTFUL');
  expect(doubtful).toEqual([expect.objectContaining({ field, message: expect.stringContaining(advice) })]);
});

it.each([
  ['a regular expression', httpRoute('RegularExpression', '/api/.*')],
  ['the wildcard path of an Ingress with pathType ImplementationSpecific', ingress('ImplementationSpecific', '/api/*')],
])('validate does not report %s', async (_, text) => {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text }]);
  expect(problems.filter(({ code }) => code === 'FIELD_DOUBTFUL')).toEqual([]);
});
