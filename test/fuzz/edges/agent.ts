/**
 * A real pilot-agent with a fake Envoy. Edges: its status port, the watched certificates, Envoy's output and responses, and the application's
 * responses to probes.
 */
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../harness/eventually.ts';
import { type AgentProgram, Mesh } from '../../harness/mesh.ts';
import type { Draw } from '../../random-config/draw.ts';
import { Control, standInBinary } from '../../stand-in/control.ts';
import { abbreviate, type FuzzEdge, type FuzzSubject, type SubjectMaker } from '../edge.ts';
import { adminResponseBytes } from '../grammar/admin.ts';
import { oddText } from '../grammar/breaking-words.ts';
import { randomBytes } from '../grammar/bytes.ts';
import { httpRequest } from '../grammar/http.ts';
import { randomPem } from '../grammar/pem.ts';
import { ProgramWatch } from './program-watch.ts';
import { throwBytes } from './throw-bytes.ts';

const paths = [
  '/healthz/ready',
  '/stats/prometheus',
  '/metrics',
  '/debug/trace',
  '/quitquitquit',
  '/app-health/x/readyz',
  '/app-health/http/readyz',
  '/app-lifecycle/x/prestopz',
  '/drain',
  '/debug/ndsz',
  '/debug/pprof/',
  '/',
];

export const agentMaker: SubjectMaker = {
  program: 'pilot-agent',
  name: 'pilot-agent',
  edges: ['agent-http', 'agent-certificates', 'agent-envoy-output', 'agent-envoy-admin', 'agent-application'],
  batch: 20,
  open: () => AgentSubject.start(),
};

class AgentSubject implements FuzzSubject {
  readonly edges: readonly FuzzEdge[];
  readonly #mesh: Mesh;
  readonly #control: Control;
  readonly #agent: AgentProgram;
  readonly #watch: ProgramWatch;
  readonly #originals: readonly Buffer[];
  readonly #application: Application;

