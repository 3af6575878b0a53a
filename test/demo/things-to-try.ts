import { join, relative } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { type AgentProgram, type Mesh, sampleHost } from '../harness/mesh.ts';

type Row = readonly [string, string];

const node = 'node_modules/.bin/node';

/**
 * Text that the demo prints when all programs run: addresses and commands. Commands are relative to the package's
 * folder.
 */
export function thingsToTry(mesh: Mesh, page: string): string {
  return [
    '',
    'All programs run on loopback. Directory of configuration, logs and traces:',
    `  ${mesh.root}`,
    '',
    'Addresses',
    ...table(addresses(mesh)),
    '',
    'Commands for another terminal, with the expected result',
    ...table(commands(mesh)),
    '',
    'To see a restart, open the debugger in a browser on this host:',
    `  ${page}`,
    'then replace the certificate in another terminal:',
    `  ${renewCommand(mesh)}`,
    'A new Envoy starts beside the old one, takes over, and the old one drains. In the debugger, ← goes back in time.',
    '',
    'Ctrl-C stops all programs. Each line above and below is a state change (npm start -- --verbose: of all actors).',
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
    ['send a request', `curl http://${sampleHost}:${http}/`],
    ['send a request over TLS', `curl --cacert ${ca} https://${sampleHost}:${https}/`],
    [
      'change a weight',
      `sed -i 's/weight: 90/weight: 30/; s/weight: 10/weight: 70/' ${mesh.directory.file('routes.yaml')}`,
    ],
    ['', 'the control plane pushes the change: v2 responds more often'],
    ['replace the certificate', renewCommand(mesh)],
    ['', 'a new Envoy starts beside the old one, takes over, and the old one drains'],
    ["show the gateway's identity", `curl -s http://127.0.0.1:${mesh.gateway!.adminPort}/certs | grep spiffe`],
    ['send plaintext to the sidecar', `curl -H 'host: ${sampleHost}' http://127.0.0.1:${mesh.ports.sidecarIngress}/`],
    ['', 'rejected: the sidecar accepts only certificates of this mesh'],
    ['kill Envoy', `kill -9 $(pgrep -P ${gatewayPid} envoy)`],
    ['', 'the supervisor restarts it'],
    ['order a hot restart', `kill -HUP ${gatewayPid}`],
    ['', 'a new Envoy takes over, although the configuration is unchanged'],
    [
      'run load during a change',
      `${node} test/load/main.ts --url https://127.0.0.1:${https} --authority ${sampleHost} \\`,
    ],
    ['', `  --ca ${ca} --ka 1 --new 1 --h2 1 --stream 1 --pause 5 --duration 30`],
    ['save a trace as an HTML file', `bin/chartpilot visualize ${mesh.gateway!.traceFile} --output gateway.html`],
    ['', 'the file needs no server and no network'],
    [
      'check the traces against the diagrams',
      `cd ${mesh.root} && ${join(packageRoot(), 'bin/chartpilot')} check ${traces}`,
    ],
  ];
}

function renewCommand(mesh: Mesh): string {
  return `${node} test/certs/renew.ts ${join(mesh.root, 'certs')}`;
}

function table(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}`);
}
