/** Parsers in this process: they may throw only documented errors and must return quickly. */
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAdminClient } from '../../../src/agent/admin/admin-client.ts';
import { EnvoyOutput } from '../../../src/agent/envoy/output/envoy-log.ts';
import { inspectCertificates } from '../../../src/agent/files/certificate-problems.ts';
import { parseDownwardFile } from '../../../src/agent/options/downward-file.ts';
import { checkTrace } from '../../../src/debugger/check/check.ts';
import { loadDiagrams } from '../../../src/debugger/diagram/load.ts';
import { parseDiagram } from '../../../src/debugger/diagram/parse.ts';
import { machinesOfProgram } from '../../../src/debugger/replay/program-machines.ts';
import { replay } from '../../../src/debugger/replay/replay.ts';
import { causeChain } from '../../../src/debugger/trace/cause-chain.ts';
import { formatRecord } from '../../../src/debugger/trace/print-trace.ts';
import { openTrace } from '../../../src/debugger/trace/read-trace.ts';
import { RecordArray } from '../../../src/debugger/trace/record-list.ts';
import { readConfigFile } from '../../../src/model/config/config-file.ts';
import { readMeshConfig } from '../../../src/model/mesh/mesh-config.decode.ts';
import { readMeshNetworks } from '../../../src/model/mesh/mesh-networks.ts';
import { parseNode } from '../../../src/model/node/parse-node.ts';
import { ChartpilotError } from '../../../src/runtime/errors.ts';
import { silentLogger } from '../../../src/runtime/output/log.ts';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import type { TraceRecord } from '../../../src/runtime/trace/trace.ts';
import { createServerCertificates } from '../../certs/issued-certificates.ts';
import type { Draw } from '../../random-config/draw.ts';
import { abbreviate, type FuzzEdge, type FuzzSubject, type SubjectMaker } from '../edge.ts';
import { adminResponseBytes } from '../grammar/admin.ts';
import { oddText, oddValue } from '../grammar/breaking-words.ts';
import { mutatedBytes } from '../grammar/bytes.ts';
import { randomPem } from '../grammar/pem.ts';
import { randomTrace } from '../grammar/trace.ts';
import { randomYaml, yamlValues } from '../grammar/yaml.ts';
import { consulCatalog } from './consul-catalog.ts';
import { recordedTrace } from './recorded-trace.ts';
import { withinCpuLimit } from './thinking.ts';
import { wasmImage } from './wasm-images.ts';

const maxExchangeMs = 30_000;

export const functionsMaker: SubjectMaker = {
  program: 'chartpilot',
  name: 'readers',
  edges: [
    'config-file',
    'mesh-config',
    'node',
    'pem',
    'downward-file',
    'envoy-output',
    'admin-answer',
    'trace-file',
    'diagram',
    'consul-catalog',
    'wasm-image',
  ],
  batch: 50,
  open: () => FunctionsSubject.start(),
};

class FunctionsSubject implements FuzzSubject {
  readonly edges: readonly FuzzEdge[];
  readonly #folder: string;