  private constructor(mesh: Mesh, control: Control, agent: AgentProgram, application: Application) {
    this.#application = application;
    this.#mesh = mesh;
    this.#control = control;
    this.#agent = agent;
    this.#watch = new ProgramWatch(agent.program, { maxResidentMiB: 300, maxResponseMs: 20_000 });
    this.#originals = this.#files.map((file) => readFileSync(file));
    const program = 'pilot-agent';
    this.edges = [
      { name: 'agent-http', program, attack: (draw) => this.#http(draw) },
      { name: 'agent-certificates', program, attack: (draw) => this.#certificate(draw) },
      { name: 'agent-envoy-output', program, attack: (draw) => this.#output(draw) },
      { name: 'agent-envoy-admin', program, attack: (draw) => this.#admin(draw) },
      { name: 'agent-application', program, attack: (draw) => this.#probe(draw) },
    ];
  }

  static async start(): Promise<AgentSubject> {
    const application = await Application.listen();
    const env = { INSTANCE_IP: '127.0.0.1', ISTIO_KUBE_APP_PROBERS: application.probes };
    const mesh = await Mesh.create({
      sidecar: false,
      watchDelayMs: 50,
      drainMs: 1_000,
      parentShutdownMs: 2_000,
      env,
    });
    try {
      await mesh.startDiscovery();
      mkdirSync(join(mesh.root, 'gateway'), { recursive: true });
      const control = await Control.listen(join(mesh.root, 'gateway'));
      const agent = mesh.startGateway(['--binaryPath', standInBinary]);
      await mesh.waitForAgent(agent);
      return new AgentSubject(mesh, control, agent, application);
    } catch (error) {
      application.close();
      await mesh.stop();
      throw error;
    }
  }

  get #files(): [string, string] {
    const { directory } = this.#mesh.certificates;
    return [join(directory, 'tls.crt'), join(directory, 'tls.key')];
  }

  /** Checks that the agent is ready again with the initial files and has a running Envoy. */
  async findProblems(): Promise<string[]> {
    this.#files.forEach((file, index) => {
      rmSync(file, { recursive: true, force: true });
      writeFileSync(file, this.#originals[index]!);
    });
    await Promise.all(
      this.#control.serving.map((envoy) => envoy.order({ order: 'admin', behaviour: 'answers' }).catch(() => {})),
    );
    const url = `http://127.0.0.1:${this.#agent.statusPort}/healthz/ready`;
    // A restart in progress may finish first.
    await eventually('the agent is ready', async () => (await fetch(url)).status === 200, {
      deadlineMs: 30_000,
      hopeless: () => this.#agent.program.hopeless(),
    }).catch(() => {});
    const problems = await this.#watch.findProblems(url);
    if (problems.length > 0) return problems;
    return this.#mesh.envoysOf(this.#agent).length === 0 ? ['ready, and no Envoy lives'] : [];
  }

  async close(): Promise<void> {
    await this.#mesh.stop();
    await this.#control.close();
    this.#application.close();
  }

  async #http(draw: Draw): Promise<string> {
    const bytes = httpRequest(draw, { paths });
    await throwBytes(this.#agent.statusPort, bytes, draw);
    return abbreviate(bytes);
  }

  /** Changes a file as a kubelet, a user or a broken disk might. */
  async #certificate(draw: Draw): Promise<string> {
    const file = draw.pick(this.#files);
    const bytes = randomPem(draw, this.#originals);
    const changeKind = draw.pick(['write', 'rename', 'remove', 'folder']);
    rmSync(file, { recursive: true, force: true });
    if (changeKind === 'write') writeFileSync(file, bytes);
    else if (changeKind === 'folder') mkdirSync(file);
    else if (changeKind === 'rename') {
      writeFileSync(`${file}.new`, bytes);
      renameSync(`${file}.new`, file);
    }
    await sleep(draw.int(0, 200));
    return `${changeKind} ${file.slice(-7)} ${abbreviate(bytes, 300)}`;
  }

  async #output(draw: Draw): Promise<string> {
    const envoy = this.#control.serving.at(-1);
    if (envoy === undefined) return 'no Envoy to print';
    const text = draw.one(
      () => randomBytes(draw, draw.int(0, 400)).toString('latin1'),
      () =>
        `[2026-01-01T00:00:00Z]\t${draw.pick(['warning', 'error', '__proto__', 'constructor', ''])}\tenvoy ${oddText(draw)}\t${oddText(draw)}\n`,
      () => `${'x'.repeat(draw.int(1, 300_000))}${draw.pick(['', '\n'])}`,
      () => '\n'.repeat(draw.int(1, 5_000)),
      () => `{"level":"${oddText(draw)}"}\n`,
    );
    await envoy.order({ order: 'print', text: text.toWellFormed() });
    return abbreviate(text);
  }

  async #probe(draw: Draw): Promise<string> {
    const bytes = draw.one(
      () => adminResponseBytes(draw),
      () =>
        Buffer.from(
          `HTTP/1.1 ${draw.pick(['200', '302', '399', '101', '099', '1000'])} ${oddText(draw)}\r\nlocation: ${draw.pick(['/', '//x/', 'http://[', '', '/app-health/http/readyz'])}${oddText(draw)}\r\n\r\n`,
        ),
      // HTTP/2: a SETTINGS frame, then random bytes.
      () => Buffer.concat([Buffer.from('000000040000000000', 'hex'), randomBytes(draw, draw.int(0, 200))]),
    );
    this.#application.respondWith(bytes, draw.chance(0.7));
    const name = draw.pick(probeNames);
    await fetch(`http://127.0.0.1:${this.#agent.statusPort}/app-health/${name}/readyz`, {
      signal: AbortSignal.timeout(draw.int(1, 300)),
    }).catch(() => {});
    return `${name}: ${abbreviate(bytes)}`;
  }

  async #admin(draw: Draw): Promise<string> {
    const envoy = this.#control.serving.at(-1);
    if (envoy === undefined) return 'no Envoy to probe';
    const garbled = draw.chance(0.6) ? adminResponseBytes(draw) : undefined;
    const behaviour = draw.pick(['holds', 'fails', 'answers'] as const);
    await envoy.order(
      garbled === undefined
        ? { order: 'admin', behaviour }
        : { order: 'garble admin', bytes: garbled.toString('base64') },
    );
    const path = draw.pick(paths.slice(0, 3));
    await fetch(`http://127.0.0.1:${this.#agent.statusPort}${path}`, {
      signal: AbortSignal.timeout(draw.int(1, 300)),
    }).catch(() => {});
    return `${garbled === undefined ? behaviour : abbreviate(garbled)}, requested ${path}`;
  }
}

const probeNames = ['http', 'https', 'grpc'] as const;

/** Responds to every request with the same bytes. */
class Application {
  readonly #server: Server;
  #bytes: Buffer = Buffer.alloc(0);
  #closes = true;

  private constructor() {
    this.#server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        if (this.#closes) socket.end(this.#bytes);
        else socket.write(this.#bytes);
      });
    });
  }

  static async listen(): Promise<Application> {
    const application = new Application();
    application.#server.listen(0, '127.0.0.1');
    await once(application.#server, 'listening');
    return application;
  }

  /** Value of `ISTIO_KUBE_APP_PROBERS`. */
  get probes(): string {
    const { port } = this.#server.address() as AddressInfo;
    const kinds = {
      http: { httpGet: { port } },
      https: { httpGet: { port, scheme: 'HTTPS' } },
      grpc: { grpc: { port } },
    };
    return JSON.stringify(
      Object.fromEntries(
        probeNames.map((name) => [`/app-health/${name}/readyz`, { ...kinds[name], timeoutSeconds: 1 }]),
      ),
    );
  }

  respondWith(bytes: Buffer, closes: boolean): void {
    this.#bytes = bytes;
    this.#closes = closes;
  }

  close(): void {
    this.#server.close();
  }
}
