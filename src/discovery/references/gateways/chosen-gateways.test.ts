import { expect, it } from 'vitest';
import { validateFiles } from '../../config/validation/validate-files.ts';

function object(apiVersion: string, kind: string, name: string, spec: string): string {
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n---\n`;
}

async function problemsWith(code: string, ...documents: string[]): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: documents.join('') }]);
  return problems.filter((one) => one.code === code).map(({ object, field, line }) => `${object} ${field} ${line}`);
}

const routes = (gateways: string, matchGateways: string, list = 'http'): string =>
  object(
    'networking.istio.io/v1',
    'VirtualService',
    'v',
    `{hosts: [a.test], gateways: ${gateways}, ${list}: [{match: [{gateways: ${matchGateways}}], route: [{destination: {host: a}}]}]}`,
  );

it.each([
  ['a gateway that is misspelt', '[g, mesh]', '[gg]', 'http'],
  ['the mesh, which the VirtualService does not', '[g]', '[mesh]', 'tcp'],
  ['a gateway of another namespace with the same name', '[g]', '[edge/g]', 'http'],
])('validate reports a match that selects %s', async (_, gateways, matchGateways, list) => {
  expect(await problemsWith('GATEWAY_NOT_FOUND', routes(gateways, matchGateways, list))).toEqual([
    `VirtualService shop/v spec.${list}[0].match[0].gateways 4`,
  ]);
});

it.each([
  ['a gateway of the VirtualService', '[g, mesh]', '[g]'],
  ['the same gateway with its namespace', '[g]', '[shop/g]'],
  ['a gateway of the VirtualService and another one', '[g]', '[other, g]'],
  ['the mesh', '[mesh]', '[mesh]'],
])('validate does not report a match that selects %s', async (_, gateways, matchGateways) => {
  expect(await problemsWith('GATEWAY_NOT_FOUND', routes(gateways, matchGateways))).toEqual([]);
});

const secret =
  'apiVersion: v1\nkind: Secret\nmetadata: {name: client, namespace: shop}\nstringData: {ca.crt: ""}\n---\n';
const rule = (policy: string): string =>
  object('networking.istio.io/v1', 'DestinationRule', 'd', `{host: a.test, ${policy}}`);
const tls = (name: string, mode = 'SIMPLE'): string => `tls: {mode: ${mode}, credentialName: ${name}}`;

it.each([
  [`trafficPolicy: {${tls('absent')}}`, 'trafficPolicy.tls'],
  [
    `trafficPolicy: {portLevelSettings: [{port: {number: 443}, ${tls('absent', 'MUTUAL')}}]}`,
    'trafficPolicy.portLevelSettings[0].tls',
  ],
  [`subsets: [{name: s, trafficPolicy: {${tls('absent')}}}]`, 'subsets[0].trafficPolicy.tls'],
  [`workloadSelector: {matchLabels: {app: a}}, trafficPolicy: {${tls('absent')}}`, 'trafficPolicy.tls'],
])('validate reports a missing Secret in a DestinationRule if the files contain Secrets: %s', async (policy, at) => {
  expect(await problemsWith('CREDENTIAL_NOT_FOUND', secret, rule(policy))).toEqual([
    `DestinationRule shop/d spec.${at}.credentialName 9`,
  ]);
  expect(await problemsWith('CREDENTIAL_NOT_FOUND', secret, rule(policy.replace('absent', 'client')))).toEqual([]);
  expect(await problemsWith('CREDENTIAL_NOT_FOUND', rule(policy))).toEqual([]);
});
