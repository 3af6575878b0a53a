import { join, relative } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type AgentProgram, type Mesh, sampleHost } from '../harness/mesh.ts';

type Row = readonly [string, string];

const node = 'node_modules/.bin/node';

/** What a person sees when everything runs: where it is, and what to do with it. Commands are for the package's folder. */
export function thingsToTry(mesh: Mesh, page: string): string {
  return [
    '',
    'Everything runs on loopback. Configuration, logs and traces are in',
    `  ${mesh.root}`,
    '',
    'Addresses',
    ...table(addresses(mesh)),
    '',
    'Things to try, in another terminal, and what to watch for here and on the page',
    ...table(commands(mesh)),
    '',
    'See a restart: open this page in a browser of this host',
    `  ${page}`,
    'then replace the certificate, in another terminal',
    `  ${renewCommand(mesh)}`,
    'A new Envoy starts beside the old one, takes over, and the old one drains. On the page, ← goes back in time.',
    '',
    'Ctrl-C ends everything. Above and below: one line for each state change of a statechart.',
    '',
  ].join('\n');
}

function addresses(mesh: Mesh): Row[] {
  const { http, https, sidecarEgress, v1, v2 } = mesh.ports;
  const agent = ({ program, adminPort, statusPort }: AgentProgram): string =>
    `agent ${program.pid}, Envoy's admin http://127.0.0.1:${adminPort}/, health http://127.0.0.1:${statusPort}/healthz/ready`;
  return [
    ['gateway', `http://${sampleHost}:${http}/ and https://${sampleHost}:${https}/`],
    ['', agent(mesh.gateway!)],
    ['sidecar of v1', `http://127.0.0.1:${sidecarEgress}/ with header "host: ${sampleHost}"`],
    ['', agent(mesh.sidecar!)],
    ['control plane', `http://127.0.0.1:${mesh.discovery!.httpPort}/debug/adsz`],
    ['sample service', `v1 http://127.0.0.1:${v1}/, v2 http://127.0.0.1:${v2}/`],
  ];
}

function commands(mesh: Mesh): Row[] {
  const { http, https } = mesh.ports;
  const ca = mesh.certificates.caFile;
  const gatewayPid = mesh.gateway!.program.pid;
  const traces = mesh.traceFiles.map((file) => relative(mesh.root, file)).join(' ');
  return [
    ['ask', `curl http://${sampleHost}:${http}/`],
    ['ask over TLS', `curl --cacert ${ca} https://${sampleHost}:${https}/`],
    [
      'change a weight',
      `sed -i 's/weight: 90/weight: 30/; s/weight: 10/weight: 70/' ${mesh.directory.file('routes.yaml')}`,
    ],
    ['', 'the control plane pushes; ask again: v2 answers more often'],
    ['replace the certificate', renewCommand(mesh)],
    ['', 'a new Envoy starts beside the old one, takes over, and the old one drains'],
    ['see who the gateway is', `curl -s http://127.0.0.1:${mesh.gateway!.adminPort}/certs | grep spiffe`],
    ['talk plaintext to the sidecar', `curl -H 'host: ${sampleHost}' http://127.0.0.1:${mesh.ports.sidecarIngress}/`],
    ['', 'it is refused: only workloads with a certificate of this mesh get in'],
    ['kill -9 Envoy', `kill -9 $(pgrep -P ${gatewayPid} envoy)`],
    ['', 'the supervisor starts it again'],
    ['send the agent a HUP', `kill -HUP ${gatewayPid}`],
    ['', 'a hot restart, although nothing changed'],
    ['with load meanwhile', `${node} test/load/main.ts --url https://127.0.0.1:${https} --authority ${sampleHost} \\`],
    ['', `  --ca ${ca} --ka 1 --new 1 --h2 1 --stream 1 --pause 5 --duration 30`],
    ['keep a trace as one page', `bin/chartpilot visualize ${mesh.gateway!.traceFile} --output gateway.html`],
    ['', 'it opens years later, without a server or a network'],
    ['check the traces', `cd ${mesh.root} && ${join(packageRoot(), 'bin/chartpilot')} check ${traces}`],
  ];
}

function renewCommand(mesh: Mesh): string {
  return `${node} test/certs/renew.ts ${join(mesh.root, 'certs')}`;
}

function table(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}