  private constructor(folder: string, trace: readonly string[]) {
    this.#folder = folder;
    const documents = yamlValues(
      [join(packageRoot(), 'examples'), join(packageRoot(), 'test/networking/cases')],
      (name) => name.endsWith('.yaml'),
    );
    const { directory } = createServerCertificates(join(folder, 'certificates'), ['a.example.com']);
    const pems = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(directory, name)));
    const diagram = readFileSync(join(packageRoot(), 'machines/agent/sequences/restart.mmd'));
    this.edges = [
      edge('config-file', 'pilot-discovery', (draw) => {
        const text = randomYaml(draw, documents).toString('utf8');
        withinCpuLimit(text, () => readConfigFile('odd.yaml', text, { creationTimestamp: 0 }));
        return text;
      }),
      edge('mesh-config', 'pilot-discovery', (draw) => {
        const text = randomYaml(draw, documents.slice(0, 20)).toString('utf8');
        withinCpuLimit(text, () => [readMeshConfig('mesh', text), readMeshNetworks('networks', text)]);
        return text;
      }),
      edge('node', 'pilot-discovery', (draw) => {
        const metadata = Object.fromEntries(
          draw.list(0, 6, () => [
            draw.pick(['LABELS', 'INSTANCE_IPS', 'CLUSTER_ID', 'NAMESPACE', oddText(draw)]),
            oddValue(draw),
          ]),
        );
        const node = {
          id: draw.chance(0.5) ? 'sidecar~1.1.1.1~a.b~b.svc' : oddText(draw),
          cluster: oddText(draw),
          metadata,
        };
        parseNode(node);
        return node.id;
      }),
      edge('pem', 'pilot-agent', (draw) => {
        const contents = new Map(['tls.crt', 'tls.key'].map((name) => [name, randomPem(draw, pems)]));
        withinCpuLimit('certificates', () => inspectCertificates(contents));
        return [...contents.values()].map((bytes) => abbreviate(bytes, 80)).join(' ');
      }),
      edge('downward-file', 'pilot-agent', (draw) => {
        const text = draw.list(0, 5, () => `${oddText(draw)}=${JSON.stringify(oddText(draw))}`).join('\n');
        parseDownwardFile(text, 'annotations');
        return text;
      }),
      edge('envoy-output', 'pilot-agent', (draw) => {
        const output = new EnvoyOutput(silentLogger);
        const lines = draw.list(1, 20, () =>
          draw.chance(0.5)
            ? oddText(draw)
            : `x\t${draw.pick(['warning', '__proto__', 'toString'])}\tenvoy ${oddText(draw)}\t${oddText(draw)}`,
        );
        for (const line of lines) output.line(line);
        output.exitReason();
        return lines.join('\n');
      }),
      edge('admin-answer', 'pilot-agent', adminResponse),
      edge('trace-file', 'chartpilot', (draw) => this.#trace(draw, trace)),
      edge('diagram', 'chartpilot', (draw) => {
        const text = mutatedBytes(draw, diagram, 20).toString('utf8');
        withinCpuLimit(text, () => parseDiagram(text, 'odd.mmd'));
        return text;
      }),
      edge('consul-catalog', 'pilot-discovery', consulCatalog),
      edge('wasm-image', 'pilot-agent', wasmImage),
    ];
  }

  static async start(): Promise<FunctionsSubject> {
    // Recorded before the attacks, because a start, a restart and an exit of a real agent may exceed the time limit of
    // one attack.
    const trace = await recordedTrace();
    return new FunctionsSubject(await mkdtemp(join(tmpdir(), 'chartpilot-fuzz-')), trace);
  }

  findProblems(): Promise<string[]> {
    return Promise.resolve([]);
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #trace(draw: Draw, recordedLines: readonly string[]): Promise<string> {
    const bytes = randomTrace(draw, recordedLines);
    const file = join(this.#folder, 'odd.trace');
    writeFileSync(file, bytes);
    const openedTrace = await openTrace(file);
    const records: TraceRecord[] = [];
    for await (const record of openedTrace.records) records.push(record);
    withinCpuLimit('trace', () => checkTrace(agentDiagrams, records, openedTrace.header));
    const list = new RecordArray(records);
    records.forEach((record, index) => {
      formatRecord(record);
      causeChain(list, index);
    });
    withinCpuLimit('replay', () =>
      replay(openedTrace.header, records, [...machinesOfProgram(openedTrace.header.program)]),
    );
    return abbreviate(bytes, 2_000);
  }
}

const agentDiagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences'));

/** A parser may reject input with a coded error. */
function edge(name: string, program: FuzzEdge['program'], attack: (draw: Draw) => Promise<string> | string): FuzzEdge {
  return {
    name,
    program,
    async attack(draw) {
      try {
        return abbreviate(await attack(draw));
      } catch (error) {
        if (error instanceof ChartpilotError) return error.message;
        throw error;
      }
    },
  };
}

/** An Envoy whose admin interface sends random responses: the client must report an error within its time limit. */
async function adminResponse(draw: Draw): Promise<string> {
  const bytes = adminResponseBytes(draw);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.write(bytes);
    if (draw.chance(0.7)) socket.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const address = server.address();
    const client = createAdminClient('127.0.0.1', typeof address === 'object' && address !== null ? address.port : 0);
    const startedAt = performance.now();
    await client.state(200);
    await client.get('/stats', 200).catch(() => {});
    // Two responses take up to 200 ms each. A busy machine may stop this process for seconds.
    if (performance.now() - startedAt > maxExchangeMs) throw new Error('no end within the limit');
  } finally {
    server.close();
  }
  return abbreviate(bytes);
}
