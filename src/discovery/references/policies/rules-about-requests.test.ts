/** Compares reports about request fields and workload ports with the generated rules. */
import { expect, it } from 'vitest';
import { validateFiles } from '../../config/validation/validate-files.ts';

function object(kind: string, name: string, spec: string): string {
  const group = kind === 'Deployment' ? 'apps/v1' : kind === 'Service' ? 'v1' : 'security.istio.io/v1';
  return `apiVersion: ${group}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n---\n`;
}

const workload = (ports: string): string =>
  object(
    'Deployment',
    'db',
    `{template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, ports: [${ports}]}]}}}`,
  );
const service = (...ports: string[]): string =>
  object('Service', 'db', `{clusterIP: 10.0.0.1, selector: {app: db}, ports: [${ports.join(', ')}]}`);
const policy = (rule: string, action = 'DENY'): string =>
  object('AuthorizationPolicy', 'p', `{selector: {matchLabels: {app: db}}, action: ${action}, rules: [${rule}]}`);

async function reports(yaml: string): Promise<{ readonly codes: string[]; readonly messages: string }> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: yaml }]);
  const requestProblems = problems.filter(({ code = '' }) =>
    ['RULE_NEEDS_HTTP', 'SERVICE_PORT_IN_POLICY'].includes(code),
  );
  return {
    codes: requestProblems.map(({ code, field }) => `${code} ${field}`),
    messages: requestProblems.map(({ message }) => message).join(),
  };
}

const tcp = '{name: tcp-data, port: 9000}';
const http = '{name: http, port: 80, targetPort: 8080}';
const paths = '{to: [{operation: {paths: [/admin]}}]}';
const reportedErrors = ['RULE_NEEDS_HTTP spec.rules[0]'];

it.each([
  ['paths of a TCP workload', [tcp], paths, reportedErrors],
  ['a token of a TCP workload', [tcp], '{from: [{source: {requestPrincipals: ["*"]}}]}', reportedErrors],
  ['a header condition of a TCP workload', [tcp], '{when: [{key: "request.headers[x]", values: [y]}]}', reportedErrors],
  [
    'paths at the TCP port of a workload with an HTTP port',
    [tcp, http],
    '{to: [{operation: {paths: [/a], ports: ["9000"]}}]}',
    reportedErrors,
  ],
  ['paths of a workload with a TCP and an HTTP port', [tcp, http], paths, []],
  ['paths of a workload whose protocol is detected', ['{name: data, port: 9000}'], paths, []],
  ['ports of a TCP workload', [tcp], '{to: [{operation: {ports: ["9000"]}}]}', []],
])("validate compares a rule's request fields with the workload ports: %s", async (_, ports, rule, expected) => {
  expect((await reports(service(...ports) + policy(rule))).codes).toEqual(expected);
});

it('validate reports that an ALLOW rule allows no connection and a DENY rule rejects every connection', async () => {
  expect((await reports(service(tcp) + policy(paths, 'ALLOW'))).messages).toMatch(/this rule allows no connection/);
  expect((await reports(service(tcp) + policy(paths))).messages).toMatch(/rejects every connection/);
});

const port = (number: number): string => policy(`{to: [{operation: {ports: ["${number}"]}}]}`);
const namedPort = '{name: http, port: 80, targetPort: web}';
const fault = ['SERVICE_PORT_IN_POLICY spec.rules[0].to[0].operation.ports[0]'];

it.each([
  ['the port of the Service', service(http) + port(80), fault],
  ['the port of the workload', service(http) + port(8080), []],
  ['a port of neither the Service nor the workload', service(http) + port(7000), []],
  [
    'the port of a Service whose target is the name of a container port',
    workload('{name: web, containerPort: 8080}') + service(namedPort) + port(80),
    fault,
  ],
  [
    'the number of that container port',
    workload('{name: web, containerPort: 8080}') + service(namedPort) + port(8080),
    [],
  ],
  ['the port of a Service whose named target is not known', service(namedPort) + port(80), []],
  ['a port on which a container listens too', workload('{containerPort: 80}') + service(http) + port(80), []],
])(
  'validate reports the port in a rule only if it is certainly a Service port instead of a workload port: %s',
  async (_, yaml, expected) => {
    expect((await reports(yaml)).codes).toEqual(expected);
  },
);
